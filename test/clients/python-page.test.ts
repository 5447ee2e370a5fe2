/** The examples of docs/clients/python.md, run with the official clients against a gateway with simulated providers. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Gateway } from '../harness/gateway.ts'
import { anthropicPython, has, reportSkipped } from '../harness/needs.ts'
import { startOnServiceDay } from './support.ts'

const page = readFileSync(new URL('../../docs/clients/python.md', import.meta.url), 'utf8')
const examples = [...page.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, code = '']) => ({
  code,
  client: code.includes('import Anthropic') ? ('pythonAnthropic' as const) : ('pythonClient' as const),
}))
/** A part of what each example prints, in their order. */
const printed = ['tokens: ', 'tokens: ', 'was shipped', '404 model_not_found req_', '/']

let gateway: Gateway | null = null
beforeAll(async () => {
  if (has('pythonClient') || has('pythonAnthropic')) gateway = await startOnServiceDay()
}, 240_000)
afterAll(() => gateway?.stop())

test('Python page: has an example for each expected output', () => expect(examples.length).toBe(printed.length))

for (const [at, { code, client }] of examples.entries()) {
  const title = `Python page: example ${at + 1} runs as written`
  if (!has(client)) reportSkipped(client, title)
  else
    test(title, async () => {
      if (gateway === null) throw new Error('no gateway')
      // A simulated model calls a tool only if the prompt says so.
      const program = code.replaceAll('http://127.0.0.1:3000', gateway.url).replace('4711?', '4711? [[sim:parallel=1]]')
      const python = client === 'pythonAnthropic' ? anthropicPython : 'python3'
      const env = { ...process.env, GATEWAY_KEY: gateway.key }
      const run = Bun.spawn([python, '-c', program], { env, stdout: 'pipe', stderr: 'pipe' })
      const [out, complaints] = await Promise.all([run.stdout.text(), run.stderr.text()])
      expect({ exitCode: await run.exited, complaints }).toEqual({ exitCode: 0, complaints: '' })
      expect(out).toContain(printed[at] ?? '')
    }, 240_000)
}
