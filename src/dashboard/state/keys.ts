/** Keys: validity, rights, the effect of a revocation, and their rules as texts of a form. An empty text is no rule. */

import type { ShownKey, ShownKeyPage } from '../../console/keys/schemas.ts'
import { type Holder, isAllowedIn } from '../../core/accounts/roles.ts'
import { type ContinuePolicy, continuePolicies, type FallbackPolicy, fallbackPolicies } from '../../core/chat/chat.ts'
import { constraintsExample, formatConstraints, parseConstraints } from '../../core/policy/constraints-text.ts'
import { RequestError } from './api-error.ts'
import { exactTime, formatTags } from './format.ts'

export const isKeyValid = ({ revoked_at, expires_at }: Pick<ShownKey, 'revoked_at' | 'expires_at'>, now = Date.now()) =>
  revoked_at === null && (expires_at === null || Date.parse(expires_at) > now)

/** A user with the roles in the account and in projects. */
type KeyManager = Holder & { readonly userId: string }

/**
 * Returns true if the user manages all keys of the key's project or account, or owns the key and may manage own keys
 * there. The gateway checks it again.
 */
export function mayManage({ user_id, project_id }: Pick<ShownKey, 'user_id' | 'project_id'>, manager: KeyManager) {
  const isOwn = user_id === manager.userId
  return isAllowedIn(manager, 'keys.all', project_id) || (isOwn && isAllowedIn(manager, 'keys.own', project_id))
}

/** Returns one sentence per other key of the lineage that keeps working if this key is revoked. Empty = never rotated. */
export function listOtherKeys({ id, lineage }: Pick<ShownKeyPage, 'id' | 'lineage'>, now = Date.now()): string[] {
  if (lineage.length < 2) return []
  const at = lineage.findIndex(key => key.id === id)
  const texts = lineage.flatMap((key, index) => {
    if (index === at || !isKeyValid(key, now)) return []
    const until = key.expires_at === null ? '' : ` until ${exactTime(key.expires_at)}`
    return index > at
      ? [`Key ${key.prefix}, which replaces it, keeps working${until}.`]
      : [`The old key ${key.prefix} still works${until}.`]
  })
  return texts.length === 0 ? ['No other key of this rotation works.'] : texts
}

/** Labels of the limits of a key, a project or a tag. */
export const limitLabels = {
  requests_per_minute: 'Requests per minute',
  concurrent_requests: 'Concurrent requests',
  daily_tokens: 'Daily tokens',
  daily_cost_usd: 'Daily cost in USD',
  monthly_cost_usd: 'Monthly cost in USD',
} as const
type LimitName = keyof typeof limitLabels
const limitNames = Object.keys(limitLabels) as LimitName[]
type LimitParam = `limits.${LimitName}`
const toParam = (name: LimitName): LimitParam => `limits.${name}`

/** Limits as written, by API field. */
type LimitTexts = Readonly<Record<LimitParam, string>>

/** The limits as fields of a form. */
export const limitFields = limitNames.map(
  name =>
    ({
      param: toParam(name),
      label: limitLabels[name],
      type: 'number',
      min: '0',
      step: name.endsWith('_usd') ? 'any' : '1',
    }) as const,
)

/** Returns the texts of limits; null = none. */
export const toLimitTexts = (limits: ShownKey['limits']): LimitTexts =>
  // The keys are those of all limits.
  Object.fromEntries(limitNames.map(name => [toParam(name), String(limits?.[name] ?? '')])) as LimitTexts

/** Returns limits for a request. JSON has no NaN: the null in its place would remove the limit. */
export function toLimits(texts: LimitTexts) {
  return Object.fromEntries(limitNames.map(name => [name, toAmount(toParam(name), texts[toParam(name)])]))
}

/** Returns the number of a text; null = empty. Throws an error of the field for another text. */
export function toAmount(param: string, text: string): number | null {
  if (text.trim() === '') return null
  const amount = Number(text)
  if (Number.isFinite(amount)) return amount
  throw wrongField(param, 'Enter a number such as 1000 or 0.5, without separators.')
}

const wrongField = (param: string, message: string) =>
  new RequestError({ status: 400, code: 'invalid_request', message, param })

type Rules = Pick<
  ShownKey,
  'limits' | 'models' | 'tags' | 'strategy' | 'fallback' | 'continue' | 'hedge' | 'constraints'
>
type RuleTexts = LimitTexts & Readonly<Record<Exclude<keyof Rules, 'limits'>, string>>

/** Returns the texts of a key's rules; null = a new key. */
export function toRuleTexts(key: Rules | null): RuleTexts {
  const hedge = key?.hedge ?? null
  return {
    ...toLimitTexts(key?.limits ?? null),
    models: key?.models?.join(', ') ?? '',
    tags: formatTags(key?.tags ?? {}),
    strategy: key?.strategy ?? '',
    fallback: key?.fallback ?? '',
    continue: key?.continue ?? '',
    hedge: hedge === null ? '' : hedge ? 'on' : 'off',
    constraints: formatConstraints(key?.constraints ?? null),
  }
}

/** Returns the rules for a request. The gateway checks them, except for names that JSON could not repeat. */
export function toRules(texts: RuleTexts) {
  const models = splitList(texts.models)
  return {
    limits: toLimits(texts),
    models: models.length === 0 ? null : models,
    tags: texts.tags.trim() === '' ? null : toPairs('tags', texts.tags),
    strategy: texts.strategy || null,
    fallback: texts.fallback || null,
    continue: texts.continue || null,
    hedge: texts.hedge === '' ? null : texts.hedge === 'on',
    constraints: toConstraints(texts.constraints),
  }
}

export const splitList = (text: string) => text.split(',').flatMap(part => part.trim() || [])

/** Returns the names and values of `team=search, env=prod`. Throws an error of the field for a name that occurs twice. */
export function toPairs(param: string, text: string): Readonly<Record<string, string>> {
  const pairs = new Map<string, string>()
  for (const pair of splitList(text)) {
    const [name = '', ...value] = pair.split('=')
    if (pairs.has(name.trim())) throw wrongField(param, `The name “${name.trim()}” occurs twice. Remove one of them.`)
    pairs.set(name.trim(), value.join('=').trim())
  }
  return Object.fromEntries(pairs)
}

/** The constraints of a key, a project or the account as a field of a form. */
export const constraintsField = {
  param: 'constraints',
  label: 'Constraints on receivers',
  placeholder: constraintsExample,
  hint: 'Who may receive prompts. Those of account, project, key and request all hold. Empty: none.',
} as const

/** Returns constraints for a request; null = none. Throws an error of the field for another form. */
export function toConstraints(text: string) {
  const constraints = text.trim() === '' ? null : parseConstraints(text)
  if (constraints === null && text.trim() !== '')
    throw wrongField('constraints', `Write them like “${constraintsExample}”.`)
  return constraints
}

export const fallbackTitles: Readonly<Record<FallbackPolicy, string>> = {
  any: 'Any model',
  same_model: 'Same model only',
  none: 'No fallback',
}

/** What each policy does and costs. */
const fallbackHints: Readonly<Record<FallbackPolicy, string>> = {
  any: 'If the model fails, another model may answer. You pay its price: by default at most 3 times that of the model that a request names.',
  same_model:
    'If a call fails, only other hosts and keys of the same model may answer, at their price. Otherwise the request fails.',
  none: 'One call per request. If it fails, the request fails, and costs nothing without output.',
}

export const continueTitles: Readonly<Record<ContinuePolicy, string>> = {
  any: 'By any model',
  same_model: 'By the same model only',
  off: 'Not continued',
}

/** Words of the absent policy, by field; a field without is always set. */
type Absent = Readonly<Partial<Record<'fallback' | 'continue' | 'hedge', string>>>

/** Fallback, continuation and hedging of a key or of the account as fields of a form. */
export function policyFields(fallback: string, absent: Absent) {
  const policy = fallbackPolicies.find(known => known === fallback)
  const none = (text: string | undefined) => (text === undefined ? [] : [['', text] as const])
  return [
    {
      param: 'fallback',
      label: 'Fallback policy',
      hint: `${policy === undefined ? '' : `${fallbackHints[policy]} `}The strictest policy of account, key and request applies.`,
      choices: [...none(absent.fallback), ...fallbackPolicies.map(name => [name, fallbackTitles[name]] as const)],
    },
    {
      param: 'continue',
      label: 'Cut texts',
      hint: 'Who may continue a streamed text that its provider cuts. You pay for each part that you received. Not continued: the stream ends with an error. The strictest policy of account, key and request applies.',
      choices: [...none(absent.continue), ...continuePolicies.map(name => [name, continueTitles[name]] as const)],
    },
    {
      param: 'hedge',
      label: 'Hedging',
      hint: 'If the first token is late, a second attempt starts, and the first content wins. A hedged request also pays for the input of the canceled attempt. At most 10% of the requests hedge, unless the operator changes the share.',
      choices: [...none(absent.hedge), ['on', 'On'], ['off', 'Off']],
    },
  ] as const
}
