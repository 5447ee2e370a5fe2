/** Responses of the simulated OpenAI Responses API, as output items and as the events of a stream. */
import { createHash } from 'node:crypto'
import {
  type Frame,
  isWireObject,
  type Output,
  objectsIn,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  textOr,
  type WireObject,
} from './wire-format.ts'

/** Reasoning as only its maker can read it: what comes back is checked, as OpenAI does. */
function encryptedReasoning(text: string): string {
  const bytes = Buffer.from(text)
  return `gAAAA${Buffer.concat([digest(bytes), bytes]).toString('base64url')}`
}

/** Whether a client brings back what it was given. */
export function isOwnReasoning(encrypted: string): boolean {
  const bytes = Buffer.from(encrypted.slice('gAAAA'.length), 'base64url')
  return encrypted.startsWith('gAAAA') && digest(bytes.subarray(digestBytes)).equals(bytes.subarray(0, digestBytes))
}

const digestBytes = 16

function digest(bytes: Uint8Array): Buffer {
  return createHash('sha256').update('simulated reasoning').update(bytes).digest().subarray(0, digestBytes)
}

/** The whole response as one object. */
export function writeResponseObject(
  turn: SimulatedResponse,
  status: string,
  output: readonly WireObject[],
): WireObject {
  const { createdAt, served, usage, outputs } = turn
  const finish = outputs[0]?.finish
  const isCut = status === 'completed' && (finish === 'length' || finish === 'content_filter')
  const reason = finish === 'length' ? 'max_output_tokens' : 'content_filter'
  return {
    id: turn.mint('resp_', 48),
    object: 'response',
    created_at: createdAt,
    status: isCut ? 'incomplete' : status,
    background: false,
    error: null,
    incomplete_details: isCut ? { reason } : null,
    instructions: null,
    max_output_tokens: null,
    model: served,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    service_tier: 'default',
    store: false,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: status === 'in_progress' || usage === null ? null : writeUsage(usage),
    metadata: {},
  }
}

function writeUsage({ input, cached, cacheWrite, output, reasoning }: SimulatedUsage): WireObject {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, ...(cacheWrite === 0 ? {} : { cache_write_tokens: cacheWrite }) },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}

/** The items of the output, each done. */
export function writeItems(turn: SimulatedResponse): readonly WireObject[] {
  const [output] = turn.outputs
  if (output === undefined) return []
  const { reasoning, text, refusal } = output
  return [
    ...(reasoning === '' ? [] : [writeReasoning(turn, reasoning)]),
    ...(text === '' && refusal === null ? [] : [writeMessage(turn, text, refusal)]),
    ...output.calls.map(call => writeCall(turn, call)),
  ]
}

function writeReasoning({ question, mint }: SimulatedResponse, text: string): WireObject {
  return {
    id: mint('rs_', 48),
    type: 'reasoning',
    summary: question.reasoningShown ? [{ type: 'summary_text', text }] : [],
    ...(question.encrypts ? { encrypted_content: encryptedReasoning(text) } : {}),
  }
}

function writeMessage({ mint }: SimulatedResponse, text: string, refusal: string | null): WireObject {
  const part =
    refusal === null ? { type: 'output_text', text, annotations: [], logprobs: [] } : { type: 'refusal', refusal }
  return { id: mint('msg_', 48), type: 'message', status: 'completed', role: 'assistant', content: [part] }
}

function writeCall({ question, mint }: SimulatedResponse, call: Output['calls'][number]): WireObject {
  const { type, name, namespace } = question.declared?.get(call.name) ?? { type: 'function', name: call.name }
  const common = {
    status: 'completed',
    call_id: mint('call_', 24),
    name,
    ...(namespace === undefined ? {} : { namespace }),
  }
  if (type !== 'custom')
    return { id: mint('fc_', 48), type: 'function_call', ...common, arguments: JSON.stringify(call.arguments) }
  const input = isWireObject(call.arguments) ? textOr(call.arguments.input, '') : ''
  return { id: mint('ctc_', 48), type: 'custom_tool_call', ...common, input }
}

/** The output as events. */
export function* writeResponseFrames(turn: SimulatedResponse): Generator<Frame> {
  const items = writeItems(turn)
  const opened = writeResponseObject(turn, 'in_progress', [])
  let number = 0
  let hasContent = false
  const frame = (part: Frame['part'], type: string, fields: WireObject): Frame => {
    hasContent ||= part === 'content'
    return {
      part: part === 'opening' && hasContent ? 'content' : part,
      name: type,
      data: JSON.stringify({ type, sequence_number: number++, ...fields }),
    }
  }
  yield frame('opening', 'response.created', { response: opened })
  yield frame('opening', 'response.in_progress', { response: opened })
  for (const [place, item] of items.entries()) {
    yield frame('opening', 'response.output_item.added', { output_index: place, item: begun(item) })
    for (const { part, type, fields } of writeContent(item, turn.chunkCharacters))
      yield frame(part, type, { item_id: item.id, output_index: place, ...fields })
    yield frame('opening', 'response.output_item.done', { output_index: place, item })
  }
  const whole: WireObject = { ...writeResponseObject(turn, 'completed', items), id: opened.id }
  yield frame('closing', `response.${String(whole.status)}`, { response: whole })
}

type Event = { readonly part: Frame['part']; readonly type: string; readonly fields: WireObject }

function begun(item: WireObject): WireObject {
  switch (item.type) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] }
    case 'function_call':
      return { ...item, status: 'in_progress', arguments: '' }
    case 'custom_tool_call':
      return { ...item, status: 'in_progress', input: '' }
    default:
      return { id: item.id, type: item.type, summary: [] }
  }
}

function* writeContent(item: WireObject, characters: number): Generator<Event> {
  switch (item.type) {
    case 'reasoning': {
      const [part] = objectsIn(item.summary)
      if (part === undefined) return
      yield {
        part: 'opening',
        type: 'response.reasoning_summary_part.added',
        fields: { summary_index: 0, part: { ...part, text: '' } },
      }
      yield* deltas('response.reasoning_summary_text', textOr(part.text, ''), characters, { summary_index: 0 }, 'text')
      yield { part: 'content', type: 'response.reasoning_summary_part.done', fields: { summary_index: 0, part } }
      return
    }
    case 'message': {
      const [part] = objectsIn(item.content)
      if (part === undefined) return
      const isRefusal = part.type === 'refusal'
      const at = { content_index: 0 }
      yield {
        part: 'opening',
        type: 'response.content_part.added',
        fields: { ...at, part: { ...part, [isRefusal ? 'refusal' : 'text']: '' } },
      }
      if (isRefusal) yield* deltas('response.refusal', textOr(part.refusal, ''), characters, at, 'refusal')
      else yield* deltas('response.output_text', textOr(part.text, ''), characters, { ...at, logprobs: [] }, 'text')
      yield { part: 'content', type: 'response.content_part.done', fields: { ...at, part } }
      return
    }
    case 'function_call':
      yield* deltas('response.function_call_arguments', String(item.arguments), characters, {}, 'arguments')
      return
    case 'custom_tool_call':
      yield* deltas('response.custom_tool_call_input', String(item.input), characters, {}, 'input')
  }
}

function* deltas(type: string, text: string, characters: number, at: WireObject, whole: string): Generator<Event> {
  for (const delta of slices(text, characters))
    yield { part: 'content', type: `${type}.delta`, fields: { ...at, delta } }
  yield { part: 'content', type: `${type}.done`, fields: { ...at, [whole]: text } }
}
