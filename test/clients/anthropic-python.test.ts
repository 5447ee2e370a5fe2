/** The official `anthropic` client for Python, where this machine has it. */
import { expect, test } from 'bun:test'
import { startOnServiceDay } from './support.ts'

const python = process.env.ANTHROPIC_PYTHON ?? Bun.which('python3')
const isHere =
  python !== null && Bun.spawnSync([python, '-c', 'import anthropic'], { stdout: 'ignore', stderr: 'ignore' }).success

test.skipIf(!isHere)(
  'the Python client chats, streams, calls tools, counts tokens and raises its typed errors (needs python3 with the package anthropic)',
  async () => {
    const gateway = await startOnServiceDay()
    try {
      const script = new URL('anthropic_python.py', import.meta.url).pathname
      const run = Bun.spawn([python ?? '', script, gateway.url, gateway.key], { stdout: 'pipe', stderr: 'pipe' })
      const [said, complained] = await Promise.all([run.stdout.text(), run.stderr.text()])
      expect({ exitCode: await run.exited, complained }).toEqual({ exitCode: 0, complained: '' })
      expect(said.trim().split('\n')).toHaveLength(20)
    } finally {
      await gateway.stop()
    }
  },
  60_000,
)
