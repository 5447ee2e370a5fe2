/**
 * A conversation as every upstream demands it: each call of a tool meets its result, and none is answered twice. And as
 * those demand it that know turns: alternating, from the user on, none empty.
 */
import type { ContentPart, FilePart, Message, ReasoningItem, ToolCall } from '../core/chat/chat.ts'
import { isText } from './json.ts'

/** A call and what came of it; null = nothing did. */
export type ToolExchange = { readonly call: ToolCall; readonly result: string | null }

type Assistant = Extract<Message, { role: 'assistant' }>

export type ConversationStep =
  | Extract<Message, { role: 'system' | 'user' }>
  | (Omit<Assistant, 'toolCalls'> & { readonly role: 'assistant'; readonly exchanges: readonly ToolExchange[] })

/** What stands where an upstream wants a visible text and the caller left none. */
export const placeholderTexts = {
  opening: 'Begin.',
  emptyTurn: '(The message was empty.)',
  continuation: 'Continue.',
  missingResult: 'The tool gave no result.',
} as const

/**
 * The conversation with every result beside its call, wherever before the assistant's next words it stood. A result that
 * no call waits for is told as the user's text.
 */
export function stepsOf(messages: readonly Message[]): readonly ConversationStep[] {
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
        // Some clients write parallel calls as one message each.
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

/** A call whose result may still come. */
type Open = { readonly call: ToolCall; result: string | null }

/** Puts a result beside the call that waits for it; false where none does. */
function answered(open: readonly Open[], { callId, text }: Extract<Message, { role: 'tool' }>): boolean {
  const waiting = open.find(({ call, result }) => call.id === callId && result === null)
  if (waiting !== undefined) waiting.result = text
  return waiting !== undefined
}

type AssistantStep = Extract<ConversationStep, { role: 'assistant' }>

function isUnanswered({ exchanges }: AssistantStep): boolean {
  return exchanges.length > 0 && exchanges.every(({ result }) => result === null)
}

function merged(one: AssistantStep, other: AssistantStep, exchanges: readonly ToolExchange[]): AssistantStep {
  return {
    ...other,
    text: joined(one.text, other.text),
    reasoning: joined(one.reasoning, other.reasoning),
    reasoningItems: [...(one.reasoningItems ?? []), ...(other.reasoningItems ?? [])],
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

/** True for a text with more than blank space in it: Anthropic and Google refuse any other. */
export function isVisible(text: string): boolean {
  return text.trim() !== ''
}

/** All system texts in their order, wherever they stood, for wires that keep them apart. */
export function systemTexts(messages: readonly Message[]): readonly string[] {
  return messages.flatMap(message => (message.role === 'system' && isVisible(message.text) ? [message.text] : []))
}

export type Turn<Part> = { readonly role: 'user' | 'assistant'; readonly parts: Part[] }

/** How one wire writes the parts of a turn. */
export type PartWriter<Part> = {
  text(text: string): Part
  /** Text of the assistant's, where the reasoning of its turn goes back with it; absent = as any text. */
  said?(text: string, reasoning: readonly ReasoningItem[]): Part
  image(url: string): Part
  file(part: FilePart): Part
  /** A call, and its result for the turn after. `position` counts the calls of one assistant's turn from 0. */
  exchange(exchange: ToolExchange, position: number): readonly [call: Part, result: Part]
}

/**
 * User and assistant turns in strict alternation, the first one the user's, and the last one too unless the model
 * continues a beginning of its own (`prefill`). A turn of calls is followed by their results, in the same order and ahead
 * of what the user adds.
 */
export function turnsOf<Part>(
  messages: readonly Message[],
  prefill: boolean,
  write: PartWriter<Part>,
): readonly Turn<Part>[] {
  const turns: Turn<Part>[] = []
  const add = (role: Turn<Part>['role'], parts: readonly Part[]) => {
    const last = turns.at(-1)
    if (last?.role !== role) turns.push({ role, parts: [...parts] })
    // One by one: a body may hold more of them than a call takes arguments.
    else for (const part of parts) last.parts.push(part)
  }
  for (const step of stepsOf(messages)) {
    if (step.role === 'system') continue
    if (step.role === 'user') {
      const parts = step.content.filter(isSendable).map(part => partOf(part, write))
      add('user', parts)
      continue
    }
    const said = step.text !== null && isVisible(step.text) ? [saidBy(step, step.text, write)] : []
    const exchanges = step.exchanges.map(write.exchange)
    const calls = exchanges.map(([call]) => call)
    const results = exchanges.map(([, result]) => result)
    if (said.length + calls.length > 0) add('assistant', [...said, ...calls])
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

function isSendable(part: ContentPart): boolean {
  return part.type !== 'text' || isVisible(part.text)
}

function partOf<Part>(part: ContentPart, write: PartWriter<Part>): Part {
  switch (part.type) {
    case 'text':
      return write.text(part.text)
    case 'image':
      return write.image(part.url)
    case 'file':
      return write.file(part)
  }
}
