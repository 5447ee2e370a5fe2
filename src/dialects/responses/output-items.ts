/** Output items and their wire format in each status. */
import type { ReasoningItem } from '../../core/chat/chat.ts'
import type { TokenLogprob, TypedPart } from '../../core/chat/chat-events.ts'
import { parseModelJson, parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import type { CustomInput } from '../custom-tools.ts'
import { type Fields, isFields } from '../foreign-objects.ts'
import type { ToolOrigin } from './tools.ts'

export type OutputOptions = {
  /** Part of the response ID from which item IDs are derived. */
  readonly stem: string
  readonly origins: ReadonlyMap<string, ToolOrigin>
  readonly seal: (item: ReasoningItem) => string
  /** The client sends reasoning back. */
  readonly includesReasoning: boolean
  /** The client refers to items of earlier turns by their ID. */
  readonly refersToItems: boolean
  /** Receives each event of a stream, its fields as JSON without braces; absent for a JSON body. */
  readonly emit?: (type: string, fields: string) => void
}

/** Providers that reject reasoning without a signature. */
export const signingProviders: ReadonlySet<string> = new Set(['openai', 'anthropic', 'google'])

export type Part = {
  readonly type: 'output_text' | 'refusal'
  /** Code points of output text before it. */
  readonly from: number
  text: string
  readonly annotations: unknown[]
  readonly tokens: TokenLogprob[]
}
export type Status = 'in_progress' | 'completed' | 'incomplete'
export type MessageOutput = { readonly kind: 'message'; readonly phase: string | null; readonly parts: Part[] }
export type ReasoningOutput = { readonly kind: 'reasoning'; text: string; sealed: string | null }
export type CallOutput = {
  readonly kind: 'call'
  readonly origin: ToolOrigin
  readonly callId: string
  text: string
  readonly input: CustomInput | null
}
export type WholeOutput = { readonly kind: 'whole'; readonly json: Fields }
export type Base = { readonly id: string; readonly place: number; status: Status }
export type Item = Base & (MessageOutput | ReasoningOutput | CallOutput | WholeOutput)

/** Returns the wire format of an item. */
export function shown(item: Item, status: Status): Fields {
  const { id } = item
  switch (item.kind) {
    case 'message':
      return {
        ...{ id, type: 'message', status, role: 'assistant' },
        ...(item.phase === null ? {} : { phase: item.phase }),
        content: item.parts.map(shownPart),
      }
    case 'reasoning': {
      const summary = item.text === '' ? [] : [summaryPart(item.text)]
      return { id, type: 'reasoning', summary, ...(item.sealed === null ? {} : { encrypted_content: item.sealed }) }
    }
    case 'call':
      return shownCall(item, status)
    case 'whole':
      return { ...item.json, id: typeof item.json.id === 'string' && item.json.id !== '' ? item.json.id : id }
  }
}

function shownCall({ id, origin, callId, text }: Base & CallOutput, status: Status): Fields {
  const { kind, name, namespace } = origin
  const within = namespace === null ? {} : { namespace }
  switch (kind) {
    case 'function':
      return { id, type: 'function_call', status, call_id: callId, name, ...within, arguments: text }
    case 'custom':
      return { id, type: 'custom_tool_call', status, call_id: callId, name, ...within, input: text }
    case 'tool_search': {
      const given = parseModelJson(text)
      return {
        id,
        type: 'tool_search_call',
        status,
        call_id: callId,
        execution: 'client',
        arguments: isFields(given) ? given : {},
      }
    }
  }
}

/** Returns the place of the last content part of a message, as events name it. */
export function lastPart({ id, place, parts }: Base & MessageOutput): Fields {
  return { item_id: id, output_index: place, content_index: parts.length - 1 }
}

/** Returns the wire format of a content part. */
export function shownPart({ type, text, annotations, tokens }: Part): Fields {
  return type === 'refusal'
    ? { type, refusal: text }
    : { type, text, annotations: [...annotations], logprobs: [...tokens] }
}

/** Returns the annotation of a text part; null = this API has no form for the citation. */
export function shownCitation({ source, own }: TypedPart<'citation'>, { from, text }: Part): Fields | null {
  const end = Math.min(source.end - from, [...text].length)
  const range = { start_index: Math.min(source.start - from, end), end_index: end }
  const value = own?.dialect === 'responses' ? parseUntrustedJson(own.json) : null
  if (isFields(value)) return { ...value, ...('start_index' in value && 'end_index' in value ? range : {}) }
  const { url, title } = source
  return url === null ? null : { type: 'url_citation', ...range, url, title: title ?? url }
}

/** Returns a part of a reasoning summary. */
export function summaryPart(text: string): Fields {
  return { type: 'summary_text', text }
}

/** Returns a log probability without bytes, as text events have it. */
export function shortLogprob({ token, logprob, top_logprobs }: TokenLogprob): Fields {
  return { token, logprob, top_logprobs: top_logprobs.map(other => ({ token: other.token, logprob: other.logprob })) }
}

/** Returns false for a call whose arguments are no complete JSON. */
export function isWholeCall({ input, text }: CallOutput): boolean {
  return input === null ? text === '' || isFields(parseUntrustedJson(text)) : input.isComplete()
}
