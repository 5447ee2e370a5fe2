import type { Message, PromptDefinition } from '../chat/chat.ts'
import { messageNames, messageTexts } from '../chat/request-texts.ts'
import { remembered } from './recent-map.ts'

/** Turns of a conversation read as one text (`text/moderation/text-moderator.ts`). */
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
  return { of: remembered(message => Bun.SHA256.hash(key + spelt(message), 'base64')) }
}

/** All of a message that is read or screened, so that no two messages that differ in it are spelt alike. */
function spelt(message: Digested): string {
  switch (message.role) {
    case 'system':
    case 'user':
    case 'assistant':
    case 'tool':
      return `${message.role}${speltTexts(message)}`
    case 'turns':
      return `turns${message.text}`
    case 'definition':
      return `${message.kind}${message.texts.map(measured).join('')}`
    default:
      return message satisfies never
  }
}

/** Images are neither analyzed nor moderated. */
function speltTexts(message: Message): string {
  return `${messageTexts(message).map(measured).join('')} ${messageNames(message).map(measured).join('')}`
}

function measured(text: string): string {
  return `${text.length}:${text}`
}
