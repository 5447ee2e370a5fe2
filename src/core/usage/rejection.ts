/**
 * A request that was rejected before admission, without content. It has no usage, so the ledger does not contain it; this
 * record only explains it.
 */
import { autoModel, fullName, type Model } from '../models/models.ts'
import type { GatewayError } from '../validation/errors.ts'
import documented from './documented-fields.json'
import type { recordedDialects } from './usage-record.ts'

export type Rejection = {
  readonly request_id: string
  /** Epoch milliseconds. */
  readonly at_ms: number
  readonly account_id: string
  readonly key_id: string
  /** Null = the request names no known model. */
  readonly requested_model: string | null
  readonly dialect: (typeof recordedDialects)[number] | null
  readonly strategy: string | null
  readonly streamed: boolean
  readonly error_code: string
  /** Top-level field that the error names. */
  readonly param: string | null
  readonly layer: string | null
  /** Category of the moderation layer; without a layer, the limit that was reached, or the kind of the invalid value. */
  readonly category: string | null
  readonly latency_ms: number
}

/** Finds a model by a client's name; null = unknown. */
type ModelLookup = (name: string) => Pick<Model, 'id' | 'provider'> | null

/** Facts about a rejected request. `body` is the parsed JSON body; undefined = it was not parsed. */
export type RejectedFacts = {
  readonly requestId: string
  readonly accountId: string
  readonly keyId: string
  readonly dialect: Rejection['dialect']
  readonly body: unknown
  readonly error: GatewayError
  readonly latencyMs: number
}

/**
 * Builds the record. A model is kept only if the catalog has it: an unknown name may be a secret in the wrong field.
 */
export function toRejection(
  resolve: readonly ModelLookup[],
  { requestId, accountId, keyId, dialect, body, error, latencyMs }: RejectedFacts,
  now: number,
): Rejection {
  const fields: { readonly [name: string]: unknown } = typeof body === 'object' && body !== null ? { ...body } : {}
  const param = fieldName(error.param)
  return {
    request_id: requestId,
    at_ms: now,
    account_id: accountId,
    key_id: keyId,
    requested_model: body === undefined ? null : requestedModel(resolve, fields.model),
    dialect,
    strategy: null,
    streamed: fields.stream === true,
    error_code: error.code,
    param,
    layer: error.layer,
    category: error.category ?? error.limit ?? (body === undefined ? null : sentKind(error, fields, param)),
    latency_ms: Math.max(0, Math.round(latencyMs)),
  }
}

/** Kinds of JSON values, in words. The record has the kind of an invalid value, never the value. */
const valueKinds = {
  missing: 'nothing',
  null: 'null',
  boolean: 'a boolean',
  number: 'a number',
  string: 'a string',
  array: 'an array',
  object: 'an object',
} as const
type ValueKind = keyof typeof valueKinds

const kindPrefix = 'sent:'

function sentKind({ code }: GatewayError, fields: Readonly<Record<string, unknown>>, param: string | null) {
  if (param === null || code !== 'invalid_request') return null
  return `${kindPrefix}${getKind(fields[param])}`
}

function getKind(value: unknown): ValueKind {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  const kind = typeof value
  return kind === 'boolean' || kind === 'number' || kind === 'string' ? kind : 'object'
}

/** Returns the kind of the invalid value in words; null = the record has none. `category` is that of a record without layer. */
export function sentKindIn(category: string | null): string | null {
  const kind = category?.startsWith(kindPrefix) ? category.slice(kindPrefix.length) : ''
  return Object.entries(valueKinds).find(([name]) => name === kind)?.[1] ?? null
}

const longestName = 321

function requestedModel(resolve: readonly ModelLookup[], name: unknown): string | null {
  if (name === undefined || name === null) return autoModel
  if (typeof name !== 'string' || name.length > longestName) return null
  if (name.toLowerCase() === autoModel) return autoModel
  for (const find of resolve) {
    const model = find(name)
    if (model !== null) return fullName(model)
  }
  return null
}

/** Documented top-level fields of the API forms. Any other name is the client's own text. */
const documentedFields: ReadonlySet<string> = new Set(documented)

/** Returns the top-level field of a path if it is documented: other names, and deeper parts, can be the client's text. */
export function fieldName(param: string | null): string | null {
  const name = /^[A-Za-z][\w-]{0,63}(?=$|[.[])/.exec(param ?? '')?.[0] ?? ''
  return documentedFields.has(name) ? name : null
}
