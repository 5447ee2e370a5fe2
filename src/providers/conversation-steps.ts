/**
 * Normalizes a conversation as upstreams require it: each tool call has its result, none has two. For upstreams with
 * turns: alternating, starting with the user, none empty.
 */
import type { CacheMark, ContentPart, FilePart, Message, ReasoningItem, ToolCall } from '../core/chat/chat.ts'
import { isText } from './json.ts'

/** An inline image. `kind` is its media type in lower case, possibly empty. */
type InlineImage = { readonly kind: string; readonly isBase64: boolean; readonly data: string }

/** Parses a `data:` image URL; null for others. Only searches the beginning, since images are long. */
export function inlineImage(url: string): InlineImage | null {
  const comma = url.slice(0, 256).indexOf(',')
  if (comma < 0 || url.slice(0, 5).toLowerCase() !== 'data:') return null
  const fields = url.slice(5, comma).toLowerCase().split(';')
  const [kind = '', ...attributes] = fields.map(field => field.trim())
  return { kind, isBase64: attributes.at(-1) === 'base64', data: url.slice(comma + 1) }
}

/** A call and its result; null = none. */
export type ToolExchange = {
  readonly call: ToolCall
  readonly result: string | null
  readonly isError?: boolean
  readonly cache?: CacheMark | undefined
}

type Assistant = Extract<Message, { role: 'assistant' }>

export type ConversationStep =
  | Extract<Message, { role: 'system' | 'user' }>
  | (Omit<Assistant, 'toolCalls'> & { readonly role: 'assistant'; readonly exchanges: readonly ToolExchange[] })

/** Text inserted if an upstream requires visible text and the client sent none. */
export const placeholderTexts = {
  opening: 'Begin.',
  emptyTurn: '(The message was empty.)',
  continuation: 'Continue.',
  missingResult: 'The tool gave no result.',
} as const

/**
 * Returns the conversation with every result directly after its call, wherever it was before the assistant's next text.
 * A result without a call becomes user text.
 */
export function getSteps(messages: readonly Message[]): readonly ConversationStep[] {
  const steps: ConversationStep[] = []
  let open: Open[] = []
  for (const message of messages) {
    switch (message.role) {
      case 'system':
      case 'user':
        steps.push(message)
        break
      case 'tool':
        if (!answered(open, message) && isVisible(message.text)) steps.push(strayResult(message.text))
        break
      case 'assistant': {
        const { toolCalls, ...said } = message
        const step = { ...said, exchanges: toolCalls.map(call => ({ call, result: null })) }
        const last = steps.at(-1)
        // Some clients send parallel calls as one message each.
        if (last?.role === 'assistant' && isUnanswered(last) && step.exchanges.length > 0) {
          open.push(...step.exchanges)
          steps[steps.length - 1] = merged(last, step, open)
        } else {
          open = step.exchanges
          steps.push(step)
        }
        break
      }
    }
  }
  return steps
}

/** A call whose result may still follow. */
type Open = { readonly call: ToolCall; result: string | null; isError?: boolean; cache?: CacheMark }

/** Adds a result to its call; returns false if no call matches. */
function answered(
  open: readonly Open[],
  { callId, text, isError, cache }: Extract<Message, { role: 'tool' }>,
): boolean {
  const waiting = open.find(({ call, result }) => call.id === callId && result === null)
  if (waiting === undefined) return false
  waiting.result = text
  if (isError) waiting.isError = true
  if (cache !== undefined) waiting.cache = cache
  return true
}

type AssistantStep = Extract<ConversationStep, { role: 'assistant' }>

function isUnanswered({ exchanges }: AssistantStep): boolean {
  return exchanges.length > 0 && exchanges.every(({ result }) => result === null)
}

function merged(item: AssistantStep, other: AssistantStep, exchanges: readonly ToolExchange[]): AssistantStep {
  return {
    ...other,
    text: joined(item.text, other.text),
    reasoning: joined(item.reasoning, other.reasoning),
    reasoningItems: [...(item.reasoningItems ?? []), ...(other.reasoningItems ?? [])],
    exchanges,
  }
}

function joined(...texts: readonly (string | null)[]): string | null {
  return texts.filter(isText).join('\n') || null
}

function strayResult(text: string): ConversationStep {
  return {
    role: 'user',
    content: [{ type: 'text', text: `Result of an earlier tool call:\n${text}` }],
    name: null,
  }
}

/** Returns true for text with more than white space. Anthropic and Google reject any other. */
export function isVisible(text: string): boolean {
  return text.trim() !== ''
}

/** Returns all system texts in order, for wire formats that separate them. */
export function systemTexts(messages: readonly Message[]): readonly string[] {
  return messages.flatMap(message => (message.role === 'system' && isVisible(message.text) ? [message.text] : []))
}

export type WireTurn<Part> = { readonly role: 'user' | 'assistant'; readonly parts: Part[] }

/** Writes the parts of a turn in one wire format. */
export type PartWriter<Part> = {
  text(text: string): Part
  /** Writes the text of an assistant turn that has reasoning items. Absent: written by `text`. */
  said?(text: string, reasoning: readonly ReasoningItem[]): Part
  image(url: string): Part
  file(part: FilePart): Part
  /** Writes a call and its result for the next turn. `position` counts the calls of one assistant turn from 0. */
  exchange(exchange: ToolExchange, position: number): readonly [call: Part, result: Part]
  /** Writes reasoning at the beginning of its turn; null = dropped. Absent: the wire format does not support it. */
  reasoning?(item: ReasoningItem): Part | null
  /** Returns a written part with the mark for the cache. Absent: the wire format has no marks. */
  mark?(part: Part, mark: CacheMark): Part
}

/**
 * Returns alternating user and assistant turns. The first is the user's, and so is the last unless the model continues
 * a `prefill`. A turn with calls is followed by their results in the same order, before the user's text.
 */
export function getTurns<Part>(
  messages: readonly Message[],
  prefill: boolean,
  write: PartWriter<Part>,
): readonly WireTurn<Part>[] {
  const turns: WireTurn<Part>[] = []
  const add = (role: WireTurn<Part>['role'], parts: readonly Part[]) => {
    const last = turns.at(-1)
    if (last?.role !== role) turns.push({ role, parts: [...parts] })
    // One by one: a body may contain more parts than a function call takes arguments.
    else for (const part of parts) last.parts.push(part)
  }
  for (const step of getSteps(messages)) {
    if (step.role === 'system') continue
    if (step.role === 'user') {
      const parts = step.content.filter(isSendable).map(part => marked(write, getPart(part, write), part.cache))
      add('user', parts)
      continue
    }
    const replayed = (step.reasoningItems ?? []).flatMap(item => write.reasoning?.(item) ?? [])
    const said = step.text !== null && isVisible(step.text) ? [saidBy(step, step.text, write)] : []
    const exchanges = step.exchanges.map(write.exchange)
    const calls = exchanges.map(([call]) => call)
    const results = exchanges.map(([, result], at) => marked(write, result, step.exchanges[at]?.cache))
    const own = [...said, ...calls]
    const end = own.pop()
    if (end !== undefined) add('assistant', [...replayed, ...own, marked(write, end, step.cache)])
    if (results.length > 0) add('user', results)
  }
  for (const { parts } of turns) if (parts.length === 0) parts.push(write.text(placeholderTexts.emptyTurn))
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', parts: [write.text(placeholderTexts.opening)] })
  if (!prefill && turns.at(-1)?.role === 'assistant') add('user', [write.text(placeholderTexts.continuation)])
  return turns
}

function saidBy<Part>({ reasoningItems = [] }: AssistantStep, text: string, write: PartWriter<Part>): Part {
  return write.said?.(text, reasoningItems) ?? write.text(text)
}

function marked<Part>(write: PartWriter<Part>, part: Part, mark: CacheMark | undefined): Part {
  return mark === undefined ? part : (write.mark?.(part, mark) ?? part)
}

function isSendable(part: ContentPart): boolean {
  return part.type !== 'text' || isVisible(part.text)
}

function getPart<Part>(part: ContentPart, write: PartWriter<Part>): Part {
  switch (part.type) {
    case 'text':
      return write.text(part.text)
    case 'image':
      return write.image(part.url)
    case 'file':
      return write.file(part)
  }
}

/** Returns the names of the tools that a conversation has called. */
export function calledNames(messages: readonly Message[]): readonly string[] {
  const calls = messages.flatMap(message => (message.role === 'assistant' ? message.toolCalls : []))
  return [...new Set(calls.map(({ name }) => name))]
}
