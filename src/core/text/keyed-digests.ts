import type { ContentPart, Message, ToolCall } from '../chat/chat.ts'
import type { PromptDefinition } from '../chat/tool-definitions.ts'

/** Turns of a conversation read as one text (`core/moderation/turns.ts`). */
type JoinedTurns = { readonly role: 'turns'; readonly text: string }

/** Values that have a digest. */
export type Digested = Message | PromptDefinition | JoinedTurns

/** Digests of messages and definitions: keys under which a cache can store facts about them without their texts. */
export type KeyedDigests = {
  /** The same for messages of one role that say the same, worked out once for each message. */
  of(message: Digested): string
}

/**
 * Creates keyed SHA-256 digests. `salt` is secret and lives only as long as the cache, so that digests are meaningless
 * elsewhere.
 */
export function createKeyedDigests(salt: Uint8Array): KeyedDigests {
  const key = Buffer.from(salt).toString('base64')
  const known = new WeakMap<Digested, string>()
  return {
    of(message) {
      let digest = known.get(message)
      if (digest === undefined) {
        digest = Bun.SHA256.hash(key + spelt(message), 'base64')
        known.set(message, digest)
      }
      return digest
    },
  }
}

/** All of a message that is read or screened, so that no two messages that differ in it are spelt alike. */
function spelt(message: Digested): string {
  switch (message.role) {
    case 'system':
      return `s${message.text}`
    case 'tool':
      return `t${message.text}`
    case 'user':
      return `u${message.content.map(speltPart).join('')}`
    case 'assistant': {
      const { text, reasoning, reasoningItems = [], toolCalls } = message
      const thoughts = measured(reasoning ?? '') + reasoningItems.map(item => `r${measured(item.text)}`).join('')
      return `a${measured(text ?? '')}${thoughts}${toolCalls.map(speltCall).join('')}`
    }
    case 'turns':
      return `j${message.text}`
    case 'definition':
      return `d${message.texts.map(measured).join('')}`
    default:
      return message satisfies never
  }
}

/** An inline image is neither analyzed nor moderated; of a document only its name is. */
function speltPart(part: ContentPart): string {
  if (part.type === 'text') return `t${measured(part.text)}`
  if (part.type === 'file') return `f${measured(part.name ?? '')}`
  return part.url.startsWith('data:') ? 'd' : `i${measured(part.url)}`
}

function speltCall(call: ToolCall): string {
  return measured(call.name) + measured(call.arguments)
}

function measured(text: string): string {
  return `${text.length}:${text}`
}
