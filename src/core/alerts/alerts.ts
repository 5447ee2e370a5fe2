/** Alerts of an account or a project: thresholds with hysteresis, so that one condition gives one message. */
import { latencyQuantile } from '../usage/latency-histogram.ts'
import { toUsd } from '../usage/money.ts'

export const alertMetrics = ['spend', 'error_rate', 'latency'] as const
export type AlertMetric = (typeof alertMetrics)[number]

export const alertWindowMinutes = { shortest: 5, longest: 60 } as const
export const defaultWindowMinutes = 15
/** Maximum alerts of a project, and of an account without those of its projects. */
export const maximumAlerts = 20
/** Of an account and all its projects, so that one account does not delay the alerts of others. */
export const maximumAccountAlerts = 200
/** Windows with fewer requests say nothing about errors and latency. */
const minimumRequests = 20
/** A firing alert resolves below this share of its threshold. */
const resolvedShare = 0.8
const quantile = 0.95

/** Sums of an account or a project from a UTC day on. */
export type WindowSums = {
  readonly requests: number
  readonly failed: number
  /** Counts of completed requests per bucket of the latency histogram. */
  readonly latency: readonly number[]
}

/** Returns the sums between two readings from the same day on. A replaced record may lower a sum. */
export function sumsBetween(before: WindowSums, after: WindowSums): WindowSums {
  return {
    requests: Math.max(0, after.requests - before.requests),
    failed: Math.max(0, after.failed - before.failed),
    latency: after.latency.map((count, index) => Math.max(0, count - (before.latency[index] ?? 0))),
  }
}

/** Returns the value that a threshold is compared with; null = too few requests to tell. */
export function windowValue(metric: Exclude<AlertMetric, 'spend'>, { requests, failed, latency }: WindowSums) {
  if (metric === 'error_rate') return requests < minimumRequests ? null : failed / requests
  const completed = latency.reduce((sum, count) => sum + count, 0)
  return completed < minimumRequests ? null : latencyQuantile(latency, quantile)
}

/** Returns what a value does to an alert: `fired`, `resolved`, or null = nothing. */
export function alertChange(
  { isFiring, threshold }: { readonly isFiring: boolean; readonly threshold: number },
  value: number | null,
): 'fired' | 'resolved' | null {
  if (value === null) return null
  if (!isFiring) return value >= threshold ? 'fired' : null
  return value < threshold * resolvedShare ? 'resolved' : null
}

/** Returns the spend of a day in US dollars. */
export const spendValue = (microcents: number) => toUsd(microcents)

/** Returns why a threshold is invalid; null = it is valid. */
export function thresholdProblem(metric: AlertMetric, threshold: number): string | null {
  if (metric === 'error_rate') return threshold <= 1 ? null : 'must be at most 1 for `error_rate`, such as 0.05 for 5%'
  return null
}

/** Returns an alert's condition as a sentence part, such as `the error rate reached 5%`. */
export function conditionText(metric: AlertMetric, value: number): string {
  switch (metric) {
    case 'spend':
      return `the spend of this UTC day is ${value.toFixed(2)} USD`
    case 'error_rate':
      return `the share of failed requests is ${(value * 100).toFixed(1)}%`
    case 'latency':
      return `the p95 latency is ${Math.round(value)} ms`
  }
}
