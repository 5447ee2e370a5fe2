/**
 * Items as turns of a conversation: neighboring items of the assistant's are one turn, and every result stands behind the turn
 * that holds its call, wherever in the input it came.
 */
import type { ContentPart, Message, ReasoningItem, ToolCall } from '../../core/chat/chat.ts'

type AssistantTurn = {
  readonly texts: string[]
  readonly reasoning: string[]
  readonly reasoningItems: ReasoningItem[]
  readonly calls: ToolCall[]
  readonly results: Extract<Message, { role: 'tool' }>[]
  /** Images and documents of results: no provider takes them there. */
  readonly attachments: ContentPart[]
}

type Turn = { readonly message: Message } | { readonly assistant: AssistantTurn }

export class Turns {
  private readonly turns: Turn[] = []
  /** The turn that holds a call, by the call's id. */
  private readonly byCall = new Map<string, AssistantTurn>()
  /** Signatures of calls that have not come yet, by the call's id. */
  private readonly signatures = new Map<string, string>()

  add(message: Message): void {
    this.turns.push({ message })
  }

  say(text: string): void {
    this.open().texts.push(text)
  }

  /** Reasoning goes back as its provider gave it: in parts of its own, at the call it belongs to, or as plain text. */
  reason(item: ReasoningItem): void {
    if (item.family === 'google' && item.id !== null) this.signatures.set(item.id, item.data)
    else if (item.family === 'compatible') this.open().reasoning.push(item.text)
    else this.open().reasoningItems.push(item)
  }

  call(id: string, name: string, args: string): void {
    const turn = this.open()
    turn.calls.push({ id, name, arguments: args, signature: this.signatures.get(id) ?? null })
    this.byCall.set(id, turn)
  }

  /** False where no call of that id came before. */
  answer(callId: string, text: string, attachments: readonly ContentPart[]): boolean {
    const turn = this.byCall.get(callId)
    if (turn === undefined) return false
    turn.results.push({ role: 'tool', callId, text })
    for (const part of attachments) turn.attachments.push(part)
    return true
  }

  messages(): readonly Message[] {
    return this.turns.flatMap(turn => ('message' in turn ? [turn.message] : messagesOf(turn.assistant)))
  }

  /** The assistant's turn that goes on: it ends where anybody else speaks, and with the first result. */
  private open(): AssistantTurn {
    const last = this.turns.at(-1)
    if (last !== undefined && 'assistant' in last && last.assistant.results.length === 0) return last.assistant
    const assistant = { texts: [], reasoning: [], reasoningItems: [], calls: [], results: [], attachments: [] }
    this.turns.push({ assistant })
    return assistant
  }
}

function messagesOf({
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
  // Reasoning of a turn of which nothing else was sent belongs to nothing.
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
