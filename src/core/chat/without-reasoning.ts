/** Removes the reasoning of earlier turns from a request, for a provider that no longer accepts its signatures. */
import type { ChatRequest, Message, SourceBody } from './chat.ts'

/** Returns the request without reasoning; null if it has none, or its body is not in the form of Messages. */
export function withoutReasoning(request: ChatRequest): ChatRequest | null {
  if (!request.messages.some(hasReasoning)) return null
  const messages = request.messages.map(bare)
  const { source } = request
  if (source === null || source.messages !== request.messages) return { ...request, messages }
  return source.dialect === 'messages'
    ? { ...request, messages, source: { ...source, messages, sealed: reasoningBlocks(source) } }
    : null
}

function hasReasoning(message: Message): boolean {
  return message.role === 'assistant' && (message.reasoningItems?.length ?? 0) > 0
}

function bare(message: Message): Message {
  if (message.role !== 'assistant' || message.reasoningItems === undefined) return message
  const { reasoningItems, ...rest } = message
  return rest
}

/** Returns the places of all blocks with reasoning, which the body then goes without. */
function reasoningBlocks({ fields }: SourceBody): NonNullable<SourceBody['sealed']> {
  const turns: readonly unknown[] = Array.isArray(fields.messages) ? fields.messages : []
  return turns.flatMap((turn, message) => {
    const content: unknown = typeof turn === 'object' && turn !== null && 'content' in turn ? turn.content : null
    const blocks: readonly unknown[] = Array.isArray(content) ? content : []
    return blocks.flatMap((block, part) => (isReasoning(block) ? [[message, part] as const] : []))
  })
}

function isReasoning(block: unknown): boolean {
  if (typeof block !== 'object' || block === null || !('type' in block)) return false
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}
