/** The official `anthropic` client for Python, where this machine has it. */
import { expect } from 'bun:test'
import { anthropicPython, testNeeding } from '../harness/needs.ts'
import { startOnServiceDay } from './support.ts'

testNeeding(
  'pythonAnthropic',
  'Anthropic Python client: supports chat, streams, tools, token counts and typed errors',
  async () => {
    const gateway = await startOnServiceDay()
    try {
      const script = new URL('anthropic_python.py', import.meta.url).pathname
      const run = Bun.spawn([anthropicPython, script, gateway.url, gateway.key], { stdout: 'pipe', stderr: 'pipe' })
      const [said, complained] = await Promise.all([run.stdout.text(), run.stderr.text()])
      expect({ exitCode: await run.exited, complained }).toEqual({ exitCode: 0, complained: '' })
      expect(said.trim().split('\n')).toHaveLength(23)
    } finally {
      await gateway.stop()
    }
  },
  240_000,
)
