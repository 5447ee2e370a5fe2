/** Chat Completions, Responses and Messages as a provider has them, whole or streamed, for the scripted agent. */
import type { UpstreamAnswer, UpstreamRequest } from '../../harness/upstream.ts'

export type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const getList = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])
const getText = (value: unknown): string => {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(getText).join('\n')
  return isFields(value) ? getText(value.text ?? value.content ?? value.output ?? '') : ''
}

export type OfferedTool = {
  readonly name: string
  readonly namespace: string | null
  readonly kind: 'function' | 'custom'
  readonly properties: Fields
}
/** A turn of the conversation: text of the user, the result of a tool, or anything else. */
type Entry = { readonly kind: 'user' | 'result' | 'other'; readonly text: string }
export type Turn = {
  readonly model: string
  readonly stream: boolean
  readonly effort: unknown
  readonly tools: readonly OfferedTool[]
  readonly entries: readonly Entry[]
  /** Reasoning that the client sent back. */
  readonly replayed: readonly string[]
}
type Call = { readonly id: string; readonly tool: OfferedTool; readonly input: string | Fields }
export type Output = { readonly reasoning: string; readonly text: string; readonly call: Call | null }

type Wire = {
  read(body: Fields): Turn
  write(turn: Turn, output: Output, request: UpstreamRequest): UpstreamAnswer
}

/** Returns the wire format of a path; null = none. */
export function findWire(path: string): Wire | null {
  if (path.includes('/chat/completions')) return chatCompletions
  if (path.includes('/responses')) return responses
  return /\/messages(\?|$)/.test(path) ? messages : null
}

const getProperties = (schema: unknown): Fields =>
  isFields(schema) && isFields(schema.properties) ? schema.properties : {}

const chatCompletions: Wire = {
  read: body => ({
    model: String(body.model),
    stream: body.stream === true,
    effort: body.reasoning_effort,
    tools: getList(body.tools).flatMap(({ function: own }) =>
      isFields(own)
        ? [{ name: String(own.name), namespace: null, kind: 'function', properties: getProperties(own.parameters) }]
        : [],
    ),
    entries: getList(body.messages).map(({ role, content }) => ({
      kind: role === 'user' ? 'user' : role === 'tool' ? 'result' : 'other',
      text: getText(content),
    })),
    replayed: getList(body.messages).flatMap(({ reasoning_content: text }) => (typeof text === 'string' ? [text] : [])),
  }),
  write({ model, stream }, { reasoning, text, call }) {
    const calls = call && [
      {
        index: 0,
        id: call.id,
        type: 'function',
        function: { name: call.tool.name, arguments: JSON.stringify(call.input) },
      },
    ]
    const message = {
      role: 'assistant',
      reasoning_content: reasoning,
      content: text,
      ...(calls && { tool_calls: calls }),
    }
    const finish_reason = call === null ? 'stop' : 'tool_calls'
    const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
    const own = { id: 'chatcmpl-1', model, created: 1 }
    if (!stream)
      return json({ ...own, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage })
    const chunk = (fields: Fields) =>
      `data: ${JSON.stringify({ ...own, object: 'chat.completion.chunk', ...fields })}\n\n`
    const choice = (delta: Fields, end: string | null = null) =>
      chunk({ choices: [{ index: 0, delta, finish_reason: end }] })
    const { tool_calls, ...begin } = message
    return events([
      choice({ ...begin, content: '' }),
      ...(tool_calls ? [choice({ tool_calls })] : halves(text).map(content => choice({ content }))),
      choice({}, finish_reason),
      chunk({ choices: [], usage }),
      'data: [DONE]\n\n',
    ])
  },
}

const messages: Wire = {
  read: body => ({
    model: String(body.model),
    stream: body.stream === true,
    effort: isFields(body.output_config) ? body.output_config.effort : undefined,
    tools: getList(body.tools).map(({ name, input_schema }) => ({
      name: String(name),
      namespace: null,
      kind: 'function',
      properties: getProperties(input_schema),
    })),
    entries: getList(body.messages).flatMap(({ role, content }): Entry[] =>
      typeof content === 'string'
        ? [{ kind: role === 'user' ? 'user' : 'other', text: content }]
        : getList(content).map(block => ({
            kind: block.type === 'tool_result' ? 'result' : role === 'user' && block.type === 'text' ? 'user' : 'other',
            text: getText(block),
          })),
    ),
    replayed: getList(body.messages)
      .flatMap(({ content }) => getList(content))
      .flatMap(({ type, signature }) => (type === 'thinking' ? [String(signature)] : [])),
  }),
  write({ model, stream }, { reasoning, text, call }, { index }) {
    const thinking = { type: 'thinking', thinking: reasoning, signature: `signature-${index}` }
    const input = call !== null && typeof call.input !== 'string' ? call.input : {}
    const last =
      call === null ? { type: 'text', text } : { type: 'tool_use', id: `toolu_${index}`, name: call.tool.name, input }
    const stop_reason = call === null ? 'end_turn' : 'tool_use'
    const own = { id: `msg_${index}`, type: 'message', role: 'assistant', model, stop_sequence: null }
    const usage = { input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
    if (!stream) return json({ ...own, content: [thinking, last], stop_reason, usage })
    const event = (type: string, fields: Fields) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
    const delta = (at: number, fields: Fields) => event('content_block_delta', { index: at, delta: fields })
    return events([
      event('message_start', { message: { ...own, content: [], stop_reason: null, usage } }),
      event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
      delta(0, { type: 'thinking_delta', thinking: reasoning }),
      delta(0, { type: 'signature_delta', signature: thinking.signature }),
      event('content_block_stop', { index: 0 }),
      event('content_block_start', {
        index: 1,
        content_block: call === null ? { type: 'text', text: '' } : { ...last, input: {} },
      }),
      ...(call === null
        ? halves(text).map(half => delta(1, { type: 'text_delta', text: half }))
        : halves(JSON.stringify(input)).map(half => delta(1, { type: 'input_json_delta', partial_json: half }))),
      event('content_block_stop', { index: 1 }),
      event('message_delta', { delta: { stop_reason, stop_sequence: null }, usage }),
      event('message_stop', {}),
    ])
  },
}

const responses: Wire = {
  read: body => ({
    model: String(body.model),
    stream: body.stream === true,
    effort: isFields(body.reasoning) ? body.reasoning.effort : undefined,
    tools: [...getList(body.tools), ...getList(body.input).flatMap(({ tools }) => getList(tools))].flatMap(
      offeredTools,
    ),
    entries: (typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : getList(body.input)).map(
      (item: Fields) => ({
        kind: item.role === 'user' ? 'user' : String(item.type).endsWith('_call_output') ? 'result' : 'other',
        text: getText(item.content ?? item.output),
      }),
    ),
    replayed: getList(body.input).flatMap(({ type, encrypted_content: sealed }) =>
      type === 'reasoning' ? [String(sealed)] : [],
    ),
  }),
  write({ model, stream }, { text, call }, { index }) {
    const reasoning = { id: `rs_${index}`, type: 'reasoning', summary: [], encrypted_content: `sealed-${index}` }
    const item = call === null ? messageItem(text, index) : callItem(call, index)
    const usage = {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 20,
      output_tokens_details: { reasoning_tokens: 5 },
      total_tokens: 120,
    }
    const base = {
      id: `resp_${index}`,
      object: 'response',
      created_at: 1,
      model,
      error: null,
      incomplete_details: null,
    }
    const whole = { ...base, status: 'completed', output: [reasoning, item], usage }
    if (!stream) return json(whole)
    let sequence_number = 0
    const event = (type: string, fields: Fields) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...fields })}\n\n`
    const started = { ...base, status: 'in_progress', output: [], usage: null }
    return events([
      event('response.created', { response: started }),
      event('response.in_progress', { response: started }),
      event('response.output_item.added', { output_index: 0, item: { ...reasoning, encrypted_content: null } }),
      event('response.output_item.done', { output_index: 0, item: reasoning }),
      ...(call === null ? textEvents(event, item, text) : callEvents(event, item, call)),
      event('response.completed', { response: whole }),
    ])
  },
}

type EventWriter = (type: string, fields: Fields) => string

function messageItem(text: string, index: number): Fields & { readonly id: string } {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
  return { id: `msg_${index}`, type: 'message', role: 'assistant', status: 'completed', content }
}

function callItem({ id, tool, input }: Call, index: number): Fields & { readonly id: string } {
  const own = {
    call_id: id,
    name: tool.name,
    ...(tool.namespace !== null && tool.namespace !== 'functions' && { namespace: tool.namespace }),
    status: 'completed',
  }
  return typeof input === 'string'
    ? { id: `ctc_${index}`, type: 'custom_tool_call', ...own, input }
    : { id: `fc_${index}`, type: 'function_call', ...own, arguments: JSON.stringify(input) }
}

function textEvents(event: EventWriter, item: Fields & { readonly id: string }, text: string): string[] {
  const place = { item_id: item.id, output_index: 1, content_index: 0 }
  const part = { type: 'output_text', text, annotations: [], logprobs: [] }
  return [
    event('response.output_item.added', { output_index: 1, item: { ...item, status: 'in_progress', content: [] } }),
    event('response.content_part.added', { ...place, part: { ...part, text: '' } }),
    ...halves(text).map(delta => event('response.output_text.delta', { ...place, delta, logprobs: [] })),
    event('response.output_text.done', { ...place, text, logprobs: [] }),
    event('response.content_part.done', { ...place, part }),
    event('response.output_item.done', { output_index: 1, item }),
  ]
}

function callEvents(event: EventWriter, item: Fields & { readonly id: string }, { tool, input }: Call): string[] {
  const place = { item_id: item.id, output_index: 1 }
  const isCustom = typeof input === 'string'
  const whole = isCustom ? input : JSON.stringify(input)
  const name = isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  const empty = isCustom ? { input: '' } : { arguments: '' }
  return [
    event('response.output_item.added', { output_index: 1, item: { ...item, ...empty, status: 'in_progress' } }),
    ...halves(whole).map(delta => event(`${name}.delta`, { ...place, delta })),
    event(`${name}.done`, { ...place, ...(isCustom ? { input: whole } : { name: tool.name, arguments: whole }) }),
    event('response.output_item.done', { output_index: 1, item }),
  ]
}

function offeredTools(tool: Fields): OfferedTool[] {
  const name = String(tool.name)
  if (tool.type === 'namespace')
    return getList(tool.tools)
      .flatMap(offeredTools)
      .map(member => ({ ...member, namespace: name }))
  if (tool.type === 'custom') return [{ name, namespace: null, kind: 'custom', properties: {} }]
  return tool.type === 'function'
    ? [{ name, namespace: null, kind: 'function', properties: getProperties(tool.parameters) }]
    : []
}

const halves = (text: string) =>
  [text.slice(0, text.length / 2), text.slice(text.length / 2)].filter(half => half !== '')
const json = (body: unknown): UpstreamAnswer => ({
  headers: { 'content-type': 'application/json' },
  pieces: [JSON.stringify(body)],
})
const events = (pieces: readonly string[]): UpstreamAnswer => ({
  headers: { 'content-type': 'text/event-stream' },
  framing: 'chunked',
  pieces,
})
