/**
 * Scopes: an API key and tags may have limits of their own beside the account's. A request counts in each of its scopes,
 * and is admitted only if all allow it.
 */
import { dayMs, formatDay } from '../text/utc-days.ts'
import type { UsageRecord } from '../usage/usage-record.ts'

/** Limits of one scope; null = unlimited. Money is an integer of 1e-8 USD. */
export type ScopeLimits = {
  readonly requestsPerMinute: number | null
  readonly concurrentRequests: number | null
  readonly dailyTokens: number | null
  readonly dailyCostMicrocents: number | null
  readonly monthlyCostMicrocents: number | null
  /** When the scope got limits, in epoch milliseconds; absent = 0. Before, nothing was counted in it. */
  readonly since?: number
}

/** A limited scope of a request. `name` is `key:<ID of the lineage's first key>` or `tag:<name>=<value>`. */
export type Scope = { readonly name: string; readonly limits: ScopeLimits }

/** Usage of a scope on one day and in its UTC calendar month. */
export type ScopeUsage = {
  readonly name: string
  readonly tokens: number
  readonly microcents: number
  readonly monthMicrocents: number
}

/** Maximum number of scopes of one request: its key, its project and its tags. */
export const maximumScopes = 10

export const unlimitedScope: ScopeLimits = {
  requestsPerMinute: null,
  concurrentRequests: null,
  dailyTokens: null,
  dailyCostMicrocents: null,
  monthlyCostMicrocents: null,
}

/** Returns true if at least one limit is set. */
export function isLimited({ since: _, ...limits }: ScopeLimits): boolean {
  return Object.values(limits).some(limit => limit !== null)
}

/**
 * Returns the name of a scope's counters. It changes when limits are removed and set again: counters from before the gap lack what was
 * used without limits.
 */
export function getCounterName({ name, limits }: Scope): string {
  return `${name}@${limits.since ?? 0}`
}

export const keyScopeName = (lineageId: string) => `key:${lineageId}`
export const tagScopeName = (name: string, value: string) => `tag:${name}=${value}`

/** Returns the names of all scopes of a request, limited or not: its key and its tags. */
export function getScopeNames(record: Pick<UsageRecord, 'key_id' | 'lineage_id' | 'tags'>): readonly string[] {
  const { key_id, lineage_id = key_id, tags } = record
  return [keyScopeName(lineage_id), ...Object.entries(tags ?? {}).map(([name, value]) => tagScopeName(name, value))]
}

/** Returns the first and the last UTC day of the calendar month of a day. */
export function monthDays(day: number): readonly [number, number] {
  const date = new Date(day * dayMs)
  const first = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1) / dayMs
  return [first(0), first(1) - 1]
}

/** Returns the UTC calendar month of a day, in months since year 0. */
export function getMonth(day: number): number {
  const date = new Date(day * dayMs)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

/** Returns the milliseconds from a time to the next UTC calendar month. */
export function untilNextMonth(epochMs: number): number {
  const month = getMonth(formatDay(epochMs)) + 1
  return Date.UTC(Math.floor(month / 12), month % 12, 1) - epochMs
}

/** No scopes, without a new array per request. */
export const noScopes: readonly Scope[] = []
