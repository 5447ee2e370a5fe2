/**
 * A request that was rejected before admission, without content. It has no usage, so the ledger does not contain it; this
 * record only explains it.
 */
import { autoModel, fullName, type Model } from '../models/models.ts'
import type { GatewayError } from '../validation/errors.ts'
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
    param: fieldName(error.param),
    layer: error.layer,
    category: error.category,
    latency_ms: Math.max(0, Math.round(latencyMs)),
  }
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

/** Returns only the name of a top-level field: deeper parts of a path can be the client's own text. */
export function fieldName(param: string | null): string | null {
  return /^[A-Za-z][\w-]{0,63}(?=$|[.[])/.exec(param ?? '')?.[0] ?? null
}
