/** Expiry and rules of a key as a request body names them. */
import type { Static } from '@sinclair/typebox'
import { timeIn } from '../../core/text/utc-days.ts'
import { invalidField } from '../../core/validation/validate.ts'
import type { ApiKey } from '../../database/tables.ts'
import { changedLimits, type scopeLimitsSchema } from '../../http/scope-limits.ts'
import type { KeyRules } from './stores/key-lineages.ts'

/** An omitted field stays as it is. */
type KeyRulesBody = Partial<Omit<KeyRules, 'limits'>> & {
  readonly expires_at?: string | null
  readonly limits?: Static<typeof scopeLimitsSchema> | null
  readonly project_id?: string | null
}

/** Returns the expiry and the rules that a body names. */
export function rulesIn(
  body: KeyRulesBody,
  before: ApiKey['limits'],
  now: number,
): Partial<Pick<ApiKey, 'expiresAt' | 'projectId' | keyof KeyRules>> {
  const { expires_at: expiry, limits, models, tags, strategy, fallback, hedge, project_id: projectId } = body
  return {
    ...(expiry === undefined ? {} : { expiresAt: expiry === null ? null : futureTime(expiry, now) }),
    ...(limits === undefined ? {} : { limits: changedLimits(before, limits, now) }),
    ...(models === undefined ? {} : { models }),
    ...(tags === undefined ? {} : { tags: tags === null || Object.keys(tags).length === 0 ? null : tags }),
    ...(strategy === undefined ? {} : { strategy }),
    ...(fallback === undefined ? {} : { fallback }),
    ...(hedge === undefined ? {} : { hedge }),
    ...(projectId === undefined ? {} : { projectId }),
  }
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

function futureTime(text: string, now: number): Date {
  const time = isoTime.test(text) ? timeIn(text) : Number.NaN
  if (time > now) return new Date(time)
  throw invalidField('expires_at', 'must be a future ISO 8601 time, such as `2030-01-31T00:00:00Z`')
}
