/** Names of the endpoints, for clients that request the root, an unknown path or an unsupported method. */
type Route = { readonly method: string; readonly path: string }

/** Endpoints for API clients, as `GET /api/v1/keys/{id}`, in the order of the table. */
export function endpointsOf(routes: readonly Route[]): string[] {
  return routes.filter(({ method, path }) => method !== 'OPTIONS' && !isOfPage(path)).map(written)
}

/** Returns the message of a 404: the path's methods, the correct base URL, or the list of endpoints. */
export function notFoundMessage(routes: readonly Route[], pathname: string): string {
  const known = endpointsAt(routes, pathname)
  if (known.length > 0) return `Method not supported for this path. Use ${known.join(' or ')}.`
  const meant = endpointMeant(routes, pathname)
  if (meant !== null) return baseUrlAdvice(meant)
  const advice = clientHints.find(({ path }) => path.test(pathname))?.words
  if (advice !== undefined) return advice
  if (!pathname.startsWith('/v1/')) return 'Unknown path. GET / lists all endpoints.'
  const compatible = endpointsOf(routes.filter(({ path }) => path.startsWith('/v1/')))
  return `Unknown path. The OpenAI-compatible API supports ${compatible.join(', ')}.`
}

/** `HEAD` requests with which a client checks a base URL. */
export function isClientProbe(pathname: string): boolean {
  return pathname === '/' || pathname === '/api/hello'
}

/** Paths that client libraries append to their base URL, with or without `/v1`. */
const clientPaths = ['chat/completions', 'responses', 'messages', 'embeddings', 'moderations', 'models']
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
    const path = `/v1/${tail}`
    // A model ID may contain slashes.
    return path.startsWith('/v1/models/') ? 'GET /v1/models/{id}' : (endpointsAt(routes, path)[0] ?? null)
  }
  return null
}

function baseUrlAdvice(endpoint: string): string {
  const base = endpoint.includes('/v1/messages')
    ? 'the base URL of Anthropic clients is the address of this gateway, without /v1'
    : 'give the client a base URL that ends in /v1, once'
  return `Unknown path. The endpoint is ${endpoint}: ${base}.`
}

/** Unsupported endpoints that clients request. The first match decides the message. */
const clientHints: readonly { readonly path: RegExp; readonly words: string }[] = [
  {
    path: /^\/v1\/responses\/compact\/?$/,
    words:
      'Compaction is not served. Have the client shorten the conversation by an ordinary turn, as Codex does for every provider that is not named OpenAI.',
  },
  {
    path: /^\/v1\/(responses|conversations)\/./,
    words:
      'Responses and conversations are not stored here: each request holds its whole conversation (`store: false`), and there is nothing to fetch, cancel or delete.',
  },
  {
    path: /\/completions\/?$/,
    words: 'Text completions are not served. Use POST /v1/chat/completions.',
  },
]

/** Returns the methods of a path. */
function endpointsAt(routes: readonly Route[], pathname: string): string[] {
  const exact = routes.filter(({ path }) => path === pathname)
  return (exact.length > 0 ? exact : routes.filter(({ path }) => isAt(path, pathname))).map(written)
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
  return given.length === wanted.length && wanted.every((part, index) => part.startsWith(':') || part === given[index])
}
