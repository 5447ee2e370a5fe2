/** The official `openai` client for Python, if installed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Gateway } from '../harness/gateway.ts'
import { eventually, leavings, startOnServiceDay } from './support.ts'

const python = Bun.which('python3')
const isHere =
  python !== null && Bun.spawnSync([python, '-c', 'import openai'], { stdout: 'ignore', stderr: 'ignore' }).success

let gateway: Gateway | null = null
beforeAll(async () => {
  if (isHere) gateway = await startOnServiceDay()
}, 20_000)
afterAll(() => gateway?.stop())

test('OpenAI Python client: supports chat, streams, tools, schemas and typed errors', async () => {
  if (python === null || gateway === null) {
    process.stdout.write('did not run: the Python client (needs python3 with the package openai)\n')
    return
  }
  const script = new URL('openai_python.py', import.meta.url).pathname
  const run = Bun.spawn([python, script, `${gateway.url}/v1`, gateway.key], { stdout: 'pipe', stderr: 'pipe' })
  const [said, complained] = await Promise.all([run.stdout.text(), run.stderr.text()])
  expect({ exitCode: await run.exited, complained }).toEqual({ exitCode: 0, complained: '' })
  expect(
    said
      .trim()
      .split('\n')
      .every(line => line.startsWith('ok: ')),
  ).toBe(true)
  await eventually('no seat is left taken', () => gateway !== null && leavings(gateway).seatsTaken === 0)
}, 60_000)
