/** Parses the conversation of a validated body: messages, content parts, tool calls with their results, and cache marks. */
import type { Static } from '@sinclair/typebox'
import type { CacheMark, ContentPart, ImageDetail, Message, ReasoningItem, ToolCall } from '../chat/chat.ts'
import { labeledImage } from '../chat/request-texts.ts'
import { forwardableAddress } from '../validation/public-address.ts'
import { invalidField } from '../validation/validate.ts'
import { getCacheMark, type toolCallSchema, type WireCacheMark } from './part-schemas.ts'

type WirePart =
  | ({ readonly type: 'text' | 'input_text'; readonly text: string } & WireCacheMark)
  | ({
      readonly type: 'image_url'
      readonly image_url: { readonly url: string; readonly detail?: ImageDetail | null }
    } & WireCacheMark)
  | { readonly type: 'image'; readonly url: string; readonly detail?: ImageDetail | null }
  | ({
      readonly type: 'file'
      readonly file: { readonly file_data?: string | null; readonly filename?: string | null }
    } & WireCacheMark)
  | { readonly type: 'refusal'; readonly refusal: string }

type WireContent = string | readonly WirePart[] | null | undefined

/** A validated message of either endpoint. */
type WireMessage = WireCacheMark & WireMessageContent

type WireMessageContent =
  | { readonly role: 'system' | 'developer'; readonly content: WireContent }
  | { readonly role: 'user'; readonly content: WireContent; readonly name?: string | null }
  | {
      readonly role: 'assistant'
      readonly content?: WireContent
      readonly refusal?: string | null
      readonly reasoning_content?: string | null
      readonly reasoning?: string | null
      readonly reasoning_details?: readonly Readonly<Record<string, unknown>>[] | null
      readonly tool_calls?: readonly Static<ReturnType<typeof toolCallSchema>>[] | null
      readonly function_call?: { readonly name: string; readonly arguments: string } | null
      readonly name?: string | null
    }
  | { readonly role: 'tool'; readonly content: WireContent; readonly tool_call_id: string }
  | { readonly role: 'function'; readonly content: WireContent; readonly name: string }

/**
 * Parses the conversation from either `messages` or `prompt`. A tool result must answer a call of the assistant message
 * directly before it, as every upstream requires. Throws `invalid_request`.
 */
export function parseMessages(
  messages: string | readonly WireMessage[] | null,
  prompt: string | null,
  openReasoning: ReasoningReader = () => null,
): readonly Message[] {
  if (messages !== null && prompt !== null)
    throw invalidField('prompt', 'cannot be sent beside `messages`: send one of the two')
  const asked = messages ?? prompt
  if (asked === null) throw invalidField('messages', 'is missing: send an array of messages, or `prompt` with a string')
  if (typeof asked === 'string') return [{ role: 'user', content: [{ type: 'text', text: asked }], name: null }]
  let open: OpenCalls = noCalls
  return asked.flatMap((message, index): Message | Message[] => {
    if (isSystem(message)) {
      open = noCalls
      return systemMessages(message)
    }
    const read = withCacheMark(readMessage(message, index, open, openReasoning), findLastMark(message))
    if (read.role === 'assistant') open = getOpenCalls(read.toolCalls)
    else if (read.role !== 'tool') open = noCalls
    return read
  })
}

/** Calls of the assistant turn that a result may follow: their IDs, and the first ID by name. */
type OpenCalls = { readonly ids: ReadonlySet<string>; readonly idByName: ReadonlyMap<string, string> }

const noCalls: OpenCalls = { ids: new Set(), idByName: new Map() }

function getOpenCalls(calls: readonly ToolCall[]): OpenCalls {
  if (calls.length === 0) return noCalls
  return {
    ids: new Set(calls.map(({ id }) => id)),
    idByName: new Map(calls.toReversed().map(({ name, id }) => [name, id])),
  }
}

type SystemMessage = Extract<WireMessage, { role: 'system' | 'developer' }>

function isSystem(message: WireMessage): message is SystemMessage {
  return message.role === 'system' || message.role === 'developer'
}

/** Returns one message, or one for each part that ends with a cache mark, so that the mark keeps its place. */
function systemMessages(message: SystemMessage): Message | Message[] {
  const { content } = message
  const own = getCacheMark(message)
  if (typeof content === 'string' || !content?.some(part => 'cache_control' in part && part.cache_control != null))
    return { role: 'system', text: getText(content, '\n'), ...own }
  const messages: Message[] = []
  let from = 0
  for (const [at, part] of content.entries()) {
    const mark = 'cache_control' in part ? getCacheMark(part) : {}
    const isLast = at === content.length - 1
    if (mark.cache === undefined && !isLast) continue
    messages.push({ role: 'system', text: getText(content.slice(from, at + 1), '\n'), ...(isLast ? own : {}), ...mark })
    from = at + 1
  }
  return messages
}

/** Returns the mark of a message, or of its last part that has one. User parts keep their own. */
function findLastMark(message: WireMessage): CacheMark | undefined {
  const own = getCacheMark(message).cache
  if (own !== undefined || message.role === 'user' || !Array.isArray(message.content)) return own
  const parts: readonly WirePart[] = message.content
  const marked = parts.findLast(part => 'cache_control' in part && part.cache_control != null)
  return marked !== undefined && 'cache_control' in marked ? getCacheMark(marked).cache : undefined
}

function withCacheMark(message: Message, cache: CacheMark | undefined): Message {
  if (cache === undefined) return message
  if (message.role !== 'user') return { ...message, cache }
  const last = message.content.length - 1
  return { ...message, content: message.content.map((part, at) => (at === last ? { ...part, cache } : part)) }
}

function readMessage(
  message: Exclude<WireMessage, SystemMessage>,
  index: number,
  open: OpenCalls,
  openReasoning: ReasoningReader,
): Message {
  switch (message.role) {
    case 'user':
      return {
        role: 'user',
        content: getParts(message.content, `messages.${index}.content`),
        name: message.name ?? null,
      }
    case 'assistant':
      return {
        role: 'assistant',
        text: getText(message.content, '') || message.refusal || (message.content == null ? null : ''),
        reasoning: message.reasoning_content || message.reasoning || null,
        ...getReasoningItems(message.reasoning_details ?? [], openReasoning),
        toolCalls: readToolCalls(message, index),
        name: message.name ?? null,
      }
    case 'tool': {
      if (open.ids.has(message.tool_call_id))
        return { role: 'tool', callId: message.tool_call_id, text: getText(message.content, '\n') }
      throw invalidField(
        `messages.${index}.tool_call_id`,
        'must be the id of a call in `tool_calls` of the assistant message before it',
      )
    }
    case 'function': {
      const callId = open.idByName.get(message.name)
      if (callId !== undefined) return { role: 'tool', callId, text: getText(message.content, '\n') }
      throw invalidField(
        `messages.${index}.name`,
        'must be the name of the `function_call` in the assistant message before it',
      )
    }
  }
}

/** Returns the reasoning that a client replays; null = not readable. */
export type ReasoningReader = (detail: Readonly<Record<string, unknown>>) => ReasoningItem | null

function getReasoningItems(
  details: readonly Readonly<Record<string, unknown>>[],
  open: ReasoningReader,
): { readonly reasoningItems?: readonly ReasoningItem[] } {
  const reasoningItems = details.map(open).filter(item => item !== null)
  return reasoningItems.length === 0 ? {} : { reasoningItems }
}

function readToolCalls(message: WireMessage & { role: 'assistant' }, index: number): readonly ToolCall[] {
  const calls = (message.tool_calls ?? []).map(call => ({
    id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
    signature: call.extra_content?.google?.thought_signature ?? null,
  }))
  if (message.function_call == null) return calls
  // A deprecated call has no ID of its own.
  return [...calls, { ...message.function_call, id: `call_${index}`, signature: null }]
}

function getText(content: WireContent, between: string): string {
  if (typeof content === 'string') return content
  return (content ?? []).map(part => ('text' in part ? part.text : 'refusal' in part ? part.refusal : '')).join(between)
}

function getParts(content: WireContent, param: string): readonly ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return (content ?? []).flatMap((part, index) => readPart(part, `${param}.${index}`))
}

function readPart(part: WirePart, param: string): ContentPart | [] {
  switch (part.type) {
    case 'text':
    case 'input_text':
      return { type: 'text', text: part.text, ...getCacheMark(part) }
    case 'image_url': {
      const { url, detail } = part.image_url
      return {
        type: 'image',
        url: fetchable(url, `${param}.image_url.url`),
        detail: detail ?? null,
        ...getCacheMark(part),
      }
    }
    case 'image':
      return { type: 'image', url: fetchable(part.url, `${param}.url`), detail: part.detail ?? null }
    case 'refusal':
      return []
    case 'file':
      return {
        type: 'file',
        url: getDocument(part.file.file_data, `${param}.file.file_data`),
        name: part.file.filename ?? null,
        ...getCacheMark(part),
      }
  }
}

/**
 * Returns the URL in the form passed to an upstream, which would fetch it from its own network. Throws
 * `invalid_request`.
 */
export function fetchable(url: string, param: string): string {
  const address = forwardableAddress(url)
  if (address !== null) return labeledImage(address)
  throw invalidField(param, 'must be a public http or https URL on port 80 or 443 without credentials, or a data: URL')
}

function getDocument(data: string | null | undefined, param: string): string {
  if (data == null) throw invalidField(param, 'is required: send the document as a `data:application/pdf;base64,` URL')
  return data
}
