/** Blocks of the simulated Anthropic API that it knows again: signed and redacted thinking, and tools that run on its side. */
import { createHmac } from 'node:crypto'
import { isWireObject, mistake, objectsIn, type SimulatedResponse, textOr, type WireObject } from './wire-format.ts'

const nonceLength = 24
const proofLength = 40

/** A signature over the thinking that was shown, which `problemInThinkingBlocks` verifies. */
export function signed(mint: SimulatedResponse['mint'], shown: string): string {
  const nonce = mint('Sim', nonceLength - 3)
  return nonce + proofOf(nonce, shown)
}

function proofOf(nonce: string, text: string): string {
  return createHmac('sha256', 'the simulated provider’s own key')
    .update(nonce + text)
    .digest('hex')
    .slice(0, proofLength)
}

function isSigned(signature: unknown, shown: unknown): boolean {
  if (typeof signature !== 'string' || typeof shown !== 'string') return false
  return signature.slice(nonceLength) === proofOf(signature.slice(0, nonceLength), shown)
}

/** What the API says of replayed thinking that it did not write, or that lacks where it is needed; null = nothing. */
export function problemInThinkingBlocks(messages: readonly WireObject[], thinking: unknown) {
  for (const [index, message] of messages.entries())
    for (const [at, block] of objectsIn(message.content).entries()) {
      const place = `messages.${index}.content.${at}`
      if (block.type === 'thinking' && typeof block.signature !== 'string')
        return mistake(`${place}.thinking.signature: Field required`)
      if (block.type === 'thinking' && !isSigned(block.signature, block.thinking))
        return mistake(`${place}: Invalid \`signature\` in \`thinking\` block`)
      if (block.type === 'redacted_thinking' && !isSigned(block.data, redactedText))
        return mistake(`${place}: Invalid \`data\` in \`redacted_thinking\` block`)
    }
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const [first, ...rest] = objectsIn(messages[last]?.content)
  const calls = [first, ...rest].some(block => block?.type === 'tool_use')
  const isNeeded = isWireObject(thinking) && thinking.type === 'enabled' && calls
  return isNeeded && first?.type !== 'thinking' && first?.type !== 'redacted_thinking'
    ? mistake(
        `messages.${last}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first?.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
      )
    : null
}

const redactedText = 'redacted'

/** Thinking whose text is withheld. */
export function redactedBlock(mint: SimulatedResponse['mint']): WireObject {
  return { type: 'redacted_thinking', data: signed(mint, redactedText) }
}

/** A search that ran at the provider, what it found, and a citation of it. */
export function searchBlocks(mint: SimulatedResponse['mint'], query: string) {
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

/** Returns the content blocks of a message; a text is one block. */
export function contentBlocks(content: unknown): readonly WireObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)
}

/** Returns the text of all blocks. */
export function blocksText(blocks: readonly WireObject[]): string {
  return blocks.map(block => textOr(block.text, '')).join('')
}
