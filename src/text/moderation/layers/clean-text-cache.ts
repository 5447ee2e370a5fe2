/**
 * Cache of recently moderated clean texts, so that a conversation that returns with every turn is checked once. In this
 * process's memory and keyed by digest, without content; cleared when a blocklist changes.
 */

import type { Message, PromptDefinition } from '../../../core/chat/chat.ts'
import type { Digested, KeyedDigests } from '../../../core/text/keyed-digests.ts'
import { createRecentMap, type RecentMap } from '../../../core/text/recent-map.ts'
import type { CleanOutputs } from '../output-moderator.ts'
import { allowVerdict, type CleanMessages } from '../text-moderator.ts'

export type CleanTextCache = CleanMessages & {
  /** The same for outputs, which return as messages of the next turn. */
  readonly answers: CleanOutputs
  /** Returns the kinds of secrets that were found in a message; null = not known. */
  findSecrets(message: Said): readonly string[] | null
  keepSecrets(message: Said, kinds: readonly string[]): void
}

type Said = Message | PromptDefinition

const maximumMessages = 50_000

/** Creates an empty cache. `listsVersion` changes with the blocklists. */
export function createLookupCache(digests: KeyedDigests, listsVersion: () => number): CleanTextCache {
  let scores: RecentMap<number> = createRecentMap(maximumMessages)
  let version = listsVersion()
  // Blocklists do not affect secrets, so this cache has no version.
  const secrets = createRecentMap<readonly string[]>(maximumMessages)

  const current = (): RecentMap<number> => {
    if (version !== listsVersion()) {
      scores = createRecentMap(maximumMessages)
      version = listsVersion()
    }
    return scores
  }

  const findScore = (message: Digested) => current().get(digests.of(message)) ?? null
  const keep = (message: Digested, score: number) => current().set(digests.of(message), score)

  return {
    findScore,
    keep,
    answers(text) {
      const message = turn(text)
      return { isClean: findScore(message) !== null, keep: () => keep(message, allowVerdict.score) }
    },
    findSecrets: message => secrets.get(digests.of(message)) ?? null,
    keepSecrets: (message, kinds) => secrets.set(digests.of(message), kinds),
  }
}

/** Returns an output as the message that the client will send back. */
function turn(text: string): Message {
  return { role: 'assistant', text, reasoning: null, toolCalls: [], name: null }
}
