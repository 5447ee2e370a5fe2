/** The official `openai` client for Python, if installed. */
import { afterAll, beforeAll, expect } from 'bun:test'
import { eventually } from '../harness/eventually.ts'
import type { Gateway } from '../harness/gateway.ts'
import { has, needed, testNeeding } from '../harness/needs.ts'
import { leavings, startOnServiceDay } from './support.ts'

const python = Bun.which('python3')

let gateway: Gateway | null = null
beforeAll(async () => {
  if (has('pythonClient')) gateway = await startOnServiceDay()
}, 240_000)
afterAll(() => gateway?.stop())

testNeeding(
  'pythonClient',
  'OpenAI Python client: supports chat, streams, tools, schemas and typed errors',
  async () => {
    const served = needed(gateway)
    const script = new URL('openai_python.py', import.meta.url).pathname
    const run = Bun.spawn([needed(python), script, `${served.url}/v1`, served.key], { stdout: 'pipe', stderr: 'pipe' })
    const [said, complained] = await Promise.all([run.stdout.text(), run.stderr.text()])
    expect({ exitCode: await run.exited, complained }).toEqual({ exitCode: 0, complained: '' })
    expect(
      said
        .trim()
        .split('\n')
        .every(line => line.startsWith('ok: ')),
    ).toBe(true)
    await eventually(() => leavings(served).reservationsTaken === 0)
  },
  240_000,
)
