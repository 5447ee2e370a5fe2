/** Names of the endpoints, for clients that request the root, an unknown path or an unsupported method. */
import { GatewayError } from '../core/validation/errors.ts'

type Route = { readonly method: string; readonly path: string }

/** Endpoints for API clients, as `GET /api/v1/keys/{id}`, in the order of the table. */
export function getEndpoints(routes: readonly Route[]): string[] {
  return routes.filter(({ method, path }) => method !== 'OPTIONS' && !isOfPage(path)).map(written)
}

/**
 * Returns the error for a request without a route: 426 for a WebSocket and 405 for another wrong method on a served path, else
 * 404 with the correct base URL, the reason why a known endpoint is not served, or the list of endpoints.
 */
export function noRouteError(
  routes: readonly Route[],
  { method, url, headers }: Pick<Request, 'method' | 'url' | 'headers'>,
): GatewayError {
  const { pathname } = new URL(url)
  const known = routesAt(routes, pathname.replace(/(?<=.)\/$/, ''))
  if (known.length > 0) {
    const allow = [...new Set(known.map(route => route.method))].join(', ')
    const usable = getEndpoints(known).join(' or ')
    if (method === 'GET' && headers.get('upgrade')?.toLowerCase() === 'websocket')
      return new GatewayError('upgrade_required', `WebSockets are not served. Use ${usable} over HTTP.`, {
        headers: { allow, upgrade: 'HTTP/1.1' },
        shouldRetry: false,
      })
    return new GatewayError('method_not_allowed', `Method not supported for this path. Use ${usable}.`, {
      headers: { allow },
    })
  }
  return new GatewayError('not_found', geminiCall.test(pathname) ? geminiAdvice : notFoundMessage(routes, pathname))
}

function notFoundMessage(routes: readonly Route[], pathname: string): string {
  const advice = unserved.find(({ path }) => path.test(pathname))?.words
  if (advice !== undefined) return advice
  const meant = endpointMeant(routes, pathname)
  if (meant !== null) return baseUrlAdvice(meant)
  if (!pathname.startsWith('/v1/')) return 'Unknown path. GET / lists all endpoints.'
  const compatible = getEndpoints(routes.filter(({ path }) => path.startsWith('/v1/')))
  return `Unknown path. The OpenAI-compatible API supports ${compatible.join(', ')}.`
}

/** Returns whether a client of a path expects errors in Anthropic's format: by the path, or by the header that its clients send. */
export function isMessagesForm({ url, headers }: Pick<Request, 'url' | 'headers'>): boolean {
  // Not parsed as a URL: a malformed `Host` leaves one that does not parse. A host has no slash.
  const [pathname = ''] = url.split(/[?#]/, 1)
  return messagesPath.test(pathname) || (headers.has('anthropic-version') && !openAiPath.test(pathname))
}

/** Header in which Google's clients send a key. */
export const googleKeyHeader = 'x-goog-api-key'
/** Paths of Google's clients. Newer ones use `v1`, as OpenAI's do for the list of models. */
export const geminiPath = /\/v1(?:beta\/|\/models(?:[/?]|$))/

const modelCall = /^\w+:\/\/[^/]*\/v1\/models\//

/** Returns whether a client expects Google's format: by the path, or by the header that its clients send. */
export function isGeminiForm({ url, method, headers }: Pick<Request, 'url' | 'method' | 'headers'>): boolean {
  const [pathname = ''] = url.split(/[?#]/, 1)
  if (pathname.includes('/v1beta/')) return true
  return geminiPath.test(pathname) && (headers.has(googleKeyHeader) || (method === 'POST' && modelCall.test(pathname)))
}

const messagesPath = /\/messages(?:\/|$)/
const openAiPath = /\/(?:chat\/completions|responses|embeddings|moderations|decisions)(?:\/|$)/

/** `HEAD` requests with which a client checks a base URL. */
export function isClientProbe(pathname: string): boolean {
  return pathname === '/' || pathname === '/api/hello'
}

/** Paths that client libraries append to their base URL, with or without `/v1`. */
const clientPaths = ['chat/completions', 'responses', 'messages', 'embeddings', 'moderations', 'decisions', 'models']
const mostSegments = 12

/**
 * Returns the endpoint that was meant by a path with a wrong base URL (`/v1/v1/embeddings`, `/models`); null = no
 * endpoint.
 */
function endpointMeant(routes: readonly Route[], pathname: string): string | null {
  const segments = pathname.split('/', mostSegments).filter(segment => segment !== '')
  for (const at of segments.keys()) {
    const tail = segments.slice(at).join('/')
    if (!clientPaths.some(path => tail === path || tail.startsWith(`${path}/`))) continue
    // A call in Google's form would have its method in the path.
    const endpoint = getEndpoints(routesAt(routes, `/v1/${tail}`)).find(name => !name.startsWith('POST /v1/models'))
    if (endpoint !== undefined) return endpoint
  }
  return null
}

function baseUrlAdvice(endpoint: string): string {
  const base = endpoint.includes('/v1/messages')
    ? 'the base URL of Anthropic clients is the address of this gateway, without /v1'
    : 'give the client a base URL that ends in /v1, once'
  return `Unknown path. The endpoint is ${endpoint}: ${base}.`
}

/** The end of Gemini's paths, `models/<id>:generateContent`. Model IDs of the gateway may contain a colon too. */
const geminiCall = /(?::|%3a)\w*(?:Contents?|Tokens|Predict)\/?$/i
const geminiAdvice =
  "Gemini's wire format is served by POST /v1beta/models/{model}:generateContent. The base URL of its clients is the address of this gateway without a path. Vertex AI's is not served."

const served = 'Use POST /v1/chat/completions, /v1/responses or /v1/messages.'

/** Known endpoints that are not served, by their path with or without `/v1`. The first match decides the message. */
const unserved: readonly { readonly path: RegExp; readonly words: string }[] = (
  [
    [
      'responses/compact',
      'Compaction is not served. Have the client shorten the conversation by an ordinary turn, as Codex does for every provider that is not named OpenAI.',
    ],
    [
      'responses/.+|conversations',
      'Responses and conversations are not stored here: each request holds its whole conversation (`store: false`), and there is nothing to fetch, cancel or delete.',
    ],
    [
      'chat/completions/(?!.*(?:completions|responses|messages)/?$).+',
      'Chat completions are not stored here: there is nothing to list, fetch, change or delete. Use POST /v1/chat/completions.',
    ],
    ['(?:engines/[^/]+/)?completions', 'Text completions are not served. Use POST /v1/chat/completions.'],
    ['complete', 'Text completions of Anthropic are not served. Use POST /v1/messages.'],
    [
      '(?:messages/)?batches',
      'Batches are not served. Send their requests one by one, as many at once as the account allows. Embeddings take many inputs per request.',
    ],
    [
      'files|uploads',
      'Files are not stored here. Send their content in the request: images and PDF files as `data:` URLs or base64.',
    ],
    ['images', 'Image generation is not served. Chat models read images that the request holds.'],
    ['audio', 'Speech, transcription and translation of audio are not served.'],
    ['videos', 'Video generation is not served.'],
    ['realtime', 'The Realtime API is not served. Use POST /v1/responses with `stream: true`.'],
    [
      'assistants|threads',
      'Assistants and threads are not served: nothing is stored here. Use POST /v1/responses with the whole conversation.',
    ],
    ['vector_stores', 'Vector stores are not served. Use POST /v1/embeddings with a vector store of your own.'],
    ['fine[_-]tun(?:ing|es)', 'Fine-tuning is not served. Tune a model at its provider and configure it by its name.'],
    ['evals|graders', 'Evals are not served. Use the API of the provider.'],
    ['containers|code_interpreter', 'Containers are not served. Run code in the client, by a function tool.'],
    ['chatkit', 'ChatKit is not served. Use POST /v1/responses.'],
    ['skills', 'Skills are not stored here. Put their instructions into the request.'],
    [
      'agents|environments|sessions|memory_stores|vaults|deployments',
      'Managed agents are not served. Run the agent in the client, with POST /v1/messages or /v1/responses.',
    ],
    [
      'organizations?|usage|dashboard/billing',
      'The administration of a provider is not served. Usage, keys and members of this gateway are below /api/v1 and in its dashboard.',
    ],
    ['edits', `Edits are not served. ${served}`],
    ['rerank', 'Reranking is not served. Use POST /v1/embeddings.'],
  ] as const
).map(([path, words]) => ({ path: new RegExp(`^(?:/v1)*/(?:${path})(?:/|$)`), words }))

/** Returns the routes of a path. */
function routesAt(routes: readonly Route[], pathname: string): readonly Route[] {
  const exact = routes.filter(({ path }) => path === pathname)
  return exact.length > 0 ? exact : routes.filter(({ path }) => isAt(path, pathname))
}

/** Returns a route's path in the form of documents: `/api/v1/keys/{id}`. */
export function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{id}')
}

const written = ({ method, path }: Route) => `${method} ${openApiPath(path)}`

/** Returns whether a route serves a page or one of its files. */
function isOfPage(path: string): boolean {
  return path === '/' || path.startsWith('/assets/') || path.endsWith('.css')
}

function isAt(path: string, pathname: string): boolean {
  const [given, wanted] = [pathname.split('/'), path.split('/')]
  // A model ID may contain slashes.
  const isLong = wanted.at(-1) === '*' && given.length > wanted.length
  if (given.length !== wanted.length && !isLong) return false
  return wanted.every((part, index) => part.startsWith(':') || part === '*' || part === given[index])
}
