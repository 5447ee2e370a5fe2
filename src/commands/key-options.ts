/** Values of options that give keys and projects their rules. */
import { Value } from '@sinclair/typebox/value'
import type { ScopeLimits } from '../core/limits/scopes.ts'
import { dayMs, timeIn } from '../core/text/utc-days.ts'
import { changedLimits, scopeLimitsSchema } from '../http/schemas.ts'
import { modelPattern } from '../models/allowed-models.ts'
import { UsageError } from './command.ts'

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: dayMs }

/** Returns a duration such as `90d` in milliseconds; null = it is not a duration. */
export function durationIn(text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (text === '0') return 0
  return count === undefined ? null : Number(count) * (units[unit] ?? 0)
}

/** Returns the time that a duration or an ISO 8601 time means. Throws a `UsageError` if it is not in the future. */
export function keyExpiryIn(text: string, now: number): Date {
  const duration = durationIn(text)
  const at = duration === null ? timeIn(text) : now + duration
  if (at > now) return new Date(at)
  throw new UsageError(
    '--expires must be a duration such as 90d or 12h, or a future time such as 2030-01-31T00:00:00Z.',
  )
}

const modelShape = new RegExp(modelPattern)

/** Returns the models of `--models`; null = all. Throws a `UsageError`. */
export function modelListIn(text: string | undefined): string[] | null {
  if (text === undefined) return null
  const models = text.split(',').map(one => one.trim())
  if (!models.every(one => modelShape.test(one)))
    throw new UsageError('--models must be a list such as openai/gpt-5.5,anthropic/*.')
  return models
}

const limitNames = 'requests_per_minute, concurrent_requests, daily_tokens, daily_cost_usd, monthly_cost_usd'

/** Returns the limits of `--limits`; null = none. Throws a `UsageError`. */
export function limitsIn(text: string | undefined, now: Date): ScopeLimits | null {
  if (text === undefined) return null
  const sent = Object.fromEntries(
    text.split(',').map(pair => {
      const [name = '', value = ''] = pair.split('=').map(one => one.trim())
      return [name, value === '' ? Number.NaN : Number(value)]
    }),
  )
  if (!Value.Check(scopeLimitsSchema, sent)) throw new UsageError(`--limits must be NAME=NUMBER,… of ${limitNames}.`)
  return changedLimits(null, sent, now.getTime())
}
