/**
 * What was found clean lately, so that a conversation that comes back with every turn is screened once. In this process's
 * memory alone and by digest, never by content; forgotten as soon as a blocklist says something else.
 */
import type { KnownAnswers } from '../core/moderation/output-moderator.ts'
import type { Message } from '../core/chat/chat.ts'
import type { Definition } from '../core/chat/tool-definitions.ts'
import type { Digests } from '../core/text/keyed-digests.ts'
import { createRecent, type Recent } from '../core/text/recent-map.ts'
import { allowed, type KnownMessages } from '../core/moderation/text-moderator.ts'

export type Known = KnownMessages & {
  /** The same of answers: each comes back as a message of the next turn. */
  readonly answers: KnownAnswers
  /** Kinds of secrets in a message, as `find` tells them; where there are none, it is not asked again. */
  secretsIn(message: Said, find: (message: Said) => readonly string[]): readonly string[]
}

type Said = Message | Definition

const maximumMessages = 50_000

/** An empty memory. `listsVersion` changes with what the blocklists say. */
export function createKnown(digests: Digests, listsVersion: () => number): Known {
  let scores: Recent<number> = createRecent(maximumMessages)
  let version = listsVersion()
  // No list has a say in what a secret is.
  const spotless = createRecent<true>(maximumMessages)

  const current = (): Recent<number> => {
    if (version !== listsVersion()) {
      scores = createRecent(maximumMessages)
      version = listsVersion()
    }
    return scores
  }

  const scoreOf = (message: Said) => current().get(digests.of(message)) ?? null
  const keep = (message: Said, score: number) => current().set(digests.of(message), score)

  return {
    scoreOf,
    keep,
    answers(text) {
      const message = turn(text)
      return { isClean: scoreOf(message) !== null, keep: () => keep(message, allowed.score) }
    },
    secretsIn(message, find) {
      const digest = digests.of(message)
      if (spotless.has(digest)) return none
      const kinds = find(message)
      if (kinds.length === 0) spotless.set(digest, true)
      return kinds
    },
  }
}

/** An answer as the caller will send it back. */
function turn(text: string): Message {
  return { role: 'assistant', text, reasoning: null, toolCalls: [], name: null }
}

const none: readonly string[] = []
