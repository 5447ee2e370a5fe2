/** Every string of a body that reaches a provider was screened and weighed: a canary in each place of random bodies. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { readCompatible } from '../../src/dialects/chat-completions/request.ts'
import { readDecisions } from '../../src/dialects/decisions/request.ts'
import { readGemini } from '../../src/dialects/gemini/request.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import { type ModerateDeps, moderate } from '../../src/request/moderate.ts'
import { countTokens, estimateInputTokens, estimateOpaqueTokens } from '../../src/text/tokens/tokens.ts'
import { modelNamed } from '../harness/model.ts'
import { moderationFor } from '../text/moderation/layers/support.ts'

const canary = 'Zyzzyva quokka words for a model that reads them all'
const seal = createReasoningSeal('a secret of the tests', null)
const access = { baseUrl: 'https://a.test/v1', apiKey: 'k' }

const providers = [
  [openaiResponses, modelNamed('gpt-5.5')],
  [openai({ official: true }), modelNamed('gpt-5.5')],
  [anthropic, modelNamed('claude-haiku-5-5')],
  [google, modelNamed('gemini-3.5-flash')],
] as const

type Dialect = 'chat' | 'native' | 'responses' | 'messages' | 'gemini' | 'decisions'

function parsed(dialect: Dialect, body: object, headers: Headers): ChatRequest {
  const text = JSON.stringify(body)
  const source = { headers, text, accountId: 'a' }
  switch (dialect) {
    case 'chat':
      return readCompatible(body, headers, text.length).request
    case 'native':
      return readNative(body, headers, text.length)
    case 'responses':
      return readResponses(body, source, { seal, accountId: 'a' }).request
    case 'messages':
      return readMessages(body, source, seal).request
    case 'gemini':
      return readGemini(body, source, { model: 'gemini-3.5-flash', isStreamed: false, seal }).request
    case 'decisions':
      return readDecisions(body, source, { seal, accountId: 'a' })
  }
}

const schema = { type: 'object', properties: { city: { type: 'string', enum: ['a', 'b'], description: 'c' } } }
const png = 'iVBORw0KGgoAAAANSUhEUgAA'
const pdf = 'JVBERi0xLjQK'
const functionTool = { type: 'function', function: { name: 'f', description: 'd', parameters: schema } }
const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":"b"}' } }
const chat = {
  model: 'm',
  messages: [
    { role: 'system', content: 'a' },
    {
      role: 'user',
      name: 'n',
      content: [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
        { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } },
      ],
    },
    { role: 'assistant', content: 'a', reasoning_content: 'b', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', content: 'x' },
    { role: 'user', content: 'a' },
  ],
  tools: [functionTool],
  response_format: { type: 'json_schema', json_schema: { name: 'r', description: 'd', schema } },
  stop: ['s'],
  user: 'u',
  prediction: { type: 'content', content: 'p' },
  prompt_cache_key: 'k',
  moderation: { model: 'm' },
}
const native = {
  messages: chat.messages.map(({ role, content, tool_call_id, tool_calls }) => ({
    role,
    content: role === 'user' ? 'a' : content,
    tool_call_id,
    tool_calls,
  })),
  tools: chat.tools,
  response_format: chat.response_format,
  stop: ['s'],
}
const responses = {
  model: 'm',
  instructions: 'i',
  input: [
    { role: 'developer', content: 'a' },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":"b"}', status: 'completed' },
    { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'x' }] },
    { type: 'custom_tool_call', call_id: 'c2', name: 'p', input: 'i' },
    { type: 'custom_tool_call_output', call_id: 'c2', output: 'x' },
    { type: 'mcp_list_tools', id: 'l', server_label: 's', tools: [{ name: 'f', input_schema: schema }] },
    { type: 'mcp_call', id: 'm', name: 'f', arguments: '{}', output: 'o', server_label: 's' },
    { type: 'local_shell_call_output', id: 'x', output: 'o' },
    {
      type: 'computer_call_output',
      call_id: 'c3',
      output: { type: 'computer_screenshot', image_url: `data:image/png;base64,${png}` },
    },
    { type: 'compaction', encrypted_content: 'e' },
    { type: 'agent_message', author: 'a', content: [{ type: 'input_text', text: 't' }] },
    { type: 'additional_tools', tools: [{ type: 'function', name: 'h', description: 'd', parameters: schema }] },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'a' },
        { type: 'input_image', image_url: `data:image/png;base64,${png}` },
        { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,YWJj' },
      ],
    },
  ],
  tools: [
    { type: 'function', name: 'f', description: 'd', parameters: schema },
    { type: 'function', name: 'g', description: 'd', parameters: schema, defer_loading: true },
    { type: 'custom', name: 'p', description: 'd', format: { type: 'grammar', syntax: 'lark', definition: 'g' } },
    { type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'function', name: 'm', parameters: schema }] },
    { type: 'tool_search', execution: 'client', description: 'd', parameters: {} },
    { type: 'mcp', server_label: 's', server_url: 'https://a.test/mcp', headers: { a: 'b' } },
  ],
  tool_choice: { type: 'function', name: 'f' },
  reasoning: { effort: 'low', summary: 'auto' },
  text: { format: { type: 'json_schema', name: 'r', description: 'd', schema } },
  metadata: { a: 'b' },
  client_metadata: { a: 'b' },
  context_management: [{ type: 'compaction' }],
  user: 'u',
}
const messages = {
  model: 'm',
  max_tokens: 100,
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=1; cch=2' },
    { type: 'text', text: 's' },
  ],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        {
          type: 'document',
          title: 't',
          context: 'c',
          source: { type: 'base64', media_type: 'application/pdf', data: pdf },
        },
        { type: 'document', source: { type: 'base64', media_type: 'text/plain', data: 'YWJj' } },
        { type: 'document', title: 't', source: { type: 'text', media_type: 'text/plain', data: 'd' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'd' }] } },
        { type: 'search_result', title: 't', source: 's', content: [{ type: 'text', text: 'd' }] },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 't', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
        { type: 'text', text: 'a', citations: [{ type: 'char_location', cited_text: 'c' }] },
        { type: 'tool_use', id: 't1', name: 'f', input: { a: 'b' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'x' }] }] },
  ],
  tools: [
    { name: 'f', description: 'd', input_schema: schema, input_examples: [{ a: 'b' }] },
    { name: 'g', description: 'd', input_schema: schema, defer_loading: true },
    { type: 'bash_20250124', name: 'bash' },
    { type: 'web_search_20250305', name: 'web_search', user_location: { city: 'c' } },
  ],
  tool_choice: { type: 'auto' },
  thinking: { type: 'adaptive' },
  metadata: { user_id: 'u' },
  stop_sequences: ['s'],
  output_config: { effort: 'low', format: { type: 'json_schema', schema } },
  mcp_servers: [{ type: 'url', url: 'https://a.test/mcp', name: 'n', authorization_token: 't' }],
  context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
}
const geminiSchema = { type: 'OBJECT', properties: { city: { type: 'STRING', description: 'c' } } }
const gemini = {
  systemInstruction: { parts: [{ text: 's' }] },
  contents: [
    { role: 'user', parts: [{ text: 'a' }, { inlineData: { mimeType: 'image/png', data: png } }] },
    {
      role: 'model',
      parts: [
        { text: 't', thought: true },
        { text: 'a', thoughtSignature: 'c2ln' },
        { functionCall: { id: 'c1', name: 'f', args: { a: 'b' } }, thoughtSignature: 'c2ln' },
      ],
    },
    { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'f', response: { output: 'x', more: ['y'] } } }] },
    { role: 'user', parts: [{ inlineData: { mimeType: 'application/pdf', data: pdf } }, { text: 'a' }] },
    { role: 'user', parts: [{ fileData: { mimeType: 'image/png', fileUri: 'https://a.test/a.png' } }] },
  ],
  tools: [{ functionDeclarations: [{ name: 'f', description: 'd', parameters: geminiSchema }] }],
  toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
  safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  generationConfig: {
    stopSequences: ['s'],
    responseMimeType: 'application/json',
    responseSchema: geminiSchema,
    thinkingConfig: { thinkingLevel: 'LOW' },
  },
}
const decisions = {
  model: 'm',
  input: [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'a' },
        { type: 'input_json', data: { a: ['b'] } },
      ],
    },
    { role: 'assistant', content: 'a' },
    { role: 'user', content: [{ type: 'input_image', image_url: `data:image/png;base64,${png}` }] },
  ],
  questions: [
    {
      type: 'predicate',
      name: 'n',
      instructions: [
        { type: 'input_text', text: 'a' },
        { type: 'input_json', data: [{}] },
      ],
    },
    { type: 'choice', instructions: 'i', choices: [{ value: 'a', description: 'd' }, { value: 'b' }] },
    { type: 'score', instructions: 'i', levels: [{ label: 'a' }, { label: 'b', description: 'd' }] },
  ],
  prompt_cache_options: { mode: 'explicit' },
}
const bodies: Readonly<Record<Dialect, object>> = { chat, native, responses, messages, gemini, decisions }

type Path = readonly (string | number)[]

/** Returns the paths of all strings, and of all objects, of a body. */
function getPaths(value: unknown, path: Path = []): { readonly texts: Path[]; readonly objects: Path[] } {
  if (typeof value === 'string') return { texts: [path], objects: [] }
  if (typeof value !== 'object' || value === null) return { texts: [], objects: [] }
  const inner = Object.entries(value).map(([key, item]) =>
    getPaths(item, [...path, Array.isArray(value) ? Number(key) : key]),
  )
  return {
    texts: inner.flatMap(({ texts }) => texts),
    objects: [...(Array.isArray(value) ? [] : [path]), ...inner.flatMap(({ objects }) => objects)],
  }
}

function withValue(value: unknown, [key, ...rest]: Path, set: (old: unknown) => unknown): unknown {
  if (key === undefined) return set(value)
  if (Array.isArray(value)) return value.map((item, at) => (at === key ? withValue(item, rest, set) : item))
  const fields = { ...Object(value) }
  return { ...fields, [key]: withValue(fields[key], rest, set) }
}

/** Spellings of a text in a body: as a string, in JSON within a string, in a URL, in a name, in base64. */
function spellings(text: string): readonly string[] {
  const name = text.replaceAll(' ', '_')
  return [text, encodeURIComponent(text), name, Buffer.from(text).toString('base64').slice(0, -4)]
}

const keys = [
  'id',
  'status',
  'type',
  'call_id',
  'encrypted_content',
  'signature',
  'headers',
  'name',
  'role',
  'note',
  'data',
]
const starts = ['', 'data:', 'data:text/plain,', 'data:image/png;base64,', 'data:application/pdf;base64,']

const places = (Object.keys(bodies) as Dialect[]).flatMap(dialect => {
  const { texts, objects } = getPaths(bodies[dialect])
  return [
    ...texts.map(path => ({ dialect, path, isText: true })),
    ...objects.map(path => ({ dialect, path, isText: false })),
  ]
})

const written = fc.record({
  place: fc.constantFrom(...places),
  key: fc.constantFrom(...keys, canary),
  start: fc.constantFrom(...starts),
  isDeep: fc.boolean(),
  isBase64: fc.boolean(),
})

/** Texts, thoughts and arguments of an assistant, by their path. */
const outputs = /^messages\.(?:1\.content\.[034]|2)|^input\.[13]|^contents\.1\./

/** Returns a body with a text in one place, or null if the gateway rejects it. */
function requestWith(
  { place, key, start, isDeep, isBase64 }: Returned<typeof written>,
  text: string,
): ChatRequest | null {
  const own = isBase64 && start !== '' ? start + Buffer.from(text).toString('base64') : start + text
  const inner = key === canary ? { [text]: 'x' } : { [key]: isDeep ? [{ [key]: own }] : own }
  const body = withValue(bodies[place.dialect], place.path, old => (place.isText ? own : { ...Object(old), ...inner }))
  try {
    return parsed(place.dialect, Object(body), new Headers())
  } catch (thrown) {
    if (thrown instanceof GatewayError) return null
    throw thrown
  }
}

type Returned<A> = A extends fc.Arbitrary<infer T> ? T : never

function sentBodies(request: ChatRequest): readonly string[] {
  return providers.flatMap(([provider, model]) => {
    const { needs = [], dialect } = request.source ?? {}
    const canServe = needs.length === 0 || provider.takesSource?.(model).some(item => item === dialect)
    if (!canServe) return []
    const asked = { request, model, outputCap: 100, stream: false }
    const form = dialect === 'decisions' ? provider.decisions?.(asked) : provider
    return form === undefined ? [] : [form.toRequest(asked, access).body]
  })
}

const moderation = moderationFor({
  rules: [{ id: 'canary', category: 'illegal', reason: 'canary', patterns: ['zyzzyva quokka'], expressions: [] }],
})
const deps: ModerateDeps = { moderation, log: { warn() {} } }

function isBlocked(request: ChatRequest): Promise<boolean> {
  return moderate(deps, request, { id: 'req_1', signal: new AbortController().signal }).then(
    () => false,
    () => true,
  )
}

test('moderate: blocks a canary in each place from which it reaches a provider', async () => {
  let reached = 0
  const passed: string[] = []
  await fc.assert(
    fc.asyncProperty(written, async item => {
      const request = requestWith(item, canary)
      // A model's output is read as it is written: decoding it would block its own words.
      if (request === null || (item.isBase64 && outputs.test(item.place.path.join('.')))) return
      if (!sentBodies(request).some(body => spellings(canary).some(text => body.includes(text)))) return
      reached++
      if (!(await isBlocked(request))) passed.push(JSON.stringify(item))
    }),
    { numRuns: 1_500 },
  )
  expect(passed).toEqual([])
  expect(reached).toBeGreaterThan(500)
}, 60_000)

test.each(['headers', 'authorization', 'signature', 'encrypted_content', 'defer_loading'])(
  'moderate: reads arguments of a call whose name is %s elsewhere',
  async key => {
    const args = key === 'defer_loading' ? { [key]: true, a: canary } : { [key]: canary }
    const [user] = gemini.contents
    const call = { role: 'model', parts: [{ functionCall: { name: 'f', args } }] }
    expect(await isBlocked(parsed('gemini', { contents: [user, call, user] }, new Headers()))).toBe(true)
  },
)

test('estimateInputTokens: covers a long text in each place from which it reaches a provider', () => {
  const long = Array.from({ length: 400 }, (_, at) => `quokka${at}`).join(' ')
  const { tokens } = countTokens([long])
  let reached = 0
  fc.assert(
    fc.property(written, item => {
      const request = requestWith(item, long)
      if (request === null) return
      const most = Math.max(0, ...sentBodies(request).map(body => body.split(long).length - 1))
      if (most === 0) return
      reached++
      const reserved = estimateInputTokens(request, 'openai') + estimateOpaqueTokens(request, 'openai')
      expect(reserved).toBeGreaterThan(most * tokens * 0.99)
    }),
    { numRuns: 1_500 },
  )
  expect(reached).toBeGreaterThan(200)
}, 60_000)
