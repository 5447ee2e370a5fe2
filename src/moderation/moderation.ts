/** The safety layers as one part: what the pipeline, the web and the command line ask. */

import type { FeatureReader } from '../core/analysis/features.ts'
import type { Message, StreamMode } from '../core/chat/chat.ts'
import type { PromptDefinition } from '../core/chat/tool-definitions.ts'
import { createHarmClassifier } from '../core/moderation/harm-classifier.ts'
import {
  createOutputModerator,
  type OutputModerationRules,
  type OutputModerator,
} from '../core/moderation/output-moderator.ts'
import { compileRules, rulesForData, safetyRules } from '../core/moderation/pattern-rules.ts'
import { type DetectedSecret, detectSecretKinds, detectSecrets } from '../core/moderation/secret-detection.ts'
import {
  allowVerdict,
  containsBlockedHost,
  createTextModerator,
  type Verdict,
} from '../core/moderation/text-moderator.ts'
import type { KeyedDigests } from '../core/text/keyed-digests.ts'
import { type BlocklistDeps, openBlocklist } from './blocklist.ts'
import { type CleanTextCache, createKnown } from './clean-text-cache.ts'
import { createExternalModeration, type ExternalModeration, type ModerationDeps } from './external-moderation.ts'
import type { SafetySettings } from './settings.ts'

export type Moderation = {
  /** A prompt in process. */
  screen(text: string): Verdict
  /** What a model is to read, in process: a document, a fetched page. */
  screenData(text: string): Verdict
  /** A text that is only embedded, in process: by the rules only. */
  screenEmbedded(text: string): Verdict
  /** A conversation in process. */
  screenMessages(messages: readonly Message[]): Verdict
  /** What is defined beside it, in process. */
  screenDefinition(definition: PromptDefinition): Verdict
  /** The same without what is the operator's alone: what `gateway analyze` prints as `safety`. */
  read(messages: readonly Message[]): Omit<Verdict, 'rule'>
  /** Whether an address points at a blocked host. */
  isListed(address: string): boolean
  /** The external check; null = none is configured. */
  readonly moderation: ExternalModeration | null
  readonly secrets: SafetySettings['secrets']
  leaksIn(text: string): readonly DetectedSecret[]
  /** Kinds of secrets in what a message or a definition says. */
  secretsIn(message: Message | PromptDefinition): readonly string[]
  /** A screen for one answer, null where answers are not screened. */
  screenAnswer(mode: StreamMode | null): OutputModerator | null
  /** Fulfilled once the blocklists have been read. */
  readonly ready: Promise<void>
  /** For metrics: content-free, since the start. */
  figures(): ModerationStats
  close(): void
}

export type ModerationStats = {
  readonly blockedHosts: number
  readonly moderation: Readonly<ExternalModeration['counts']> | null
}

export type SafetyDeps = ModerationDeps &
  Pick<BlocklistDeps, 'hop'> & {
    /** Names for messages, by which the clean ones are known; null = none is remembered. */
    readonly digests: KeyedDigests | null
    /** Reads prompts, for routing too. */
    readonly readFeatures: FeatureReader
  }

/** Puts the layers together. The settings have been checked: no rule of theirs fails to compile. */
export function createSafety(deps: SafetyDeps, settings: SafetySettings): Moderation {
  const rules = compileRules([...settings.rules, ...safetyRules])
  const blocklist = openBlocklist(deps, {
    sources: settings.blocklists,
    reloadMs: settings.reloadMs,
    allow: settings.allow,
  })
  const classifier = createHarmClassifier(deps.readFeatures)
  const known = deps.digests === null ? unknown : createKnown(deps.digests, blocklist.version)
  const answerRules: OutputModerationRules = { rules, hosts: blocklist, listen: classifier.listen, known: null }
  const shownRules: OutputModerationRules = { ...answerRules, known: known.answers }
  const screen = createTextModerator({
    rules,
    hosts: blocklist,
    dataRules: compileRules(rulesForData(settings.rules)),
    classify: classifier,
    answer: text => verdictOfAnswer(answerRules, text),
    known,
  })
  const moderation = settings.moderation === null ? null : createExternalModeration(deps, settings.moderation)
  return {
    screen: screen.text,
    screenData: screen.data,
    screenEmbedded: screen.embedded,
    screenMessages: screen.messages,
    screenDefinition: screen.definition,
    read(messages) {
      const { verdict, layer, category, score } = screen.messages(messages)
      return { verdict, layer, category, score }
    },
    isListed: address => containsBlockedHost(blocklist, address),
    moderation,
    secrets: settings.secrets,
    leaksIn: detectSecrets,
    secretsIn: message => known.secretsIn(message, detectSecretKinds),
    screenAnswer: mode => (settings.screenAnswers ? createOutputModerator(shownRules, mode) : null),
    ready: blocklist.ready,
    figures: () => ({
      blockedHosts: blocklist.size(),
      moderation: moderation === null ? null : { ...moderation.counts },
    }),
    close: () => blocklist.close(),
  }
}

const unknown: CleanTextCache = {
  scoreOf: () => null,
  keep() {},
  answers: () => ({ isClean: false, keep() {} }),
  secretsIn: (message, find) => find(message),
}

/** A whole answer at once, as history holds it. */
function verdictOfAnswer(rules: OutputModerationRules, text: string): Verdict {
  const screen = createOutputModerator(rules, null)
  screen.take([
    { type: 'text', choice: 0, text },
    { type: 'finish', choice: 0, reason: 'stop' },
  ])
  return screen.hit() ?? allowVerdict
}
