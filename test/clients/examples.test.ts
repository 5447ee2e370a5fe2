/**
 * Each file of `examples` against a gateway with simulated providers. Programs run as written, with another address. The
 * settings are read and their requests sent as the client sends them: Claude Code and Codex are too large for the suite,
 * and run by hand (`test/clients/by-hand`).
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import type { Gateway } from '../harness/gateway.ts'
import { has, needed, testNeeding } from '../harness/needs.ts'
import { startOnServiceDay } from './support.ts'

const root = resolve(import.meta.dir, '../..')
const address = 'http://127.0.0.1:3000'
const greeting = 'Say hello in one sentence.'

let started: Gateway | null = null
beforeAll(async () => {
  started = await startOnServiceDay()
}, 240_000)
afterAll(() => started?.stop())

/** Returns an example with the address of the gateway of the test. */
function getExample(name: string): string {
  const text = readFileSync(resolve(root, 'examples', name), 'utf8')
  expect(text).toContain(address)
  return text.replaceAll(address, needed(started).url)
}

/** Runs a program with a key. Throws if it fails. */
async function getOutput(command: readonly string[], key = needed(started).key, environment = {}): Promise<string> {
  const env = { ...process.env, GATEWAY_KEY: key, ...environment }
  const run = Bun.spawn([...command], { cwd: root, env, stdout: 'pipe', stderr: 'pipe' })
  const [out, complaints] = await Promise.all([run.stdout.text(), run.stderr.text()])
  if ((await run.exited) !== 0) throw new Error(out + complaints)
  return out
}

test('examples: have a test each', () => {
  const files = readdirSync(resolve(root, 'examples'), { recursive: true, withFileTypes: true })
  const names = files.flatMap(file => (file.isFile() ? [file.name] : []))
  expect(names.sort()).toEqual([
    'README.md',
    'chat.py',
    'chat.sh',
    'chat.ts',
    'config.toml',
    'decisions.ts',
    'gemini.ts',
    'settings.json',
  ])
})

type CodexProvider = {
  readonly base_url: string
  readonly wire_api: string
  readonly auth: { readonly command: string; readonly args: readonly string[] }
}
type CodexConfig = {
  readonly model: string
  readonly model_provider: string
  readonly model_providers: Readonly<Record<string, CodexProvider>>
}

const python = has('pythonClient') ? {} : { PYTHONPATH: resolve(import.meta.dir, 'stand-in') }

describe('examples', () => {
  testNeeding('curl', 'chat.sh: prints a whole response, and fails with a wrong key', async () => {
    const command = ['sh', '-c', getExample('chat.sh')]
    const response = JSON.parse(await getOutput(command))
    expect(response.choices[0].message.content).toContain(greeting)
    expect(response.choices[0].finish_reason).toBe('stop')
    await expect(getOutput(command, 'gw_live_wrong')).rejects.toThrow('invalid_api_key')
  })

  for (const [name, command, environment, needs] of [
    ['chat.ts', [process.execPath, '-e'], {}, []],
    ['gemini.ts', [process.execPath, '-e'], {}, []],
    ['chat.py', ['python3', '-c'], python, ['python']],
  ] as const)
    testNeeding(
      needs,
      `${name}: prints a stream with its model and tokens, and fails with a wrong key`,
      async () => {
        const program = [...command, getExample(name)]
        const out = await getOutput(program, undefined, environment)
        expect(out).toContain(greeting)
        expect(out).toMatch(/^(openai|anthropic|google)\/\S+: [1-9]\d* tokens$/m)
        await expect(getOutput(program, 'gw_live_wrong', environment)).rejects.toThrow(/invalid/i)
      },
      240_000,
    )

  test('decisions.ts: prints the answers, and fails with a wrong key', async () => {
    const program = [process.execPath, '-e', getExample('decisions.ts')]
    const out = await getOutput(program)
    expect(out).toMatch(/^\{"type":"predicate","name":"needs_current_data","probability":0\.[5-9]/m)
    expect(out).toMatch(/"choice":"en"/)
    expect(out).toMatch(/^gateway\/local: [1-9]\d* tokens$/m)
    await expect(getOutput(program, 'gw_live_wrong')).rejects.toThrow(/invalid/i)
  })

  test('claude-code/settings.json: reaches its model with the key of its helper', async () => {
    const settings = JSON.parse(getExample('claude-code/settings.json'))
    const key = (await getOutput(['sh', '-c', settings.apiKeyHelper])).trim()
    // Claude Code sends the key of a helper in both headers.
    const client = new Anthropic({
      baseURL: settings.env.ANTHROPIC_BASE_URL,
      apiKey: key,
      defaultHeaders: { authorization: `Bearer ${key}` },
    })
    const stream = client.beta.messages.stream({
      betas: ['claude-code-20250219'],
      model: settings.model,
      max_tokens: 256,
      system: [{ type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: greeting }],
      tools: [{ name: 'Bash', input_schema: { type: 'object', properties: { command: { type: 'string' } } } }],
    })
    const message = await stream.finalMessage()
    expect(message).toMatchObject({ model: settings.model, stop_reason: 'end_turn' })
    expect(message.content.map(block => (block.type === 'text' ? block.text : '')).join('')).toContain(greeting)
  })

  test('codex/config.toml: lists models and streams a response with the key of its command', async () => {
    const config = Bun.TOML.parse(getExample('codex/config.toml')) as CodexConfig
    const { base_url, wire_api, auth } = config.model_providers[config.model_provider] ?? {}
    expect(wire_api).toBe('responses')
    const key = (await getOutput([needed(auth ?? null).command, ...needed(auth ?? null).args])).trim()
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const list = await fetch(`${base_url}/models?client_version=0.169.0`, { headers })
    expect(await list.json()).toMatchObject({
      models: expect.arrayContaining([expect.objectContaining({ slug: config.model })]),
    })
    const body = JSON.stringify({
      model: config.model,
      instructions: 'You are an agent.',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: greeting }] }],
      tools: [{ type: 'function', name: 'shell', strict: false, parameters: { type: 'object', properties: {} } }],
      tool_choice: 'auto',
      parallel_tool_calls: true,
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
    })
    const response = await fetch(`${base_url}/responses`, { method: 'POST', headers, body })
    const events = await response.text()
    expect(events).toContain(greeting)
    expect(events).toMatch(/event: response\.completed\ndata: .*\n\n$/)
  })
})
