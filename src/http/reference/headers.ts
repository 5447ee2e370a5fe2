/** Descriptions of every response header. */
import type { AnswerHeader } from '../route-docs.ts'

type Header = { readonly description: string; readonly schema: { readonly type: 'string' | 'integer' | 'number' } }

const texts = {
  'x-request-id': 'ID of this request',
  'retry-after-ms': 'as `retry-after`, in milliseconds',
  'x-should-retry': '`false` = do not retry: three candidates failed, or a daily limit is used up',
  'www-authenticate': '`Bearer`',
  'x-ratelimit-limit-requests': 'requests per minute',
  'x-ratelimit-remaining-requests': 'requests remaining now',
  'x-ratelimit-reset-requests': 'time until the full number is available again: `1.5s`, `6m0s`',
  'x-ratelimit-limit-tokens': 'tokens per UTC day',
  'x-ratelimit-remaining-tokens': 'tokens remaining today',
  'x-ratelimit-reset-tokens': 'time until midnight UTC',
  'x-gateway-budget-remaining-usd': 'US dollars remaining of the daily cost limit',
  'x-gateway-budget-warning': 'from 80% of the monthly soft cap: its used share and its period',
  'x-gateway-model': '`provider/model` that served',
  'x-gateway-requested-model': 'model that the request named; `gateway-ai` = automatic routing',
  'x-gateway-provider': 'provider of the model that served; for embeddings the host that served',
  'x-gateway-effort': 'reasoning effort that the model was called with; absent = its default',
  'x-gateway-conversation-warning': 'why the gateway may stop this conversation soon; absent = it is within its bounds',
  'x-gateway-attempts': 'number of candidates that were called, or skipped in their turn',
  'x-gateway-overhead-ms': 'milliseconds in the gateway before the attempt that served, without earlier attempts',
  'x-gateway-dropped-params': 'parameters that the serving model does not support, if any',
  'x-gateway-hedge':
    'if hedging was requested: `won` = the hedge served, `lost` = it began and the first attempt served, `unused` = it did not begin',
  'x-gateway-enhanced': 'if enhancement was requested: whether it changed the prompt',
  'x-gateway-rules': 'names of the rules that changed the requested model, in order, if any',
  'x-gateway-secrets': 'kinds of secrets detected in the prompt, if any',
  'x-gateway-output-cap':
    'output cap that the gateway set because the client set none: on a JSON response if it truncated the output, on a stream always',
  'x-gateway-output-cap-reason': 'reason for that cap: `model_limit`, `default` or `account_remaining`',
  'x-gateway-search-cost-usd': 'cost of the web search in US dollars, if there was one; part of the total cost',
  'x-gateway-fetch-cost-usd': 'cost of the page fetches in US dollars, if there were any; part of the total cost',
  'x-gateway-hedge-cost-usd':
    'cost in US dollars of the attempt that lost a hedge, if one did; part of the total cost; streams report it in their last event',
  'x-gateway-cache-saved-usd':
    'US dollars that the provider’s prompt cache saved, negative if writing to it cost more; absent if it was not used',
  'x-gateway-cost-usd': 'cost of the request in US dollars; streams report it in their last event',
  'x-gateway-estimated': '`true` if the gateway estimated the token counts because the provider reported none',
  deprecation: 'since when the serving model is deprecated (RFC 9745)',
  sunset: 'when the serving model retires (RFC 8594)',
  link: 'the successor of a deprecated model',
  'content-disposition': '`attachment` with a file name',
  etag: 'value for `if-none-match`',
} as const

const numbers = {
  'retry-after': 'seconds after which the same request may succeed',
} as const

type HeaderName = keyof typeof texts | keyof typeof numbers

export const headerComponents: Readonly<Record<string, Header>> = {
  ...described(texts, 'string'),
  ...described(numbers, 'integer'),
}

function described(descriptions: Readonly<Record<string, string>>, type: Header['schema']['type']) {
  return Object.fromEntries(
    Object.entries(descriptions).map(([name, description]) => [name, { description, schema: { type } }]),
  )
}

const quotaStatus = [
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-tokens',
  'x-gateway-budget-remaining-usd',
  'x-gateway-budget-warning',
] as const satisfies readonly HeaderName[]

const groups: Readonly<Record<AnswerHeader, readonly HeaderName[]>> = {
  quotaStatus,
  served: [
    'x-gateway-model',
    'x-gateway-requested-model',
    'x-gateway-provider',
    'x-gateway-effort',
    'x-gateway-conversation-warning',
    'x-gateway-attempts',
    'x-gateway-overhead-ms',
    'x-gateway-dropped-params',
    'x-gateway-hedge',
    'x-gateway-hedge-cost-usd',
    'x-gateway-enhanced',
    'x-gateway-rules',
    'x-gateway-secrets',
    'x-gateway-output-cap',
    'x-gateway-output-cap-reason',
    'x-gateway-search-cost-usd',
    'x-gateway-fetch-cost-usd',
  ],
  cost: ['x-gateway-cost-usd'],
  estimated: ['x-gateway-estimated'],
  deprecation: ['deprecation', 'sunset', 'link'],
  download: ['content-disposition'],
}

/** Returns the headers of a success, as references: the request's ID and those of the route's groups. */
export function answerHeaders(named: readonly AnswerHeader[], isTagged: boolean): Record<string, object> {
  return references([
    'x-request-id',
    ...named.flatMap(group => groups[group]),
    ...(isTagged ? (['etag'] as const) : []),
  ])
}

/** Returns the headers of an error of that status. `showsAttempts`: the error can follow attempts. */
export function refusalHeaders(
  status: number,
  { showsQuotaStatus, showsAttempts }: { readonly showsQuotaStatus: boolean; readonly showsAttempts: boolean },
): Record<string, object> {
  const waits = status === 429 || status === 503 || status === 529
  return references([
    'x-request-id',
    'x-should-retry',
    ...(showsAttempts ? (['x-gateway-attempts'] as const) : []),
    ...(waits ? (['retry-after', 'retry-after-ms'] as const) : []),
    ...(status === 401 ? (['www-authenticate'] as const) : showsQuotaStatus ? quotaStatus : []),
  ])
}

function references(names: readonly HeaderName[]): Record<string, object> {
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}
