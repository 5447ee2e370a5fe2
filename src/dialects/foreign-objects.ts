/**
 * Refuses references in a body that goes to a provider of the same form. Files, containers, stores and skills by ID are those of the
 * operator's account there. Addresses are vetted, because the provider fetches them.
 */

import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { type ChatRequest, type FallbackPolicy, type Strategy, strictestPolicy } from '../core/chat/chat.ts'
import { type ConstraintsRow, type Demand, toDemand } from '../core/policy/constraints.ts'
import { GatewayError, withParam } from '../core/validation/errors.ts'
import { forwardableAddress } from '../core/validation/public-address.ts'
import { invalidField, validate } from '../core/validation/validate.ts'

/** The options of an object that may have other fields, and such an object of which no field is checked. */
export const open = { additionalProperties: true }
export const anyObject = Type.Object({}, open)

/** Fields of other services that change what a request means: ignored, they would lose a conversation or a constraint. */

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
  readonly demands: readonly Demand[]
  /** The preferences have no effect beyond these. */
  readonly isRead: boolean
}

const sorts: Readonly<Record<string, Strategy>> = { price: 'cost', throughput: 'speed', latency: 'speed' }
const none: Preferences = { fallback: null, strategy: null, demands: [], isRead: false }

/** Reads OpenRouter's preferences for providers, in `provider`. Throws for a constraint that the gateway cannot keep. */
export function readPreferences({ provider }: Body): Preferences {
  if (typeof provider !== 'object' || provider === null || Array.isArray(provider)) return none
  const wanted = new Map<string, unknown>(Object.entries(provider).filter(([, value]) => value != null))
  if (wanted.get('enforce_distillable_text') === true)
    throw invalidField(
      'provider.enforce_distillable_text',
      'cannot be honored: the gateway does not know the licenses of outputs. Name an accepted model in `model`, with `fallback: "none"`',
      'unsupported_parameter',
    )
  const collection = wanted.get('data_collection')
  if (collection !== undefined && collection !== 'allow' && collection !== 'deny')
    throw invalidField('provider.data_collection', 'must be "allow" or "deny"')
  const isFixed = wanted.get('allow_fallbacks') === false
  const order = namesIn(wanted, 'order')
  const demand = toDemand('request', {
    zdr: wanted.get('zdr') === true,
    no_training: collection === 'deny',
    ...listed('providers', namesIn(wanted, 'only')),
    ...listed('ignore_providers', namesIn(wanted, 'ignore').map(withoutVariant)),
  })
  // Without fallbacks an order is a limit too.
  const fixed = isFixed ? toDemand('request', listed('providers', order)) : null
  const demands = [
    ...(demand === null ? [] : [{ ...demand, fields: preferenceFields }]),
    ...(fixed === null ? [] : [{ ...fixed, fields: { providers: 'provider.order' } }]),
    ...preferred(order),
  ]
  const sort = wanted.get('sort')
  const strategy = typeof sort === 'string' && Object.hasOwn(sorts, sort) ? (sorts[sort] ?? null) : null
  const others = [...wanted].filter(
    ([name, value]) => !read.has(name) && !(name === 'sort' && strategy !== null) && !hasNoEffect(value),
  )
  return {
    fallback: isFixed ? (order.length > 1 ? 'same_model' : 'none') : null,
    strategy,
    demands,
    isRead: others.length === 0,
  }
}

/** Where a client of OpenRouter wrote a constraint. */
const preferenceFields = {
  ...{ zdr: 'provider.zdr', no_training: 'provider.data_collection' },
  ...{ providers: 'provider.only', ignore_providers: 'provider.ignore' },
}
const read: ReadonlySet<string> = new Set('allow_fallbacks data_collection zdr only ignore order'.split(' '))
const maximumNames = 64

function namesIn(wanted: ReadonlyMap<string, unknown>, field: string): readonly string[] {
  const value = wanted.get(field) ?? []
  const isList = Array.isArray(value) && value.length <= maximumNames
  if (isList && value.every(name => typeof name === 'string' && name !== '' && name.length <= 64)) return value
  throw invalidField(`provider.${field}`, `must be a list of at most ${maximumNames} names of providers`)
}

function listed(name: 'providers' | 'ignore_providers', names: readonly string[]): ConstraintsRow {
  return names.length === 0 ? {} : { [name]: [...names] }
}

/** A variant of a provider (`deepinfra/turbo`) is unknown here: to ignore it is to ignore the provider. */
function withoutVariant(name: string): string {
  return name.split('/')[0] ?? name
}

function preferred(order: readonly string[]): readonly Demand[] {
  if (order.length === 0) return []
  const names = order.map(name => name.toLowerCase())
  return [{ by: 'request', zdr: false, noTraining: false, regions: null, only: null, ignored: [], order: names }]
}

function hasNoEffect(value: unknown): boolean {
  return value === false || (Array.isArray(value) && value.length === 0)
}

/** Returns the settings of a request with the preferences: they narrow its fallback and its receivers, and its own strategy wins. */
export function withPreferences<T extends Pick<ChatRequest, 'fallback' | 'strategy' | 'demands'>>(
  fields: T,
  { fallback, strategy, demands }: Preferences,
): T {
  if (fallback === null && strategy === null && demands.length === 0) return fields
  return {
    ...fields,
    fallback: strictestPolicy(fields.fallback, fallback),
    strategy: fields.strategy ?? strategy,
    ...(demands.length === 0 ? {} : { demands: [...(fields.demands ?? []), ...demands] }),
  }
}

/** Fields that name an object of the provider's account, at any depth. */
const objectFields: ReadonlySet<string> = new Set(
  'file_id file_ids container container_id vector_store_id vector_store_ids skill_id tunnel_id'.split(' '),
)
/** Fields with an address that the provider fetches, and whether it may be a `data:` URL. */
const addressFields: ReadonlyMap<string, boolean> = new Map([
  ['server_url', false],
  ['image_url', true],
  ['file_url', true],
])
/** Fields whose values the client chooses: schemas, arguments, labels. No provider looks for an object in them. */
const ownFields: ReadonlySet<string> = new Set(
  'parameters input_schema output_schema schema arguments metadata client_metadata input_examples env headers'.split(
    ' ',
  ),
)
const checkedFields: ReadonlySet<string> = new Set([...objectFields, ...addressFields.keys(), 'url', 'id'])
/** Results of Anthropic's code execution name the files that it wrote. In a later turn the name is only a text. */
const resultTypes: ReadonlySet<unknown> = new Set(['code_execution_output', 'bash_code_execution_output'])

/** Throws `unsupported_parameter` or `invalid_request` with the field at fault. Iterative, because a body may be deep. */
export function refuseForeignObjects(body: Fields): void {
  for (const [param, given] of Object.entries(body)) {
    if (ownFields.has(param) || !isContainer(given)) continue
    const open: object[] = [given]
    for (let value = open.pop(); value !== undefined; value = open.pop()) {
      if (Array.isArray(value)) for (const inner of value) if (isContainer(inner)) open.push(inner)
      if (isFields(value)) openMembers(value, param, open)
    }
  }
}

/** A loop over the names: a list of them per object would take most of the time. */
function openMembers(fields: Fields, param: string, open: object[]): void {
  for (const name in fields) {
    const value = fields[name]
    if (value == null) continue
    if (checkedFields.has(name)) checkField(fields, name, `${param}.${name}`)
    if (isContainer(value) && !isOwnField(fields, name)) open.push(value)
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isOwnField({ type }: Fields, name: string): boolean {
  return ownFields.has(name) || (name === 'input' && typeof type === 'string' && type.endsWith('tool_use'))
}

function checkField(fields: Fields, name: string, param: string): void {
  const { [name]: value, type } = fields
  const isResult = name === 'file_id' && resultTypes.has(type)
  if (objectFields.has(name) && !isResult) throw storedObject(param)
  // OpenAI finds an image without its data by the ID.
  if (name === 'id' && type === 'image_generation_call' && typeof fields.result !== 'string') throw storedObject(param)
  const mayBeData = addressFields.get(name) ?? (name === 'url' && type === 'url' ? false : null)
  if (mayBeData === null || typeof value !== 'string') return
  const address = forwardableAddress(value)
  if (address === null || (!mayBeData && /^data:/i.test(address)))
    throw invalidField(param, 'must be a public http or https URL on port 80 or 443 without credentials')
}

function storedObject(param: string) {
  return invalidField(
    param,
    'refers to a stored object. Objects are not stored here: send the content itself',
    'unsupported_parameter',
  )
}

/** Checks for parts of a Responses body. Their errors have the full path of the field at fault. */

export type Fields = Readonly<Record<string, unknown>>

/** Returns a check for an object at a path (`input.3`). It throws `invalid_request` with the full path of the first fault. */
export function checkerAt<S extends TSchema>(schema: S): (value: unknown, place: string) => Static<S> {
  return (value, place) => {
    if (!isFields(value)) throw invalidField(place, 'must be an object')
    try {
      return validate(schema, value)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      throw thrown.param === null ? invalidField(place, 'is not valid') : withParam(thrown, `${place}.${thrown.param}`)
    }
  }
}

/** Returns whether a value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value if it is a string, else null. */
export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
