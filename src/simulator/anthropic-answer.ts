/** Responses of Anthropic Messages: one JSON object, or the frames of a stream. */
import { redactedBlock, searchBlocks, signed } from './anthropic-blocks.ts'
import {
  type Answer,
  type Frame,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  type WireObject,
} from './wire-format.ts'

export function anthropicCompletion(turn: SimulatedResponse): unknown {
  const { answers, usage, mint, served } = turn
  const [answer] = answers
  if (answer === undefined) return null
  return {
    id: mint('msg_01', 22),
    type: 'message',
    role: 'assistant',
    model: served,
    content: blocksSaid(answer, turn).map(({ block }) => block),
    ...ending(answer),
    ...(usage === null ? {} : { usage: { ...usageBody(usage), ...searchUsage(turn) } }),
  }
}

type Said = { readonly block: WireObject; readonly start: WireObject; readonly deltas: Iterable<WireObject> }

/** Returns each block in its JSON form, its opening in a stream, and its deltas. */
function blocksSaid(
  { reasoning, text, calls }: Answer,
  { question, directives, mint, chunkCharacters }: SimulatedResponse,
): readonly Said[] {
  const said: Said[] = []
  const whole = (block: WireObject): Said => ({ block, start: block, deltas: [] })
  const search = directives.server_tool ? searchBlocks(mint, question.userTexts.at(-1) ?? '') : null
  if (reasoning !== '' && directives.redacted) said.push(whole(redactedBlock(mint)))
  else if (reasoning !== '') {
    const thinking = question.reasoningShown ? reasoning : ''
    const signature = signed(mint, thinking)
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

function ending({ finish, refusal, stopSequence }: Answer) {
  const refused = refusal !== null || finish === 'content_filter'
  const reasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' } as const
  return {
    stop_reason: refused ? 'refusal' : finish === 'stop' && stopSequence !== null ? 'stop_sequence' : reasons[finish],
    stop_sequence: stopSequence,
    stop_details: refused ? { type: 'refusal', category: 'simulated', explanation: refusal } : null,
  }
}

function usageBody({ input, cached, cacheWrite, hourCacheWrite = 0, output, reasoning }: SimulatedUsage) {
  const countsAreNumbers = typeof input === 'number' && typeof cached === 'number' && typeof cacheWrite === 'number'
  return {
    input_tokens: countsAreNumbers ? input - cached - cacheWrite : input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    cache_creation: {
      ephemeral_5m_input_tokens: typeof cacheWrite === 'number' ? cacheWrite - hourCacheWrite : cacheWrite,
      ephemeral_1h_input_tokens: hourCacheWrite,
    },
    output_tokens: output,
    ...(reasoning === 0 ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
    service_tier: 'standard',
    inference_geo: 'not_available',
  }
}

function searchUsage({ directives }: SimulatedResponse) {
  return directives.server_tool ? { server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } } : {}
}

export function* anthropicFrames(turn: SimulatedResponse): Generator<Frame> {
  const { answers, usage, mint, served } = turn
  const [answer] = answers
  if (answer === undefined) return
  const opened =
    usage === null ? {} : { usage: usageBody({ ...usage, output: usage.output === 0 ? 0 : 1, reasoning: 0 }) }
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
  for (const [index, { start, deltas }] of blocksSaid(answer, turn).entries()) {
    yield frame(index === 0 ? 'opening' : 'content', 'content_block_start', { index, content_block: start })
    if (index === 0) yield { part: 'opening', name: 'ping', data: '{"type": "ping"}' }
    for (const delta of deltas) yield frame('content', 'content_block_delta', { index, delta })
    yield frame('content', 'content_block_stop', { index })
  }
  const counts = usage === null ? {} : { usage: { ...usageBody(usage), ...searchUsage(turn) } }
  yield frame('closing', 'message_delta', { delta: ending(answer), ...counts })
  yield frame('closing', 'message_stop', {})
}

/** The real API pads its events with spaces before the last brace. */
function frame(part: Frame['part'], type: string, fields: WireObject): Frame {
  const data = JSON.stringify({ type, ...fields })
  return { part, name: type, data: `${data.slice(0, -1)}${' '.repeat(data.length % 16)}}` }
}
