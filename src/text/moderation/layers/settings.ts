/** The `safety` part of GATEWAY_CONFIG: schema, defaults, and validation beyond the schema. */

import { type Static, Type } from '@sinclair/typebox'
import { type PolicyRow, policySchema } from '../../../core/policy/constraints.ts'
import { strictObject } from '../../../core/validation/validate.ts'
import { normalizeHostname } from '../../hosts/hostname.ts'
import { compileExpressions, type ModerationRule } from '../../rules/pattern-rules.ts'
import { compilePatterns } from '../../rules/patterns.ts'

const category = Type.String({ pattern: '^[a-z][a-z0-9_]{0,39}$' })

const ruleSchema = strictObject({
  id: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,63}$' }),
  category,
  reason: Type.Optional(Type.String({ maxLength: 200 })),
  /** Word patterns (`text/rules/patterns.ts`). */
  patterns: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 1_024 }), { minItems: 1, maxItems: 256 })),
  /** Regular expressions in RE2's syntax (`text/rules/pattern-rules.ts`). */
  expressions: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 512 }), { minItems: 1, maxItems: 64 })),
})

const moderationSchema = strictObject({
  /** An endpoint in the format of OpenAI's `/v1/moderations`. */
  url: Type.Optional(Type.String({ minLength: 8, maxLength: 2_048 })),
  api_key_env: Type.Optional(Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' })),
  /** With `url` the endpoint's own model; without it a catalog model. */
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  timeout_ms: Type.Optional(Type.Integer({ minimum: 50, maximum: 60_000 })),
  /** Guarantees of the endpoint. */
  policy: Type.Optional(policySchema),
})

export const moderationFileSchema = strictObject({
  secrets: Type.Optional(Type.Union([Type.Literal('warn'), Type.Literal('mask'), Type.Literal('block')])),
  rules: Type.Optional(Type.Array(ruleSchema, { maxItems: 256 })),
  moderation: Type.Optional(moderationSchema),
  /** Paths or https URLs of hosts files or lists of names. */
  blocklists: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 2_048 }), { maxItems: 64 })),
  reload_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 604_800 })),
  allow: Type.Optional(Type.Array(Type.String({ minLength: 3, maxLength: 253 }), { maxItems: 10_000 })),
  screen_answers: Type.Optional(Type.Boolean()),
})

type File = Static<typeof moderationFileSchema>

type OperatorRule = Required<Pick<ModerationRule, 'id' | 'category' | 'reason' | 'patterns' | 'expressions'>>

export type ModerationOptions = {
  readonly secrets: 'warn' | 'mask' | 'block'
  readonly rules: readonly OperatorRule[]
  readonly moderation: ModerationSettings | null
  readonly blocklists: readonly string[]
  readonly reloadMs: number
  readonly allow: readonly string[]
  readonly screenAnswers: boolean
}

export type ModerationSettings = {
  /** null = a catalog model is used. */
  readonly url: string | null
  readonly apiKey: string | null
  readonly model: string | null
  readonly timeoutMs: number
  /** What the operator declares; absent = nothing. */
  readonly policy?: PolicyRow
}

const defaultModerationTimeoutMs = 3_000
const defaultReloadSeconds = 3_600

/**
 * Returns the settings with defaults. Adds problems to `problems`, one line each: a non-linear rule, a list that is
 * neither a path nor https, an exception that is not a host, a missing key. `urlProblem` returns the problem of a URL
 * that a key is sent to.
 */
export function moderationSettings(
  file: File | undefined,
  read: { readonly secret: (name: string) => string | null; readonly urlProblem: (url: string) => string | null },
  problems: string[],
): ModerationOptions {
  const { secrets, rules = [], moderation, blocklists = [], reload_seconds, allow = [], screen_answers } = file ?? {}
  const tell = (problem: string) => problems.push(`GATEWAY_CONFIG: safety.${problem}`)
  const before = problems.length
  const ids = rules.map(({ id }) => id)
  for (const id of new Set(ids.filter((text, at) => ids.indexOf(text) !== at)))
    tell(`rules: two rules are named "${id}"`)
  for (const list of blocklists)
    if (/^[a-z]+:\/\//i.test(list) && !list.startsWith('https://') && read.urlProblem(list) !== null)
      tell(`blocklists: "${list}" ${read.urlProblem(list)}`)
  for (const host of allow)
    if (normalizeHostname(host) === null) tell(`allow: "${host}" is not a host name; write it as in partner.example`)
  const operatorRules = rules.map(rule => readRule(rule, tell))
  // All rules together have bounds of their own. A reload that met them later would stop the gateway.
  if (problems.length === before)
    attempt(
      () => {
        compilePatterns(operatorRules.flatMap(rule => rule.patterns))
        const expressions = operatorRules.flatMap(rule => rule.expressions)
        if (expressions.length > 0) compileExpressions(expressions)
      },
      problem => tell(`rules: ${problem}`),
    )
  return {
    secrets: secrets ?? 'warn',
    rules: operatorRules,
    moderation: moderation === undefined ? null : readModeration(moderation, read, tell),
    blocklists,
    reloadMs: (reload_seconds ?? defaultReloadSeconds) * 1_000,
    allow,
    screenAnswers: screen_answers ?? true,
  }
}

function readRule(rule: Static<typeof ruleSchema>, tell: (problem: string) => void): OperatorRule {
  const { id, patterns = [], expressions = [] } = rule
  if (patterns.length + expressions.length === 0) tell(`rules: "${id}" has neither patterns nor expressions`)
  for (const pattern of patterns)
    attempt(
      () => compilePatterns([pattern]),
      problem => tell(`rules: "${id}": ${problem}`),
    )
  for (const expression of expressions)
    attempt(
      () => {
        if (compileExpressions([expression]).match('').length > 0)
          throw new TypeError(`"${expression}" matches every text`)
      },
      problem => tell(`rules: "${id}": ${problem}`),
    )
  return { id, category: rule.category, reason: rule.reason ?? 'An operator’s rule.', patterns, expressions }
}

function attempt(work: () => unknown, fail: (problem: string) => void): void {
  try {
    work()
  } catch (cause) {
    fail(cause instanceof Error ? cause.message : 'cannot be read')
  }
}

function readModeration(
  { url, api_key_env, model, timeout_ms, policy }: Static<typeof moderationSchema>,
  read: Parameters<typeof moderationSettings>[1],
  tell: (problem: string) => void,
): ModerationSettings {
  if (url === undefined && model === undefined) tell('moderation: requires a url or a model')
  const apiKey = api_key_env === undefined ? null : read.secret(api_key_env)
  if (api_key_env !== undefined && apiKey === null) tell(`moderation names ${api_key_env}, which is not set`)
  const problem = url === undefined ? null : read.urlProblem(url)
  if (problem !== null) tell(`moderation: url ${problem}`)
  if (policy !== undefined && url === undefined)
    tell('moderation: `policy` belongs to a url; a model has that of its provider')
  return {
    url: url ?? null,
    apiKey,
    model: model ?? null,
    timeoutMs: timeout_ms ?? defaultModerationTimeoutMs,
    ...(policy === undefined ? {} : { policy }),
  }
}
