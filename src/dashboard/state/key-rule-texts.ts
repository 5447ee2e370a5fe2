/** Limits, models and tags of an API key as texts of a form. An empty text is no rule. */
import type { ShownKey } from '../../console/keys/schemas.ts'
import { RequestError } from './api-error.ts'

/** Labels of the limits of a key or a tag. */
export const limitFields = {
  requests_per_minute: 'Requests per minute',
  concurrent_requests: 'Concurrent requests',
  daily_tokens: 'Daily tokens',
  daily_cost_usd: 'Daily cost in USD',
  monthly_cost_usd: 'Monthly cost in USD',
} as const
type LimitField = keyof typeof limitFields
export const limitNames = Object.keys(limitFields) as LimitField[]
export const paramOf = (name: LimitField) => `limits.${name}`

/** API fields whose errors the form shows beside them. */
export const limitParams = limitNames.map(paramOf)
export const keyRuleParams = [...limitParams, 'models', 'tags']

/** The fields as written. */
export type LimitTexts = Readonly<Record<LimitField, string>>
export type KeyRuleTexts = LimitTexts & Readonly<Record<'models' | 'tags', string>>

/** Returns the texts of limits; null = none. */
export function textsOfLimits(limits: ShownKey['limits']): LimitTexts {
  const limit = (name: LimitField) => String(limits?.[name] ?? '')
  return {
    requests_per_minute: limit('requests_per_minute'),
    concurrent_requests: limit('concurrent_requests'),
    daily_tokens: limit('daily_tokens'),
    daily_cost_usd: limit('daily_cost_usd'),
    monthly_cost_usd: limit('monthly_cost_usd'),
  }
}

/**
 * Returns limits for a request: an empty field is no limit. Throws an error of the field for a text that is no number:
 * JSON has no NaN, and the null in its place would remove the limit.
 */
export function limitsOfTexts(texts: LimitTexts) {
  return Object.fromEntries(
    limitNames.map(name => {
      const text = texts[name].trim()
      const limit = text === '' ? null : Number(text)
      if (limit !== null && !Number.isFinite(limit))
        throw invalidField(paramOf(name), 'Enter a number such as 1000 or 0.5, without separators.')
      return [name, limit]
    }),
  )
}

const invalidField = (param: string, message: string) =>
  new RequestError({ status: 400, code: 'invalid_request', message, param })

/** Returns the texts of a key's rules; null = a new key. */
export function textsOfRules(key: Pick<ShownKey, 'limits' | 'models' | 'tags'> | null): KeyRuleTexts {
  return {
    ...textsOfLimits(key?.limits ?? null),
    models: key?.models?.join(', ') ?? '',
    tags: Object.entries(key?.tags ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(', '),
  }
}

/** Returns the rules for a request. The gateway checks them, except for names that JSON could not repeat. */
export function rulesOfTexts(texts: KeyRuleTexts) {
  const list = (text: string) => text.split(',').flatMap(one => (one.trim() === '' ? [] : [one.trim()]))
  const pairs = list(texts.tags).map(pair => {
    const [name = '', ...value] = pair.split('=')
    return [name.trim(), value.join('=').trim()] as const
  })
  const repeated = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) !== at)
  if (repeated !== undefined)
    throw invalidField('tags', `The name “${repeated[0]}” occurs twice. Remove one of its tags.`)
  const models = list(texts.models)
  return {
    limits: limitsOfTexts(texts),
    models: models.length === 0 ? null : models,
    tags: pairs.length === 0 ? null : Object.fromEntries(pairs),
  }
}
