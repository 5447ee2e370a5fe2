/**
 * Rules of three kinds: rewrite the requested model, deny, or split by percent. They come from the configuration file and
 * from accounts, and act in their order. `deny` binds fallbacks too; the others act on the requested name only.
 */
import { type Static, Type } from '@sinclair/typebox'
import { storableName } from '../text/safe-name.ts'
import { GatewayError } from '../validation/errors.ts'
import { oneOf, strictObject } from '../validation/validate.ts'

const patternText = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: storableName,
  description: 'a text of at most 256 characters without control characters; `*` at its end stands for any end',
})
const patterns = Type.Union([patternText, Type.Array(patternText, { minItems: 1, maxItems: 64 })])
const byName = (pattern: string, description: string) =>
  Type.Optional(
    Type.Record(Type.String({ pattern }), patterns, { additionalProperties: false, maxProperties: 16, description }),
  )

/** Headers whose values are credentials: neither a file nor a rule may have them. */
const credentialHeaders = ['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'api-key', 'x-goog-api-key']

const tokens = Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000_000 }))

const target = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: storableName,
  description: 'the name of a model, or `gateway-ai`',
})

/** All conditions of a rule hold together; of a list, one value suffices. An absent condition always holds. */
const conditions = {
  model: Type.Optional(patterns),
  tag: byName('^[A-Za-z0-9_.-]{1,32}$', 'an object of tags and their values'),
  key: Type.Optional(patterns),
  project: Type.Optional(patterns),
  header: byName('^[A-Za-z0-9-]{1,64}$', 'an object of request headers and their values'),
  size: Type.Optional(strictObject({ above_tokens: tokens, up_to_tokens: tokens })),
}

const actions = {
  rewrite: Type.Optional(target),
  deny: Type.Optional(Type.Literal(true)),
  split: Type.Optional(
    Type.Array(strictObject({ model: target, percent: Type.Number({ minimum: 0, maximum: 100 }) }), {
      minItems: 1,
      maxItems: 8,
    }),
  ),
}
const name = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
  description: 'a name of 1 to 64 letters, digits and `_.-`',
  examples: ['canary'],
})

const maximumRules = 64
export const operatorRulesSchema = Type.Array(
  strictObject({
    name,
    when: Type.Optional(strictObject({ ...conditions, account: Type.Optional(patterns) })),
    ...actions,
  }),
  { maxItems: maximumRules },
)
/** Rules of an account, which are for its own requests only. */
export const accountRulesSchema = Type.Array(
  strictObject({ name, when: Type.Optional(strictObject(conditions)), ...actions }),
  { maxItems: maximumRules },
)
export type AccountRuleRow = Static<typeof accountRulesSchema>[number]

export type RuleRow = Static<typeof operatorRulesSchema>[number]

type Owner = 'operator' | 'account'
type Action =
  | { readonly kind: 'deny' }
  | { readonly kind: 'rewrite'; readonly model: string }
  | { readonly kind: 'split'; readonly shares: readonly { readonly model: string; readonly percent: number }[] }

/** A rule as it is matched. Null = no such condition. */
export type Rule = {
  readonly name: string
  readonly owner: Owner
  readonly action: Action
  readonly models: readonly string[] | null
  readonly accounts: readonly string[] | null
  readonly keys: readonly string[] | null
  readonly projects: readonly string[] | null
  readonly tags: readonly Named[]
  readonly headers: readonly Named[]
  readonly aboveTokens: number | null
  readonly upToTokens: number | null
}
type Named = readonly [name: string, patterns: readonly string[]]

/** A rule that changed the requested model. `model`: the new name; null = a split left the name. */
export type ActedRule = Pick<Rule, 'name' | 'owner'> & {
  readonly kind: 'rewrite' | 'split'
  readonly model: string | null
}

/** What rules did to a request. */
export type RuleEffects = {
  /** In order; null = none changed the model. */
  readonly acted: readonly ActedRule[] | null
  /** Deny rules whose other conditions hold: no fallback may be a model that they name. */
  readonly denials: readonly Rule[]
}

/** Returns the problems of rules, one line each; `isModel` knows the targets. */
export function ruleProblems(rows: readonly RuleRow[], isModel: (name: string) => boolean): readonly string[] {
  const names = new Set<string>()
  return rows.flatMap((row, at) => {
    const place = `rules.${at} ("${row.name}")`
    const problems: string[] = []
    if (names.has(row.name)) problems.push(`${place}: has the name of an earlier rule; give each its own`)
    names.add(row.name)
    const { rewrite, deny, split, when } = row
    if ([rewrite, deny, split].filter(action => action !== undefined).length !== 1)
      problems.push(`${place}: must have one of \`rewrite\`, \`deny\` and \`split\``)
    if ((split ?? []).reduce((sum, { percent }) => sum + percent, 0) > 100)
      problems.push(`${place}: \`split\` must have at most 100 percent in all`)
    const targets = [...(rewrite === undefined ? [] : [rewrite]), ...(split ?? []).map(({ model }) => model)]
    for (const model of targets)
      if (!isModel(model)) problems.push(`${place}: no configured provider has a model named "${model}"`)
    const secret = Object.keys(when?.header ?? {}).find(header => credentialHeaders.includes(header.toLowerCase()))
    if (secret !== undefined) problems.push(`${place}: \`when.header\` must not read credentials (${secret})`)
    return problems
  })
}

/** Prepares rules for matching, once per change. Rows without an action are left out. */
export function prepareRules(rows: readonly RuleRow[], owner: Owner): readonly Rule[] {
  return rows.flatMap(row => {
    const action = toAction(row)
    const { when = {} } = row
    return action === null
      ? []
      : {
          ...{ name: row.name, owner, action },
          models: toList(when.model),
          accounts: toList(when.account),
          keys: toList(when.key),
          projects: toList(when.project),
          tags: toNamed(when.tag),
          headers: toNamed(when.header),
          aboveTokens: when.size?.above_tokens ?? null,
          upToTokens: when.size?.up_to_tokens ?? null,
        }
  })
}

function toAction({ rewrite, deny, split }: RuleRow): Action | null {
  if (deny === true) return { kind: 'deny' }
  if (rewrite !== undefined) return { kind: 'rewrite', model: rewrite }
  return split === undefined ? null : { kind: 'split', shares: split }
}

function toList(value: string | readonly string[] | undefined): readonly string[] | null {
  if (value === undefined) return null
  return typeof value === 'string' ? [value] : value
}

function toNamed(values: Readonly<Record<string, string | string[]>> | undefined): readonly Named[] {
  return Object.entries(values ?? {}).map(([key, value]) => [key, toList(value) ?? []])
}

type NamedModel = { readonly id: string; readonly provider: string }

/** The facts of a request that conditions read. */
export type RuleSubject = {
  readonly accountId: string
  /** The key, and the first key of its lineage. */
  readonly keyIds: readonly string[]
  readonly projectId: string | undefined
  readonly tags: Readonly<Record<string, string>> | undefined
  readonly findHeader: (header: string) => string | null
  /** Estimated input tokens, counted at the first call. */
  readonly countTokens: () => number
  /** A number of 0 to 100, the same for all requests of a conversation under one rule. */
  readonly draw: (rule: Pick<Rule, 'name' | 'owner'>) => number
  /** Finds a model by any of its names, also a model that is switched off; null = unknown. */
  readonly resolve: (model: string) => NamedModel | null
}

/**
 * Applies rules in their order to the requested name. Returns the name after them and their effects. Throws `forbidden`,
 * with the name of the rule, if a deny rule matches the requested name or the name after all rewrites.
 */
export function applyRules(
  rules: readonly Rule[],
  subject: RuleSubject,
  requested: string,
): { readonly model: string; readonly effects: RuleEffects } {
  let model = requested
  const acted: ActedRule[] = []
  const denials: Rule[] = []
  for (const rule of rules) {
    if (!holds(rule, subject)) continue
    const { action, name: ruleName, owner } = rule
    const isMatch = matchesModel(rule, model, subject.resolve(model), subject.resolve)
    if (action.kind === 'deny') {
      if (isMatch) throw deniedBy(rule)
      denials.push(rule)
    } else if (isMatch) {
      const next = action.kind === 'rewrite' ? action.model : drawShare(action.shares, subject.draw(rule))
      acted.push({ name: ruleName, owner, kind: action.kind, model: next })
      model = next ?? model
    }
  }
  const denial = model === requested ? null : findDenial(denials, model, subject.resolve)
  if (denial !== null) throw deniedBy(denial)
  return { model, effects: { acted: acted.length === 0 ? null : acted, denials } }
}

function drawShare(shares: Extract<Action, { kind: 'split' }>['shares'], drawn: number): string | null {
  let upTo = 0
  for (const { model, percent } of shares) {
    upTo += percent
    if (drawn < upTo) return model
  }
  return null
}

/** Returns the deny rule that names a model; null = none does. */
export function findDenial(denials: readonly Rule[], model: string, resolve: RuleSubject['resolve']): Rule | null {
  if (denials.length === 0) return null
  const found = resolve(model)
  return denials.find(rule => matchesModel(rule, model, found, resolve)) ?? null
}

/** Layer of the error of a deny rule; its category is the name of the rule. */
export const rulesLayer = 'rules'

/** Returns the error of a deny rule, which names it. */
export function deniedBy({ name: category, owner }: Rule): GatewayError {
  const whose = owner === 'operator' ? 'of this gateway' : 'of your account'
  return new GatewayError('forbidden', `The rule "${category}" ${whose} denies this request.`, {
    ...{ param: 'model', shouldRetry: false, layer: rulesLayer, category },
  })
}

/** Schema of a rule that acted, in responses. */
export const actedRuleShape = strictObject({
  rule: Type.String({ examples: ['canary'] }),
  owner: oneOf(['operator', 'account']),
  kind: oneOf(['rewrite', 'split']),
  model: Type.Union([Type.String(), Type.Null()], {
    description: 'the requested model after it; null = a split left it',
    examples: ['openai/gpt-5.5'],
  }),
})

/** Converts a rule that acted to its form in responses. */
export function shownRule({ name: rule, owner, kind, model }: ActedRule): Static<typeof actedRuleShape> {
  return { rule, owner, kind, model }
}

/** Whether all conditions but that on the model hold. The cheapest ones come first. */
function holds(rule: Rule, { accountId, keyIds, projectId, tags, findHeader, countTokens }: RuleSubject): boolean {
  const { accounts, keys, projects, aboveTokens, upToTokens } = rule
  if (accounts !== null && !matchesText(accounts, accountId)) return false
  if (keys !== null && !keyIds.some(id => matchesText(keys, id))) return false
  if (projects !== null && !matchesText(projects, projectId)) return false
  if (!rule.tags.every(([tag, values]) => matchesText(values, tags?.[tag]))) return false
  if (!rule.headers.every(([header, values]) => matchesText(values, findHeader(header) ?? undefined))) return false
  if (aboveTokens !== null && countTokens() <= aboveTokens) return false
  return upToTokens === null || countTokens() <= upToTokens
}

function matchesText(wanted: readonly string[], value: string | undefined): boolean {
  return value !== undefined && wanted.some(pattern => matchesPattern(pattern, value))
}

function matchesPattern(pattern: string, value: string): boolean {
  return pattern.endsWith('*') ? value.startsWith(pattern.slice(0, -1)) : value === pattern
}

/** A model matches by any of its names, so that another spelling evades no rule. */
function matchesModel(
  { models }: Rule,
  written: string,
  found: NamedModel | null,
  resolve: RuleSubject['resolve'],
): boolean {
  if (models === null) return true
  const full = found === null ? null : `${found.provider}/${found.id}`
  const names = [written, ...(found === null ? [] : [`${full}`, found.id])].map(text => text.toLowerCase())
  return models.some(pattern => {
    if (names.some(text => matchesPattern(pattern.toLowerCase(), text))) return true
    const meant = full === null || pattern.endsWith('*') ? null : resolve(pattern)
    return meant !== null && `${meant.provider}/${meant.id}` === full
  })
}
