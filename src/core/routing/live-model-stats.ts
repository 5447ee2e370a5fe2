/**
 * How fast and how reliable a model is for this gateway's own traffic: running figures that fade by the hour, and what they
 * make of the catalogue's.
 */
import type { RoutingFigures } from '../models/models.ts'
import type { Figures } from './scoring.ts'

/** Sums under a fading weight, changed in place: every answer of every request goes in. Times are monotonic milliseconds. */
export type LiveModelStats = {
  at: number
  /** Answers and failures. */
  tries: number
  failures: number
  /** Streamed answers, and the natural logarithms of their milliseconds to the first token. */
  firsts: number
  lnFirstTokenMs: number
  /** Streamed answers long enough to tell a pace, and the natural logarithms of their tokens a second. */
  paces: number
  lnTokensPerSecond: number
}

/** What a try has shown. Null = not measured in it. */
export type AttemptSample = {
  readonly failed: boolean
  readonly firstTokenMs: number | null
  readonly tokensPerSecond: number | null
}

const halfLifeMs = 3_600_000
/** What the catalogue's figure counts as, in answers of our own; and its trust that nothing fails, in tries. */
const prior = { answers: 5, tries: 10 }
/** Beyond these a measurement is an accident of batching or of a clock. */
const bounds = { firstTokenMs: [1, 600_000], tokensPerSecond: [1, 5_000] } as const

export function emptyStats(at: number): LiveModelStats {
  return { at, tries: 0, failures: 0, firsts: 0, lnFirstTokenMs: 0, paces: 0, lnTokensPerSecond: 0 }
}

/** Takes a try in. Means are of logarithms, so that one slow answer is one slow answer. */
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

/** The catalogue's figures moved towards what was measured, the further the more and the later that was. */
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
