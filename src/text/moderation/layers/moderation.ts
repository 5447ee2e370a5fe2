/** The moderation layers as one component for the pipeline, web access and the command line. */

import type { StreamMode } from '../../../core/chat/chat.ts'
import type { KeyedDigests } from '../../../core/text/keyed-digests.ts'
import { createRecentMap, type RecentMap } from '../../../core/text/recent-map.ts'
import type { HarmClassifier } from '../../harm/harm-classifier.ts'
import { compileRules, type ModerationRules, moderationRules } from '../../rules/pattern-rules.ts'
import { OutputModerator } from '../output-moderator.ts'
import type { StreamingRules } from '../streaming-moderator.ts'
import {
  allowVerdict,
  type CleanText,
  type CleanTexts,
  containsBlockedHost,
  createTextModerator,
  type TextModerator,
  type Verdict,
} from '../text-moderator.ts'
import { type BlocklistDeps, openBlocklist } from './blocklist.ts'
import { createExternalModeration, type ExternalModeration, type ModerationDeps } from './external-moderation.ts'
import type { ModerationOptions } from './settings.ts'

export type Moderation = TextModerator & {
  /** Returns true if a URL links to a blocked host. */
  isListed(address: string): boolean
  /** External moderation; null = not configured. */
  readonly moderation: ExternalModeration | null
  readonly secrets: ModerationOptions['secrets']
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
  const { answer, isHarmless } = classifier
  const outputRules: StreamingRules = { rules, hosts: blocklist, answer, isHarmless }
  const screen = createTextModerator({
    rules,
    hosts: blocklist,
    classify: classifier.prompt,
    answer: text => verdictOfAnswer(outputRules, text),
    known: deps.digests === null ? nothingKnown : createCleanTexts(deps.digests, blocklist.version),
  })
  const moderation = settings.moderation === null ? null : createExternalModeration(deps, settings.moderation)
  return {
    ...screen,
    isListed: address => containsBlockedHost(blocklist, address),
    moderation,
    secrets: settings.secrets,
    screenAnswer: mode => (settings.screenAnswers ? new OutputModerator(outputRules, mode) : null),
    ready: blocklist.ready,
    figures: () => ({
      blockedHosts: blocklist.size(),
      moderation: moderation === null ? null : { ...moderation.counts },
    }),
    close: () => blocklist.close(),
  }
}

const nothingKnown: CleanTexts = { find: () => null, keep() {} }

/** Moderates a complete output, as found in the conversation history. */
function verdictOfAnswer(rules: StreamingRules, text: string): Verdict {
  const screen = new OutputModerator(rules, null)
  screen.take([
    { type: 'text', choice: 0, text },
    { type: 'finish', choice: 0, reason: 'stop' },
  ])
  return screen.hit() ?? allowVerdict
}

/** Moderation whose layers can be replaced while requests run. A request in progress keeps the layers it began with. */
type ReloadableModeration = Moderation & {
  /** Uses `next` as soon as its blocklists are read, and then closes the layers before it. */
  replace(next: Moderation): void
}

export function createReloadableModeration(first: Moderation): ReloadableModeration {
  let current = first
  let newest = first
  return {
    embeddedSteps: text => current.embeddedSteps(text),
    screenSteps: part => current.screenSteps(part),
    screenMessages: messages => current.screenMessages(messages),
    isListed: address => current.isListed(address),
    get moderation() {
      return current.moderation
    },
    get secrets() {
      return current.secrets
    },
    screenAnswer: mode => current.screenAnswer(mode),
    get ready() {
      return current.ready
    },
    figures: () => current.figures(),
    close() {
      current.close()
      if (newest !== current) newest.close()
    },
    replace(next) {
      newest = next
      void next.ready.then(() => {
        // A later reload may have been faster.
        if (newest !== next) return next.close()
        current.close()
        current = next
      })
    },
  }
}

const maximumMessages = 50_000

/**
 * Cache of recently moderated clean texts, so that a conversation that returns with every turn is checked once. In this
 * process's memory and keyed by digest, without content; cleared when a blocklist changes, whose version `listsVersion` is.
 */
function createCleanTexts(digests: KeyedDigests, listsVersion: () => number): CleanTexts {
  let texts: RecentMap<CleanText> = createRecentMap(maximumMessages)
  let version = listsVersion()
  const current = (): RecentMap<CleanText> => {
    if (version !== listsVersion()) {
      texts = createRecentMap(maximumMessages)
      version = listsVersion()
    }
    return texts
  }
  return {
    find: message => current().get(digests.of(message)) ?? null,
    keep: (message, clean) => current().set(digests.of(message), clean),
  }
}
