/** The moderation layers as one component for the pipeline, web access and the command line. */

import type { Message, PromptDefinition, StreamMode } from '../../../core/chat/chat.ts'
import type { Digested, KeyedDigests } from '../../../core/text/keyed-digests.ts'
import { createRecentMap, type RecentMap } from '../../../core/text/recent-map.ts'
import type { HarmClassifier } from '../../harm/harm-classifier.ts'
import { compileRules, type ModerationRules, moderationRules } from '../../rules/pattern-rules.ts'
import { type CleanOutputs, type OutputModerationRules, OutputModerator } from '../output-moderator.ts'
import { type DetectedSecret, detectSecrets, secretKindSteps } from '../secret-detection.ts'
import {
  allowVerdict,
  type CleanMessages,
  containsBlockedHost,
  createTextModerator,
  getResult,
  type TextModerator,
  type Verdict,
} from '../text-moderator.ts'
import { type BlocklistDeps, openBlocklist } from './blocklist.ts'
import { createExternalModeration, type ExternalModeration, type ModerationDeps } from './external-moderation.ts'
import type { ModerationOptions } from './settings.ts'

/** `screenSteps` searches for secrets too. */
export type Moderation = TextModerator & {
  /** Returns true if a URL links to a blocked host. */
  isListed(address: string): boolean
  /** External moderation; null = not configured. */
  readonly moderation: ExternalModeration | null
  readonly secrets: ModerationOptions['secrets']
  leaksIn(text: string): readonly DetectedSecret[]
  /** Returns the kinds of secrets in a message or definition. */
  secretsIn(message: Message | PromptDefinition): readonly string[]
  /** Creates an output moderator for one response; null = output moderation is off. */
  screenAnswer(mode: StreamMode | null): OutputModerator | null
  /** Fulfilled when the blocklists have been read. */
  readonly ready: Promise<void>
  /** Returns counters for metrics since the start, without content. */
  figures(): ModerationStats
  close(): void
}

export type ModerationStats = {
  readonly blockedHosts: number
  readonly moderation: Readonly<ExternalModeration['counts']> | null
}

export type ModerationParts = ModerationDeps &
  Pick<BlocklistDeps, 'hop'> & {
    /** Digests as keys of the clean-text cache; null = no cache. */
    readonly digests: KeyedDigests | null
    readonly classifier: HarmClassifier
  }

let compiled: ModerationRules | null = null

/** The rules of this release. Compiled once per process: each of a hundred gateways in one test process would take 25 ms. */
function releaseRules(): ModerationRules {
  compiled ??= compileRules(moderationRules)
  return compiled
}

/** Combines the layers. The settings must be validated: all their rules compile. */
export function createModeration(deps: ModerationParts, settings: ModerationOptions): Moderation {
  const rules = settings.rules.length === 0 ? releaseRules() : compileRules([...settings.rules, ...moderationRules])
  const blocklist = openBlocklist(deps, {
    sources: settings.blocklists,
    reloadMs: settings.reloadMs,
    allow: settings.allow,
  })
  const { classifier } = deps
  const known = deps.digests === null ? unknown : createLookupCache(deps.digests, blocklist.version)
  const { answer, isHarmless } = classifier
  const answerRules: OutputModerationRules = { rules, hosts: blocklist, answer, isHarmless, known: null }
  const shownRules: OutputModerationRules = { ...answerRules, known: known.answers }
  const screen = createTextModerator({
    rules,
    hosts: blocklist,
    classify: classifier.prompt,
    answer: text => verdictOfAnswer(answerRules, text),
    known,
  })
  function* secretSteps(part: Message | PromptDefinition): Generator<number, readonly string[], void> {
    const found = known.findSecrets(part)
    if (found !== null) return found
    const kinds = yield* secretKindSteps(part)
    known.keepSecrets(part, kinds)
    return kinds
  }
  const moderation = settings.moderation === null ? null : createExternalModeration(deps, settings.moderation)
  return {
    ...screen,
    *screenSteps(part) {
      const verdict = yield* screen.screenSteps(part)
      yield* secretSteps(part)
      return verdict
    },
    isListed: address => containsBlockedHost(blocklist, address),
    moderation,
    secrets: settings.secrets,
    leaksIn: detectSecrets,
    secretsIn: part => getResult(secretSteps(part)),
    screenAnswer: mode => (settings.screenAnswers ? new OutputModerator(shownRules, mode) : null),
    ready: blocklist.ready,
    figures: () => ({
      blockedHosts: blocklist.size(),
      moderation: moderation === null ? null : { ...moderation.counts },
    }),
    close: () => blocklist.close(),
  }
}

const unknown: CleanTextCache = {
  findScore: () => null,
  keep() {},
  answers: () => ({ isClean: false, keep() {} }),
  findSecrets: () => null,
  keepSecrets() {},
}

/** Moderates a complete output, as found in the conversation history. */
function verdictOfAnswer(rules: OutputModerationRules, text: string): Verdict {
  const screen = new OutputModerator(rules, null)
  screen.take([
    { type: 'text', choice: 0, text },
    { type: 'finish', choice: 0, reason: 'stop' },
  ])
  return screen.hit() ?? allowVerdict
}

/**
 * Cache of recently moderated clean texts, so that a conversation that returns with every turn is checked once. In this
 * process's memory and keyed by digest, without content; cleared when a blocklist changes.
 */

type CleanTextCache = CleanMessages & {
  /** The same for outputs, which return as messages of the next turn. */
  readonly answers: CleanOutputs
  /** Returns the kinds of secrets that were found in a message; null = not known. */
  findSecrets(message: Said): readonly string[] | null
  keepSecrets(message: Said, kinds: readonly string[]): void
}

type Said = Message | PromptDefinition

const maximumMessages = 50_000

/** Creates an empty cache. `listsVersion` changes with the blocklists. */
function createLookupCache(digests: KeyedDigests, listsVersion: () => number): CleanTextCache {
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
