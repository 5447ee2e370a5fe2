/**
 * Alerts of an account or a project: thresholds with hysteresis, so that one crossing gives one message. An alert reads one
 * value, or one per subject: a budget, a model, a session.
 */
import { latencyQuantile } from '../usage/latency-histogram.ts'
import { toUsd } from '../usage/money.ts'
import type { EventProject, WebhookEvent } from '../webhooks/events.ts'

export const budgetKinds = ['account', 'key', 'tag', 'project'] as const
export type BudgetKind = (typeof budgetKinds)[number]
export const budgetSpans = ['day', 'month'] as const
export type BudgetSpan = (typeof budgetSpans)[number]

/** Name of each metric, the unit in which people read it, and whether it is of a window. A value in % is a share from 0 to 1. */
export const metricRules = {
  spend: { title: 'Spend per UTC day', unit: 'USD', hasWindow: false },
  budget: { title: 'Used share of a budget', unit: '%', hasWindow: false },
  error_rate: { title: 'Failed requests', unit: '%', hasWindow: true },
  latency: { title: 'Latency, p95', unit: 'ms', hasWindow: true },
  model_failures: { title: 'Model down', unit: '%', hasWindow: true },
  cache_drop: { title: 'Cache share lost in a session', unit: '%', hasWindow: true },
  unpriced: { title: 'Unpriced requests', unit: 'requests', hasWindow: true },
  runaway: { title: 'Runaway conversations', unit: 'requests', hasWindow: true },
} as const satisfies Record<string, { title: string; unit: '%' | 'ms' | 'USD' | 'requests'; hasWindow: boolean }>
export type AlertMetric = keyof typeof metricRules
export const alertMetrics = Object.keys(metricRules) as readonly AlertMetric[]

export const alertWindowMinutes = { shortest: 5, longest: 60 } as const
export const defaultWindowMinutes = 15
/** Maximum alerts of a project, and of an account without those of its projects. */
export const maximumAlerts = 20
/** Of an account and all its projects, so that one account does not delay the alerts of others. */
export const maximumAccountAlerts = 200
/** Windows with fewer requests say nothing about errors and latency. */
const minimumRequests = 20
/**
 * A firing alert resolves below this share of its threshold. The used share of a budget falls only if its limit rises: the next
 * crossing is of another limit.
 */
const getResolvedShare = (metric: AlertMetric) => (metric === 'budget' ? 1 : 0.8)
const quantile = 0.95
/** Maximum subjects that begin to fire in one evaluation; others follow in the next. */
const maximumFired = 50

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
export function windowValue(metric: 'error_rate' | 'latency', { requests, failed, latency }: WindowSums) {
  if (metric === 'error_rate') return requests < minimumRequests ? null : failed / requests
  const completed = latency.reduce((sum, count) => sum + count, 0)
  return completed < minimumRequests ? null : latencyQuantile(latency, quantile)
}

/** The value of one subject of an alert. */
export type AlertReading = {
  /** Identifies a budget with its period, a model or a session among those of the alert; empty = the alert has one value. */
  readonly subject: string
  /** Null = too few requests to tell. */
  readonly value: number | null
  /** The value as a sentence, without a full stop. */
  readonly text: string
  /** Names the subject in events. */
  readonly data: WebhookEvent['data']
  /** Project of the subject; null = none, or that of the alert. */
  readonly project: EventProject | null
}

/** What the email about an alert says. */
export type AlertEmail = {
  readonly metric: AlertMetric
  readonly threshold: number
  /** Name of its project; null = the alert is about the account. */
  readonly project: string | null
  /** A sentence per subject that began to fire. */
  readonly texts: readonly string[]
}

type AlertChanges = {
  readonly fired: readonly AlertReading[]
  readonly resolved: readonly AlertReading[]
  /** Subjects that fire from now on. */
  readonly firing: readonly string[]
}

/**
 * Returns the subjects that crossed the threshold. A budget's period and a session end: one without a value fires no
 * longer. A model without calls keeps its state, as does a window with too few requests.
 */
export function alertChanges(
  {
    metric,
    threshold,
    firing,
  }: { readonly metric: AlertMetric; readonly threshold: number; readonly firing: readonly string[] },
  readings: readonly AlertReading[],
): AlertChanges {
  const isFiring = new Set(firing)
  const fired = readings
    .filter(({ subject, value }) => value !== null && value >= threshold && !isFiring.has(subject))
    .slice(0, maximumFired)
  const resolved = readings.filter(
    ({ subject, value }) => value !== null && value < threshold * getResolvedShare(metric) && isFiring.has(subject),
  )
  const ends = metric === 'budget' || metric === 'cache_drop'
  const present = new Set(readings.map(({ subject }) => subject))
  const over = new Set(resolved.map(({ subject }) => subject))
  const kept = firing.filter(subject => !over.has(subject) && (present.has(subject) || !ends))
  return { fired, resolved, firing: [...kept, ...fired.map(({ subject }) => subject)] }
}

/** Returns the highest value of an alert's readings; null = none. */
export function highestValue(readings: readonly AlertReading[]): number | null {
  return readings.reduce<number | null>(
    (highest, { value }) => (value === null ? highest : Math.max(highest ?? value, value)),
    null,
  )
}

/** Returns whether budgets of this kind can belong to a project: its own and those of keys in it. */
export const canBeInProject = (budget: BudgetKind | null) => budget === null || budget === 'key' || budget === 'project'

/** Returns why a threshold is invalid; null = it is valid. */
export function thresholdProblem(metric: AlertMetric, threshold: number): string | null {
  return metricRules[metric].unit === '%' && threshold > 1
    ? `must be at most 1 for \`${metric}\`, such as 0.8 for 80%`
    : null
}

const inPercent = (share: number, digits = 0) => `${(share * 100).toFixed(digits)}%`
const inUsd = (usd: number) => `${usd.toFixed(2)} USD`

const valueTexts = {
  spend: (usd: number) => `The spend of this UTC day is ${inUsd(usd)}`,
  error_rate: (share: number) => `The share of failed requests is ${inPercent(share, 1)}`,
  latency: (ms: number) => `The p95 latency is ${Math.round(ms)} ms`,
  runaway: (count: number) => `${count} requests are of conversations beyond a bound of \`routing.runaway\``,
}

/** Reads a metric that has one value. */
export function valueReading(metric: keyof typeof valueTexts, value: number | null): AlertReading {
  return { subject: '', value, text: valueTexts[metric](value ?? 0), data: {}, project: null }
}

/** A budget with its usage in the running period. Money is an integer of 1e-8 USD. */
export type Budget = {
  readonly kind: BudgetKind
  /** ID of the key's lineage or project, or `name=value` of the tag; empty = the account. */
  readonly id: string
  readonly name: string
  readonly span: BudgetSpan
  /** `2026-01-31`, `2026-01`, or the start of a billing cycle in ISO 8601. */
  readonly period: string
  readonly limit: number
  readonly used: number
  readonly project: EventProject | null
}

const budgetNames: Readonly<Record<BudgetKind, (name: string) => string>> = {
  account: () => 'The account',
  key: name => `The key “${name}”`,
  tag: name => `The tag ${name}`,
  project: name => `The project “${name}”`,
}

/** Reads the used share of a budget. */
export function budgetReading({ kind, id, name, span, period, limit, used, project }: Budget): AlertReading {
  const ids = { key: { key_id: id, name }, tag: { tag: id }, account: {}, project: {} }
  return {
    subject: `${kind}:${id} ${period}`,
    value: used / limit,
    text: `${budgetNames[kind](name)} used ${inPercent(Math.floor((used / limit) * 100) / 100)} of its budget of ${inUsd(toUsd(limit))} for ${period}`,
    data: { budget: kind, period, [span === 'day' ? 'daily_usd' : 'monthly_usd']: toUsd(limit), ...ids[kind] },
    project,
  }
}

/** Reads the share of failed calls of a model. */
export function modelReading({ model, calls, failed }: { model: string; calls: number; failed: number }): AlertReading {
  const text = `${inPercent(failed / calls)} of ${calls} calls of ${model} failed`
  return { subject: model, value: failed / calls, text, data: { model, calls }, project: null }
}

/** Reads how many requests of a model have usage without a known price. */
export function unpricedReading({ model, unpriced }: { model: string; unpriced: number }): AlertReading {
  const text = `The price of ${unpriced} requests of ${model} is not fully known`
  return { subject: model, value: unpriced, text, data: { model, unpriced }, project: null }
}

/** A session's cached share of input tokens before, and in the window; null = too few requests to tell. */
export type SessionShares = { readonly session: string; readonly before: number | null; readonly now: number | null }

/** Reads the lost part of a session's cache share: 1 = nothing is cached any more. */
export function sessionReading({ session, before, now }: SessionShares): AlertReading {
  const ofSession = { subject: session, data: { session }, project: null }
  if (before === null || now === null) return { ...ofSession, value: null, text: '' }
  const text = `The cached share of input tokens in session ${session} fell from ${inPercent(before)} to ${inPercent(now)}`
  return { ...ofSession, value: Math.max(0, 1 - now / before), text }
}
