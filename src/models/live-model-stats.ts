/**
 * Live statistics of a model's speed and reliability from the gateway's own traffic, with hourly decay, and their
 * combination with catalog figures.
 */
import type { RoutingFigures } from '../core/models/models.ts'
import type { Figures } from './scoring.ts'

/** Exponentially decayed sums, updated in place for every attempt. Times are monotonic milliseconds. */
export type LiveModelStats = {
  at: number
  /** Completed and failed attempts. */
  tries: number
  failures: number
  /** Streamed responses, and the sum of the natural logarithms of their milliseconds to the first token. */
  firsts: number
  lnFirstTokenMs: number
  /**
   * Streamed responses long enough to measure speed, and the sum of the natural logarithms of their tokens per second.
   */
  paces: number
  lnTokensPerSecond: number
}

/** Measurements of one attempt. Null = not measured. */
export type AttemptSample = {
  readonly failed: boolean
  readonly firstTokenMs: number | null
  readonly tokensPerSecond: number | null
}

const halfLifeMs = 3_600_000
/** Weight of the catalog's speed figures in responses, and of its assumed error rate of 0 in attempts. */
const prior = { answers: 5, tries: 10 }
/** Values outside are artifacts of batching or of a clock. */
const bounds = { firstTokenMs: [1, 600_000], tokensPerSecond: [1, 5_000] } as const

export function emptyStats(at: number): LiveModelStats {
  return { at, tries: 0, failures: 0, firsts: 0, lnFirstTokenMs: 0, paces: 0, lnTokensPerSecond: 0 }
}

/** Adds an attempt. Averages logarithms, so that one slow response has a limited effect. */
export function addAttemptSample(
  live: LiveModelStats,
  { failed, firstTokenMs, tokensPerSecond }: AttemptSample,
  now: number,
): void {
  fade(live, now)
  live.tries++
  if (failed) live.failures++
  if (firstTokenMs !== null) {
    live.firsts++
    live.lnFirstTokenMs += Math.log(within(bounds.firstTokenMs, firstTokenMs))
  }
  if (tokensPerSecond !== null) {
    live.paces++
    live.lnTokensPerSecond += Math.log(within(bounds.tokensPerSecond, tokensPerSecond))
  }
}

function fade(live: LiveModelStats, now: number): void {
  const kept = keptAt(live, now)
  live.at = now
  if (kept === 1) return
  live.tries *= kept
  live.failures *= kept
  live.firsts *= kept
  live.lnFirstTokenMs *= kept
  live.paces *= kept
  live.lnTokensPerSecond *= kept
}

function keptAt({ at }: LiveModelStats, now: number): number {
  return now <= at ? 1 : 0.5 ** ((now - at) / halfLifeMs)
}

/** Returns the catalog's figures shifted toward the measurements: more so with more and newer ones. */
export function blendWithCatalog(published: RoutingFigures, live: LiveModelStats, now: number): Figures {
  const kept = keptAt(live, now)
  return {
    quality: published.quality,
    firstTokenMs: towards(published.firstTokenMs, live.firsts * kept, live.lnFirstTokenMs * kept),
    tokensPerSecond: towards(published.tokensPerSecond, live.paces * kept, live.lnTokensPerSecond * kept),
    errorRate: (live.failures * kept) / (live.tries * kept + prior.tries),
    tries: live.tries * kept,
  }
}

function towards(published: number, answers: number, logarithms: number): number {
  if (answers === 0 || published <= 0) return published
  return Math.exp((Math.log(published) * prior.answers + logarithms) / (prior.answers + answers))
}

function within([low, high]: readonly [number, number], value: number): number {
  return Math.max(low, Math.min(high, value))
}
