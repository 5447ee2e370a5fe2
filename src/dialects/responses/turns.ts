/**
 * Groups items into turns of a conversation. Consecutive items of the assistant are one turn. Each result follows the turn with its
 * call, for any position in the input.
 */
import type { ContentPart, Message, ReasoningItem, ToolCall } from '../../core/chat/chat.ts'

type AssistantTurn = {
  readonly texts: string[]
  readonly reasoning: string[]
  readonly reasoningItems: ReasoningItem[]
  readonly calls: ToolCall[]
  readonly results: Extract<Message, { role: 'tool' }>[]
  /** Images and documents of results, which go into a user message: some providers do not accept them in results. */
  readonly attachments: ContentPart[]
}

type Turn = { readonly message: Message } | { readonly assistant: AssistantTurn }

export class Turns {
  private readonly turns: Turn[] = []
  /** Turns by the ID of a call in them. */
  private readonly byCall = new Map<string, AssistantTurn>()
  /** Signatures that precede their calls, by call ID. */
  private readonly signatures = new Map<string, string>()

  add(message: Message): void {
    this.turns.push({ message })
  }

  say(text: string): void {
    this.open().texts.push(text)
  }

  /** Adds reasoning in the form of its provider: as an item, as the signature of a call, or as plain text. */
  reason(item: ReasoningItem): void {
    if (item.family === 'google' && item.id !== null) this.signatures.set(item.id, item.data)
    else if (item.family === 'compatible' && item.data === '') this.open().reasoning.push(item.text)
    else this.open().reasoningItems.push(item)
  }

  call(id: string, name: string, args: string): void {
    const turn = this.open()
    turn.calls.push({ id, name, arguments: args, signature: this.signatures.get(id) ?? null })
    this.byCall.set(id, turn)
  }

  /** Adds a result; returns false if no earlier call has this ID. */
  answer(callId: string, text: string, attachments: readonly ContentPart[]): boolean {
    const turn = this.byCall.get(callId)
    if (turn === undefined) return false
    turn.results.push({ role: 'tool', callId, text })
    for (const part of attachments) turn.attachments.push(part)
    return true
  }

  messages(): readonly Message[] {
    return this.turns.flatMap(turn => ('message' in turn ? [turn.message] : getMessages(turn.assistant)))
  }

  /** Returns the open turn of the assistant. A message of another role or a result ends it. */
  private open(): AssistantTurn {
    const last = this.turns.at(-1)
    if (last !== undefined && 'assistant' in last && last.assistant.results.length === 0) return last.assistant
    const assistant = { texts: [], reasoning: [], reasoningItems: [], calls: [], results: [], attachments: [] }
    this.turns.push({ assistant })
    return assistant
  }
}

function getMessages({
  texts,
  reasoning,
  reasoningItems,
  calls,
  results,
  attachments,
}: AssistantTurn): readonly Message[] {
  const said: Message = {
    role: 'assistant',
    text: texts.length === 0 ? (calls.length === 0 ? '' : null) : texts.join('\n'),
    reasoning: reasoning.length === 0 ? null : reasoning.join('\n'),
    ...(reasoningItems.length === 0 ? {} : { reasoningItems }),
    toolCalls: calls,
    name: null,
  }
  // Reasoning without text or calls is dropped: no message can carry it.
  const isEmpty = texts.length === 0 && calls.length === 0
  const shown: readonly Message[] =
    attachments.length === 0
      ? []
      : [
          {
            role: 'user',
            content: [{ type: 'text', text: 'Attached to the tool results:' }, ...attachments],
            name: null,
          },
        ]
  return isEmpty ? [] : [said, ...results, ...shown]
}
