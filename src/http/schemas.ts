/**
 * Response schemas of the gateway's own routes. The API reference, the client library's types and the dashboard's types
 * come from them.
 */
import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { roles } from '../core/accounts/roles.ts'
import { continuePolicies, fallbackPolicies, queryTypes } from '../core/chat/chat.ts'
import { highestLimits, plans } from '../core/limits/plans.ts'
import { isLimited, type ScopeLimits, unlimitedScope } from '../core/limits/scopes.ts'
import { constraintsSchema } from '../core/policy/constraints.ts'
import { fromUsd, toUsd } from '../core/usage/money.ts'
import { shadowSchema } from '../core/usage/shadow.ts'
import { shownFields } from '../core/usage/shown-fields.ts'
import { type ErrorCode, errorTable, wireCode } from '../core/validation/errors.ts'
import { nullable, oneOf, strictObject } from '../core/validation/validate.ts'

/**
 * Object with its own name in the API reference and the client library. A version of the API only adds fields, so clients
 * must ignore unknown ones of a response.
 */
export function namedSchema<P extends TProperties>(title: string, properties: P) {
  return strictObject(properties, { title })
}

/** A value that may be null. Unlike a request field, it is always present. */
export function orNull<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()])
}

/** `{ "data": […] }` */
export function list<S extends TSchema>(schema: S) {
  return strictObject({ data: Type.Array(schema) })
}

/** An opaque ID that begins with `prefix`. */
export function id(prefix: string) {
  return Type.String({ examples: [`${prefix}_5f0c1b7ae94d42d8`] })
}

/** A text with one of these values in the reference's examples. */
export function text(example: string, description?: string) {
  return Type.String({ examples: [example], ...(description === undefined ? {} : { description }) })
}

export const time = Type.String({
  format: 'date-time',
  description: 'a time in UTC',
  examples: ['2026-05-05T12:00:00.000Z'],
})
export const day = Type.String({ format: 'date', description: 'a UTC day', examples: ['2026-05-05'] })
export const usd = Type.Number({ minimum: 0, description: 'US dollars, to 1e-8', examples: [0.00042] })
export const signedUsd = Type.Number({ description: 'US dollars, to 1e-8', examples: [0.00042] })
export const count = Type.Integer({ minimum: 0, examples: [12] })
export const share = Type.Number({ minimum: 0, maximum: 1, examples: [0.42] })
export const queryType = oneOf(queryTypes)
export const modelName = Type.String({ description: '`provider/model`', examples: ['openai/gpt-5.5'] })

/** The gateway's own fields in the usage of a response. */
export const shownCostFields = {
  cost_usd: usd,
  hedge_cost_usd: Type.Optional(
    Type.Number({
      minimum: 0,
      description: 'US dollars for the attempt that lost a hedge, part of the cost; absent if none did',
      examples: [0.0002],
    }),
  ),
  cache_saved_usd: Type.Optional(
    Type.Number({
      description:
        'US dollars that the provider’s prompt cache saved; negative if writing to it cost more; absent if it was not used',
      examples: [0.0031],
    }),
  ),
  continued: Type.Optional(
    Type.Array(
      strictObject({
        model: modelName,
        at: Type.Integer({ minimum: 0, description: 'characters of the text before', examples: [812] }),
      }),
      { description: 'where a text that its upstream cut was continued, and by which model; absent if it was not cut' },
    ),
  ),
}

export const planName = oneOf(Object.keys(plans) as (keyof typeof plans)[])

export const userShape = namedSchema('User', {
  id: id('usr'),
  email: text('ada@example.com'),
  role: oneOf(roles),
  verification_pending: Type.Boolean({
    description: 'the email address is not confirmed; until then the user can only read',
  }),
  created_at: time,
})
export type ShownUser = Static<typeof userShape>

export const limitsShape = strictObject({
  requests_per_minute: count,
  concurrent_requests: count,
  daily_tokens: count,
  daily_cost_usd: usd,
})

export const accountShape = namedSchema('Account', {
  id: id('acc'),
  name: text('Analytical Engines'),
  plan: planName,
  web: Type.Boolean({ description: 'whether requests of the account may use web access' }),
  hedge: Type.Boolean({
    description: 'whether requests of the account hedge a late first token, unless they say otherwise',
  }),
  requires_two_factor: Type.Boolean({
    description: 'whether users who sign in with a password must use a second factor',
  }),
  fallback: { ...orNull(oneOf(fallbackPolicies)), description: 'fallback policy of its requests; null = `any`' },
  continue: {
    ...orNull(oneOf(continuePolicies)),
    description: 'who may continue its cut texts; null = the request chooses',
  },
  baseline_model: {
    ...orNull(modelName),
    description: 'model that savings compare with; null = the one of the operator',
  },
  shadow: orNull(shadowSchema),
  constraints: {
    ...orNull(constraintsSchema),
    description: 'constraints on who may receive its requests; null = none',
  },
  limits: limitsShape,
  created_at: time,
})
export type ShownAccount = Static<typeof accountShape>

/** Response of register, sign-in, refresh and accepting an invitation. */
export const sessionShape = namedSchema('Session', {
  token: text('eyJhbGciOiJIUzI1NiIs…', 'a session token (JWT), valid for 15 minutes'),
  expires_at: time,
  refresh_token: text('gw_refresh_…', 'valid for one refresh'),
  user: userShape,
  account: accountShape,
  two_factor_setup_required: Type.Boolean({
    description: 'the account requires two-factor sign-in, and the user must set it up first',
  }),
  single_sign_on: Type.Boolean({ description: 'started by single sign-on: signing out continues at the provider' }),
})
export type ShownSignIn = Static<typeof sessionShape>

/** Result of prompt enhancement; `enhanced_prompt` is the unchanged prompt if nothing was added. */
export const enhancementShape = namedSchema('Enhancement', {
  changed: Type.Boolean(),
  enhanced_prompt: text('Write a tail-recursive factorial in TypeScript, with its types and one example of use.'),
  query_type: queryType,
})
export type ShownEnhancement = Static<typeof enhancementShape>

const codes = [...new Set((Object.keys(errorTable) as ErrorCode[]).map(wireCode))]
const types = [...new Set(Object.values(errorTable).map(({ type }) => type))]

/** Error object, in every dialect. */
export const errorFields = {
  type: oneOf(types),
  code: oneOf(codes),
  message: text('`prompt` is missing: it must be a string.', 'what to do next'),
  param: orNull(text('messages.0.content', 'dotted path of the field at fault')),
  request_id: id('req'),
  attempts: Type.Optional(
    Type.Array(
      strictObject({
        model: modelName,
        outcome: text('overloaded', 'why it failed; `skipped_…` = it was not called'),
        duration_ms: Type.Integer({ minimum: 0, examples: [412] }),
      }),
      { description: 'for a chat request without a serving model: the candidates in order' },
    ),
  ),
  limit: Type.Optional(
    text('key.daily_cost_usd', 'the limit that was reached: of `account`, of `key`, or of `tag:<name>=<value>`'),
  ),
  details: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'facts that clients of Anthropic act on' }),
  ),
  upstream_code: Type.Optional(
    text('unsupported_value', 'for a request that its model refused: the code of the provider'),
  ),
  layer: Type.Optional(text('patterns', 'for a blocked request: the verdict')),
  category: Type.Optional(text('jailbreak')),
  usage: Type.Optional(
    strictObject(
      { input_tokens: count, output_tokens: count, total_tokens: count, cost_usd: usd, estimated: Type.Boolean() },
      { description: 'for a repeated chat request: usage of the request with `request_id`' },
    ),
  ),
  result_id: Type.Optional(
    text('key_5f0c1b7ae94d42d8', 'for another repeated request: ID of the resource that it created'),
  ),
}

/** Error body of a route without its own form. */
export const errorShape = namedSchema('Error', { error: namedSchema('ErrorDetail', errorFields) })

/** Fields that several routes accept. */

/** Name of a resource. Control characters are rejected: clients display the name, and Postgres rejects a NUL. */
export const nameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description: 'a name of 1 to 100 printable characters',
})

/** ID of a project. */
export const projectIdSchema = Type.String({ pattern: '^[\\w.-]{1,64}$', description: 'the ID of a project' })

/** Limits of an API key or a tag in the API's form. */

const whole = (maximum: number) => nullable(Type.Integer({ minimum: 0, maximum }))
const amount = nullable(Type.Number({ minimum: 0, maximum: highestLimits.dailyUsd }))

/** Limits in a request: absent = unchanged, null = unlimited. */
export const scopeLimitsSchema = strictObject({
  requests_per_minute: whole(highestLimits.count),
  concurrent_requests: whole(highestLimits.count),
  daily_tokens: whole(highestLimits.dailyTokens),
  daily_cost_usd: amount,
  monthly_cost_usd: amount,
})

export const scopeLimitsShape = strictObject({
  requests_per_minute: orNull(count),
  concurrent_requests: orNull(count),
  daily_tokens: orNull(count),
  daily_cost_usd: orNull(usd),
  monthly_cost_usd: orNull(usd),
})

/** Usage that the limits of a scope count, as far as the ledger has it. */
export const scopeUsedShape = strictObject(
  { daily_tokens: count, daily_cost_usd: usd, monthly_cost_usd: usd },
  { description: 'of this UTC day and calendar month' },
)

export const tagShape = namedSchema('LimitedTag', {
  name: text('team'),
  value: text('search'),
  limits: orNull(scopeLimitsShape),
  used: scopeUsedShape,
})
/** A tag with its limits and usage; null = no limits. */
export type ShownTag = Static<typeof tagShape>

/** Returns limits with a change applied; null = none is left. */
export function changedLimits(
  before: ScopeLimits | null,
  change: Static<typeof scopeLimitsSchema> | null,
  now: number,
): ScopeLimits | null {
  if (change === null) return null
  const old = before ?? unlimitedScope
  const either = <T>(sent: T | undefined, present: T) => (sent === undefined ? present : sent)
  const money = (sent: number | null | undefined, present: number | null) =>
    sent === undefined ? present : sent === null ? null : fromUsd(sent)
  const limits: ScopeLimits = {
    requestsPerMinute: either(change.requests_per_minute, old.requestsPerMinute),
    concurrentRequests: either(change.concurrent_requests, old.concurrentRequests),
    dailyTokens: either(change.daily_tokens, old.dailyTokens),
    dailyCostMicrocents: money(change.daily_cost_usd, old.dailyCostMicrocents),
    monthlyCostMicrocents: money(change.monthly_cost_usd, old.monthlyCostMicrocents),
    since: old.since ?? now,
  }
  return isLimited(limits) ? limits : null
}

/** Returns limits as shown to their account. */
export function shownScopeLimits(limits: ScopeLimits): Static<typeof scopeLimitsShape> {
  const { requestsPerMinute, concurrentRequests, dailyTokens, dailyCostMicrocents, monthlyCostMicrocents } = limits
  const counts = { requestsPerMinute, concurrentRequests, dailyTokens }
  return shownFields({ ...counts, dailyCostMicrocents, monthlyCostMicrocents })
}

/** Returns usage as shown beside limits. Money is an integer of 1e-8 USD. */
export function shownScopeUsed(used: {
  readonly tokens: number
  readonly microcents: number
  readonly monthMicrocents: number
}) {
  return {
    daily_tokens: used.tokens,
    daily_cost_usd: toUsd(used.microcents),
    monthly_cost_usd: toUsd(used.monthMicrocents),
  }
}
