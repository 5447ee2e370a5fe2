/** The playground's code: what it shows is run as it stands, against a gateway. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { codeDialects } from '../../src/dashboard/state/code-body.ts'
import { codeLanguages, requestCode } from '../../src/dashboard/state/request-code.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { testNeeding } from '../harness/needs.ts'

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
}, 240_000)
afterAll(() => gateway.stop())

const question = `It's "quoted" $HOME \\ and 'so on'`
const request = () => ({
  origin: gateway.url,
  model: 'gateway-ai',
  headers: { 'X-Gateway-Strategy': 'cost', 'X-Gateway-Web': 'off' },
  messages: [
    { role: 'system', content: 'Answer briefly.' },
    { role: 'user', content: question },
  ] as const,
  parameters: {},
})

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const parameters = { type: 'object', properties: { city: { type: 'string', strict: true } }, required: ['city'] }
const tools = [{ type: 'function', function: { name: 'weather', parameters } }]

async function run(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: new URL('../..', import.meta.url).pathname,
    env: { ...process.env, GATEWAY_KEY: gateway.key },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect([await child.exited, err.includes('rror')]).toEqual([0, false])
  return out
}

describe('requestCode', () => {
  testNeeding(['bash', 'curl'], 'returns curl commands that answer in each API form', async () => {
    for (const dialect of codeDialects) {
      const command = requestCode(request(), dialect, 'curl').replace(/^curl /, 'curl -s ')
      expect(JSON.stringify(JSON.parse(await run(['bash', '-c', command])))).toContain('You asked')
    }
  })

  test('returns TypeScript that prints the output in each API form', async () => {
    for (const dialect of codeDialects)
      expect(await run([process.execPath, '-e', requestCode(request(), dialect, 'typescript')])).toContain('You asked')
  }, 240_000)

  test('returns Python with the values of the request', () => {
    expect(requestCode({ ...request(), origin: 'http://gateway' }, 'responses', 'python')).toBe(
      [
        'import os',
        'from openai import OpenAI',
        '',
        'client = OpenAI(',
        '    base_url="http://gateway/v1",',
        '    api_key=os.environ["GATEWAY_KEY"],',
        '    default_headers={"X-Gateway-Strategy":"cost","X-Gateway-Web":"off"},',
        ')',
        'answer = client.responses.create(',
        '    model="gateway-ai",',
        '    instructions="Answer briefly.",',
        `    input=${JSON.stringify([{ role: 'user', content: question }])},`,
        '    store=False,',
        ')',
        'print(answer.output_text)',
      ].join('\n'),
    )
  })

  testNeeding(['bash', 'curl'], 'returns parameters, tools and images in each API form', async () => {
    const content = [
      { type: 'text', text: question },
      { type: 'image', url: `data:image/png;base64,${pixel}` },
    ] as const
    const full = {
      ...request(),
      messages: [{ role: 'user', content }] as const,
      parameters: { temperature: 0.5, max_output_tokens: 50, reasoning_effort: 'low', tools } as const,
    }
    for (const dialect of codeDialects) {
      const command = requestCode(full, dialect, 'curl').replace(/^curl /, 'curl -s ')
      expect(JSON.parse(await run(['bash', '-c', command])).error ?? null).toBeNull()
      expect(requestCode(full, dialect, 'python')).toContain('"strict":True')
      // A model may answer with a tool call, which the text of the output does not show.
      expect(requestCode(full, dialect, 'python')).toMatch(/print\(answer\.(output|content|choices\[0\]\.message)\)$/)
    }
  })

  test('passes fields of Messages that the clients of Anthropic have not, and its effort', async () => {
    const own = { ...request(), parameters: { temperature: 0.5, top_p: 0.9, reasoning_effort: 'minimal' } } as const
    const python = requestCode(own, 'messages', 'python')
    expect(python).toContain('    extra_body={"temperature":0.5,"top_p":0.9},\n')
    expect(python).toContain('    output_config={"effort":"low"},\n')
    expect(python).not.toContain('    temperature=')
    const typescript = requestCode(own, 'messages', 'typescript')
    expect(typescript).toContain('...{"temperature":0.5,"top_p":0.9}')
    expect(await run([process.execPath, '-e', typescript])).toContain('You asked')
  }, 240_000)

  test('never shows a key, and leaves out headers that are not set', () => {
    for (const dialect of codeDialects)
      for (const language of codeLanguages) {
        const code = requestCode({ ...request(), headers: {} }, dialect, language)
        expect(code).toContain('GATEWAY_KEY')
        expect(code).not.toMatch(/gw_live_|[Hh]eaders/)
      }
  })
})
