/** The real path of one request (adapters, meter, health tracker) over a network that the test plays. */
import { readConfig } from '../../src/config/config.ts'
import { webPrices } from '../../src/core/chat/web-sources.ts'
import type { Caller, Limits } from '../../src/core/limits/plans.ts'
import type { EmbeddingModel } from '../../src/core/models/embedding-models.ts'
import { buildCatalog, type Model } from '../../src/core/models/models.ts'
import { createKeyedDigests } from '../../src/core/text/keyed-digests.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { createCacheAffinity } from '../../src/learning/cache-affinity.ts'
import { createEstimateCalibration } from '../../src/learning/estimate-calibration.ts'
import { createAnalysisCache } from '../../src/learning/recent-prompts.ts'
import { createMemoryMeter } from '../../src/limits/memory.ts'
import { createHealthTracker } from '../../src/models/health-tracker.ts'
import { HedgeBudget } from '../../src/models/hedging.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import type { ConfiguredProvider } from '../../src/providers/configured-provider.ts'
import { google } from '../../src/providers/google.ts'
import { type OwnKey, OwnKeys } from '../../src/providers/keys/own-keys.ts'
import { openai } from '../../src/providers/openai.ts'
import type { AnswerDeps } from '../../src/request/answer.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { type Format, formats } from '../faults/support.ts'
import { movedClock } from '../harness/moved-clock.ts'
import { moderationFor } from '../text/moderation/layers/support.ts'

const readers = openPromptAnalyzer()
const moderation = moderationFor()

export const startedAt = Date.UTC(2026, 4, 5, 12)

export const plenty: Limits = {
  requestsPerMinute: 1_000_000,
  concurrentRequests: 4,
  dailyTokens: 1_000_000_000,
  dailyCostMicrocents: 1_000_000_000_000,
}

export const caller: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'usage', limits: plenty }

type Play = (format: Format, init: RequestInit) => Promise<Response>

/** `play` responds to the calls of all upstreams. `share` limits hedges, as in the configuration. */
export function createWorld(play: Play, models: readonly Model[], limits: Limits, share = 1) {
  const time = movedClock(startedAt)
  const { clock } = time
  const records: UsageRecord[] = []
  const journal = {
    appendTogether: async (record: UsageRecord) => void records.push(record),
    isWritable: () => true,
    untilDurable: async () => {},
  }
  const meter = createMemoryMeter({ clock, journal, seed: async () => ({ tokens: 0, microcents: 0 }) })
  const health = createHealthTracker({ clock })
  const providers = { openai: openai({ official: true }), anthropic, google }
  const endpoints = new Map(
    formats.map((id): [string, ConfiguredProvider] => [
      id,
      { id, provider: providers[id], access: { baseUrl: `http://${id}`, apiKey: 'key' }, simulated: true },
    ]),
  )
  const ownKeys = new OwnKeys({ clock, endpoints, health, isAllowed: () => true })
  const owned: OwnKey[] = []
  const deps: AnswerDeps = {
    config: readConfig({}),
    ownKeys,
    decisionWire: openai({ official: false }),
    clock,
    network: {
      reaches: async () => true,
      fetch(url: string, init: RequestInit) {
        const format = formats.find(item => item === new URL(url).hostname)
        if (format === undefined) throw new Error(`no provider at ${url}`)
        return play(format, init)
      },
    },
    log: { info() {}, warn() {}, error() {} },
    catalog: buildCatalog(models),
    random: () => 0,
    embeddingCatalog: buildCatalog<EmbeddingModel>([]),
    tokenizer: { decode: async () => [] },
    endpoints,
    read: readers.read,
    moderation,
    // These requests need no web access.
    web: {
      search: { isThere: () => false, find: async () => [] },
      pages: { read: async url => ({ url, code: 'refused' }) },
      prices: webPrices,
      screen: () => true,
      screenPage: () => true,
    },
    randomBytes: count => new Uint8Array(count),
    meter,
    health,
    learning: { of: () => null },
    observe: { admitted() {}, settled() {} },
    prompts: createAnalysisCache(readers, createKeyedDigests(new Uint8Array(32))),
    calibration: createEstimateCalibration({ clock }),
    ties: createCacheAffinity(clock, 'secret'),
    getPromptCacheKey: (accountId, name) => `${accountId} ${name}`,
    cacheMarks: () => null,
    hedges: new HedgeBudget(share),
  }
  const reservationsTaken = () => {
    const reservations = meter.quotaStatus(caller.accountId, limits)?.reservations
    return reservations === undefined ? 0 : reservations.limit - reservations.remaining
  }
  /** Gives the account an own key of a provider, which contains "own-key". */
  const own = (provider: Format, fallback = true, name = 'main') => {
    const { accountId } = caller
    owned.push({ ...{ id: `pvk_${name}`, accountId, projectId: null, provider, name, fallback }, secret: 'sealed' })
    ownKeys.replace([...owned], ({ id }) => `own-key-${id}`)
  }
  return { deps: { ...deps, health }, records, reservationsTaken, time, own }
}
