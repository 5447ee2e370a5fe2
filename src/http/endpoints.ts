/** The route table in words, for whoever looks around or asks by a wrong method. */
type Route = { readonly method: string; readonly path: string }

/** What a program can ask, as `GET /api/v1/keys/{id}`, in the order of the table. */
export function endpointsOf(routes: readonly Route[]): string[] {
  return routes.filter(({ method, path }) => method !== 'OPTIONS' && !isOfPage(path)).map(written)
}

/** Returns the message of a 404: the methods that the path takes, the base URL that was meant, or the endpoints. */
export function notFoundMessage(routes: readonly Route[], pathname: string): string {
  const known = endpointsAt(routes, pathname)
  if (known.length > 0) return `This address takes another method: ${known.join(' or ')}.`
  const meant = endpointMeant(routes, pathname)
  if (meant !== null) return baseUrlAdvice(meant)
  const advice = clientHints.find(({ path }) => path.test(pathname))?.words
  if (advice !== undefined) return advice
  if (!pathname.startsWith('/v1/')) return 'There is nothing at this address. GET / lists the endpoints.'
  const compatible = endpointsOf(routes.filter(({ path }) => path.startsWith('/v1/')))
  return `Of the compatible API only ${compatible.join(', ')} are served.`
}

/** `HEAD` requests by which a client checks a base URL. */
export function isClientProbe(pathname: string): boolean {
  return pathname === '/' || pathname === '/api/hello'
}

/** What client libraries append to their base URL, with or without `/v1`. */
const clientPaths = ['chat/completions', 'responses', 'messages', 'embeddings', 'moderations', 'models']
const mostSegments = 12

/** Returns the endpoint that a path with a wrong base URL means (`/v1/v1/embeddings`, `/models`); null = none that is served. */
function endpointMeant(routes: readonly Route[], pathname: string): string | null {
  const segments = pathname.split('/', mostSegments).filter(segment => segment !== '')
  for (const at of segments.keys()) {
    const tail = segments.slice(at).join('/')
    if (!clientPaths.some(path => tail === path || tail.startsWith(`${path}/`))) continue
    const path = `/v1/${tail}`
    // The ID of a model may hold slashes.
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

/** What clients ask for that is not served. The first that fits speaks. */
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
    path: /\/(chat\/completions|models|responses)\/?$/,
    words:
      'Compatible clients ask POST /v1/chat/completions, POST /v1/responses and GET /v1/models: give them a base URL that ends in /v1.',
  },
  {
    path: /\/completions\/?$/,
    words: 'Text completions are not served. Use POST /v1/chat/completions.',
  },
]

/** What is at this very address, whatever its method. */
function endpointsAt(routes: readonly Route[], pathname: string): string[] {
  const exact = routes.filter(({ path }) => path === pathname)
  return (exact.length > 0 ? exact : routes.filter(({ path }) => isAt(path, pathname))).map(written)
}

/** A route's path as documents write it: `/api/v1/keys/{id}`. */
export function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{id}')
}

const written = ({ method, path }: Route) => `${method} ${openApiPath(path)}`

/** A page, or a file that belongs to one. */
function isOfPage(path: string): boolean {
  return path === '/' || path.startsWith('/assets/') || path.endsWith('.css')
}

function isAt(path: string, pathname: string): boolean {
  const [given, wanted] = [pathname.split('/'), path.split('/')]
  return given.length === wanted.length && wanted.every((part, index) => part.startsWith(':') || part === given[index])
}
