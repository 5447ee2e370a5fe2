/** The moderation layers as one component for the pipeline, web access and the command line. */

import type { StreamMode } from '../../../core/chat/chat.ts'
import type { ResponseSink } from '../../../core/chat/chat-events.ts'
import type { KeyedDigests } from '../../../core/text/keyed-digests.ts'
import { createRecentMap, type RecentMap } from '../../../core/text/recent-map.ts'
import type { HarmClassifier } from '../../harm/harm-classifier.ts'
import { compileRules, type ModerationRules, moderationRules } from '../../rules/pattern-rules.ts'
import { OutputModerator } from '../output-moderator.ts'
import { type CleanText, type CleanTexts, createTextModerator, type TextModerator } from '../text-moderator.ts'
import { containsBlockedHost } from '../verdict.ts'
import { type BlocklistDeps, openBlocklist } from './blocklist.ts'
import { createExternalModeration, type ExternalModeration, type ModerationDeps } from './external-moderation.ts'
import type { ModerationOptions } from './settings.ts'

export type Moderation = TextModerator & {
  /** Returns true if a URL links to a blocked host. */
  isListed(address: string): boolean
  /** External moderation; null = not configured. */
  readonly moderation: ExternalModeration | null
  readonly secrets: ModerationOptions['secrets']
  /** Creates an output moderator in front of the sink of one response; null = output moderation is off. */
  screenAnswer(mode: StreamMode | null, next: ResponseSink): OutputModerator | null
  /** Fulfilled when the blocklists have been read. */
  readonly ready: Promise<void>
  /** Returns counters for metrics since the start, without content. */
  figures(): ModerationStats
  /** Uses other layers as soon as their blocklists are read, and then closes those before. */
  replace(deps: ModerationParts, settings: ModerationOptions): void
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

/** Opens the layers of some settings, which must be validated: all their rules compile. */
function openLayers(deps: ModerationParts, settings: ModerationOptions) {
  const rules = settings.rules.length === 0 ? releaseRules() : compileRules([...settings.rules, ...moderationRules])
  const blocklist = openBlocklist(deps, {
    sources: settings.blocklists,
    reloadMs: settings.reloadMs,
    allow: settings.allow,
  })
  const known = deps.digests === null ? nothingKnown : createCleanTexts(deps.digests, blocklist.version)
  const layers = { ...deps.classifier, rules, hosts: blocklist, known }
  const external = settings.moderation === null ? null : createExternalModeration(deps, settings.moderation)
  return { settings, blocklist, layers, texts: createTextModerator(layers), external }
}

/** Combines the layers, which can be replaced while requests run. A request in progress keeps the layers it began with. */
export function createModeration(deps: ModerationParts, settings: ModerationOptions): Moderation {
  let current = openLayers(deps, settings)
  let newest = current
  return {
    embeddedSteps: text => current.texts.embeddedSteps(text),
    screenSteps: messages => current.texts.screenSteps(messages),
    screenMessages: messages => current.texts.screenMessages(messages),
    isListed: address => containsBlockedHost(current.blocklist, address),
    get moderation() {
      return current.external
    },
    get secrets() {
      return current.settings.secrets
    },
    screenAnswer: (mode, next) =>
      current.settings.screenAnswers ? new OutputModerator(current.layers, mode, next) : null,
    get ready() {
      return current.blocklist.ready
    },
    figures: () => ({
      blockedHosts: current.blocklist.size(),
      moderation: current.external === null ? null : { ...current.external.counts },
    }),
    close() {
      current.blocklist.close()
      if (newest !== current) newest.blocklist.close()
    },
    replace(nextDeps, nextSettings) {
      const next = openLayers(nextDeps, nextSettings)
      newest = next
      void next.blocklist.ready.then(() => {
        // A later reload may have been faster.
        if (newest !== next) return next.blocklist.close()
        current.blocklist.close()
        current = next
      })
    },
  }
}

const nothingKnown: CleanTexts = { find: () => null, keep() {} }

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
