/** Responses of Anthropic Messages: one JSON object, or the frames of a stream. */
import { redactedText, sign } from './anthropic-checks.ts'
import {
  type Frame,
  type Mint,
  type Output,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  type WireObject,
} from './wire-format.ts'

export function writeAnthropicMessage(turn: SimulatedResponse): unknown {
  const { outputs, usage, mint, served } = turn
  const [output] = outputs
  if (output === undefined) return null
  return {
    id: mint('msg_01', 22),
    type: 'message',
    role: 'assistant',
    model: served,
    content: writeBlocks(output, turn).map(({ block }) => block),
    ...ending(output),
    ...(usage === null ? {} : { usage: { ...writeUsage(usage), ...countSearches(turn) } }),
  }
}

type Block = { readonly block: WireObject; readonly start: WireObject; readonly deltas: Iterable<WireObject> }

/** Returns each block in its JSON form, its opening in a stream, and its deltas. */
function writeBlocks(
  { reasoning, text, calls }: Output,
  { question, directives, mint, chunkCharacters }: SimulatedResponse,
): readonly Block[] {
  const said: Block[] = []
  const whole = (block: WireObject): Block => ({ block, start: block, deltas: [] })
  const search = directives.server_tool ? searchBlocks(mint, question.userTexts.at(-1) ?? '') : null
  if (reasoning !== '' && directives.redacted)
    said.push(whole({ type: 'redacted_thinking', data: sign(mint, redactedText) }))
  else if (reasoning !== '') {
    const thinking = question.reasoningShown ? reasoning : ''
    const signature = sign(mint, thinking)
    said.push({
      block: { type: 'thinking', thinking, signature },
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        ...[...slices(thinking, chunkCharacters)].map(piece => ({ type: 'thinking_delta', thinking: piece })),
        { type: 'signature_delta', signature },
      ],
    })
  }
  if (search !== null) {
    const input = JSON.stringify(search.use.input)
    const deltas = [{ type: 'input_json_delta', partial_json: input }]
    said.push({ block: search.use, start: { ...search.use, input: {} }, deltas }, whole(search.result))
  }
  if (text !== '') {
    const pieces = [...slices(text, chunkCharacters)].map(piece => ({ type: 'text_delta', text: piece }))
    said.push({
      block: search === null ? { type: 'text', text } : { type: 'text', text, citations: [search.citation] },
      start: { type: 'text', text: '' },
      deltas: search === null ? pieces : [...pieces, { type: 'citations_delta', citation: search.citation }],
    })
  }
  for (const call of calls) {
    const opening = { type: 'tool_use', id: mint('toolu_01', 22), name: call.name }
    const pieces = ['', ...slices(JSON.stringify(call.arguments), chunkCharacters)]
    said.push({
      block: { ...opening, input: call.arguments },
      start: { ...opening, input: {} },
      deltas: pieces.map(partial_json => ({ type: 'input_json_delta', partial_json })),
    })
  }
  return said
}

function ending({ finish, refusal, stopSequence }: Output) {
  const refused = refusal !== null || finish === 'content_filter'
  const reasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' } as const
  return {
    stop_reason: refused ? 'refusal' : finish === 'stop' && stopSequence !== null ? 'stop_sequence' : reasons[finish],
    stop_sequence: stopSequence,
    stop_details: refused ? { type: 'refusal', category: 'simulated', explanation: refusal } : null,
  }
}

function writeUsage({ input, cached, cacheWrite, output, reasoning }: SimulatedUsage) {
  return {
    input_tokens: input - cached - cacheWrite,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: output,
    ...(reasoning === 0 ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
    service_tier: 'standard',
    inference_geo: 'not_available',
  }
}

function countSearches({ directives }: SimulatedResponse) {
  return directives.server_tool ? { server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } } : {}
}

export function* writeAnthropicFrames(turn: SimulatedResponse): Generator<Frame> {
  const { outputs, usage, mint, served } = turn
  const [output] = outputs
  if (output === undefined) return
  const opened =
    usage === null ? {} : { usage: writeUsage({ ...usage, output: usage.output === 0 ? 0 : 1, reasoning: 0 }) }
  yield frame('opening', 'message_start', {
    message: {
      model: served,
      id: mint('msg_01', 22),
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...opened,
    },
  })
  for (const [index, { start, deltas }] of writeBlocks(output, turn).entries()) {
    yield frame(index === 0 ? 'opening' : 'content', 'content_block_start', { index, content_block: start })
    if (index === 0) yield { part: 'opening', name: 'ping', data: '{"type": "ping"}' }
    for (const delta of deltas) yield frame('content', 'content_block_delta', { index, delta })
    yield frame('content', 'content_block_stop', { index })
  }
  const counts = usage === null ? {} : { usage: { ...writeUsage(usage), ...countSearches(turn) } }
  yield frame('closing', 'message_delta', { delta: ending(output), ...counts })
  yield frame('closing', 'message_stop', {})
}

/** The real API pads its events with spaces before the last brace. */
function frame(part: Frame['part'], type: string, fields: WireObject): Frame {
  const data = JSON.stringify({ type, ...fields })
  return { part, name: type, data: `${data.slice(0, -1)}${' '.repeat(data.length % 16)}}` }
}

/** A search that ran at the provider, what it found, and a citation of it. */
function searchBlocks(mint: Mint, query: string) {
  const id = mint('srvtoolu_01', 22)
  const page = { url: 'https://example.com/', title: 'Example Domain' }
  return {
    use: { type: 'server_tool_use', id, name: 'web_search', input: { query } },
    result: {
      type: 'web_search_tool_result',
      tool_use_id: id,
      content: [{ type: 'web_search_result', ...page, encrypted_content: mint('Enc', 40), page_age: null }],
    },
    citation: {
      type: 'web_search_result_location',
      cited_text: 'Example',
      ...page,
      encrypted_index: mint('Idx', 20),
    },
  } as const
}
