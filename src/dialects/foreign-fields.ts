/** Fields of other services that change what a request means: ignored, they would lose a conversation or a constraint. */
import { type FallbackPolicy, type Strategy, strictestPolicy } from '../core/chat/chat.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { invalidField } from '../core/validation/validate.ts'

type Body = Readonly<Record<string, unknown>>

/** Fields that refer to a conversation, or a part of one, at a provider. */
const storedState =
  'thread thread_id previous_response_id previous_message_id conversation conversation_id cached_content cachedContent'.split(
    ' ',
  )

/** Throws if a body refers to stored state. Anthropic's clients then send the whole conversation on their own. */
export function rejectStoredState(body: Body): void {
  const field = storedState.find(name => body[name] != null)
  if (field === undefined) return
  const details = field === 'thread' ? { error_code: 'thread_unsupported_request' } : null
  const message = `\`${field}\` refers to a stored conversation. Conversations are not stored here. Send the whole conversation in each request, without \`${field}\`.`
  throw new GatewayError('unsupported_parameter', message, { param: field, details })
}

type Preferences = {
  readonly fallback: FallbackPolicy | null
  readonly strategy: Strategy | null
  /** The preferences have no effect beyond these two. */
  readonly isRead: boolean
}

const sorts: Readonly<Record<string, Strategy>> = { price: 'cost', throughput: 'speed', latency: 'speed' }
const none: Preferences = { fallback: null, strategy: null, isRead: false }

/**
 * Reads OpenRouter's preferences for providers, in `provider`. Throws for a constraint on who may receive the prompt: the
 * gateway does not know the providers' policies.
 */
export function readPreferences({ provider }: Body): Preferences {
  if (typeof provider !== 'object' || provider === null || Array.isArray(provider)) return none
  const wanted = new Map<string, unknown>(Object.entries(provider).filter(([, value]) => value != null))
  const isFixed = wanted.get('allow_fallbacks') === false
  for (const [name, isConstraint] of Object.entries(constraints))
    if (wanted.has(name) && isConstraint(wanted.get(name), isFixed))
      throw invalidField(
        `provider.${name}`,
        'cannot be honored: the gateway does not know the policies of providers. Name a model of an accepted provider in `model`, with `fallback: "none"`',
        'unsupported_parameter',
      )
  const sort = wanted.get('sort')
  const strategy = typeof sort === 'string' && Object.hasOwn(sorts, sort) ? (sorts[sort] ?? null) : null
  const others = [...wanted].filter(
    ([name, value]) =>
      name !== 'allow_fallbacks' && !(name === 'sort' && strategy !== null) && !hasNoEffect(name, value),
  )
  return { fallback: isFixed ? 'none' : null, strategy, isRead: others.length === 0 }
}

const isFilled = (value: unknown) => Array.isArray(value) && value.length > 0
const isOn = (value: unknown) => value === true

/** Returns, by name, whether a value limits who may receive the prompt. Without fallback, an order is a limit too. */
const constraints: Readonly<Record<string, (value: unknown, isFixed: boolean) => boolean>> = {
  data_collection: value => value !== 'allow',
  zdr: isOn,
  enforce_distillable_text: isOn,
  only: isFilled,
  ignore: isFilled,
  order: (value, isFixed) => isFixed && isFilled(value),
}

function hasNoEffect(name: string, value: unknown): boolean {
  return name === 'data_collection' || value === false || (Array.isArray(value) && value.length === 0)
}

/** Returns the settings of a request with the preferences: they narrow its fallback, and its own strategy wins. */
export function withPreferences<T extends { readonly fallback: FallbackPolicy; readonly strategy: Strategy | null }>(
  fields: T,
  { fallback, strategy }: Preferences,
): T {
  if (fallback === null && strategy === null) return fields
  return { ...fields, fallback: strictestPolicy(fields.fallback, fallback), strategy: fields.strategy ?? strategy }
}
