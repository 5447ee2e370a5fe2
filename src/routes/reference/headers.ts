/** Every header that an answer of ours may carry, in words. */
import type { AnswerHeader } from '../../http/route-docs.ts'

type Header = { readonly description: string; readonly schema: { readonly type: 'string' | 'integer' | 'number' } }

const texts = {
  'x-request-id': 'id of this request',
  'retry-after-ms': 'as `retry-after`, in milliseconds',
  'x-should-retry': '`false` where trying again is of no use: three candidates were tried, or a quota is used up',
  'www-authenticate': '`Bearer`',
  'x-ratelimit-limit-requests': 'requests a minute',
  'x-ratelimit-remaining-requests': 'requests left of them now',
  'x-ratelimit-reset-requests': 'time until all of them are there again: `1.5s`, `6m0s`',
  'x-ratelimit-limit-tokens': 'tokens a UTC day',
  'x-ratelimit-remaining-tokens': 'tokens left of them today',
  'x-ratelimit-reset-tokens': 'time until midnight UTC',
  'x-gateway-budget-remaining-usd': 'US dollars left of today’s cost limit',
  'x-gateway-budget-warning': 'from 80% of the monthly soft cap: how much of it is used, and in which period',
  'x-gateway-model': '`provider/model` that served',
  'x-gateway-provider': 'the provider that served',
  'x-gateway-attempts': 'how many candidates were asked, or skipped when their turn came',
  'x-gateway-overhead-ms': 'milliseconds spent in the gateway itself before the first content',
  'x-gateway-dropped-params': 'parameters that the serving model does not take, where there were any',
  'x-gateway-enhanced': 'where enhancement was asked for: whether it changed the prompt',
  'x-gateway-secrets': 'kinds of secrets that the prompt holds, where it holds some',
  'x-gateway-output-cap':
    'the output cap that the gateway set as the client gave none: on a JSON answer where it cut the answer, on a stream always',
  'x-gateway-output-cap-reason': 'what set that cap: `model_limit`, `default` or `account_remaining`',
  'x-gateway-search-cost-usd': 'what the web search cost in US dollars, where there was one; part of the cost',
  'x-gateway-fetch-cost-usd':
    'what the pages that were read cost in US dollars, where there were any; part of the cost',
  'x-gateway-cost-usd': 'what the request cost in US dollars; not on streams, whose last event tells',
  'x-gateway-estimated': '`true` where the token count is the gateway’s own, since the provider gave none',
  deprecation: 'since when the serving model is deprecated (RFC 9745)',
  sunset: 'when the serving model ends (RFC 8594)',
  link: 'the successor of a deprecated model',
  'content-disposition': '`attachment`, with a name for the file',
  etag: 'send it back in `if-none-match`',
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

const standing = [
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
  standing,
  served: [
    'x-gateway-model',
    'x-gateway-provider',
    'x-gateway-attempts',
    'x-gateway-overhead-ms',
    'x-gateway-dropped-params',
    'x-gateway-enhanced',
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

/** Headers of a success, as references: the request's id and those of the route's groups. */
export function answerHeaders(named: readonly AnswerHeader[], isTagged: boolean): Record<string, object> {
  return references([
    'x-request-id',
    ...named.flatMap(group => groups[group]),
    ...(isTagged ? (['etag'] as const) : []),
  ])
}

/** Headers of an error of that status. `showsAttempts`: a model may have been asked before. */
export function refusalHeaders(
  status: number,
  { showsStanding, showsAttempts }: { readonly showsStanding: boolean; readonly showsAttempts: boolean },
): Record<string, object> {
  const waits = status === 429 || status === 503 || status === 529
  return references([
    'x-request-id',
    'x-should-retry',
    ...(showsAttempts ? (['x-gateway-attempts'] as const) : []),
    ...(waits ? (['retry-after', 'retry-after-ms'] as const) : []),
    ...(status === 401 ? (['www-authenticate'] as const) : showsStanding ? standing : []),
  ])
}

function references(names: readonly HeaderName[]): Record<string, object> {
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}
