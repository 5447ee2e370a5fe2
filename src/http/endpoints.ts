/** The route table in words, for whoever looks around or asks by a wrong method. */
type Route = { readonly method: string; readonly path: string }

/** What a program can ask, as `GET /api/v1/keys/{id}`, in the order of the table. */
export function endpointsOf(routes: readonly Route[]): string[] {
  return routes.filter(({ method, path }) => method !== 'OPTIONS' && !isOfPage(path)).map(written)
}

/** What is to be said where a request meets no route: the methods that its address takes, or what its client should ask instead. */
export function notFoundMessage(routes: readonly Route[], pathname: string): string {
  const known = endpointsAt(routes, pathname)
  if (known.length > 0) return `This address takes another method: ${known.join(' or ')}.`
  const advice = clientHints.find(({ path }) => path.test(pathname))?.words
  if (advice !== undefined) return advice
  if (!pathname.startsWith('/v1/')) return 'There is nothing at this address. GET / lists the endpoints.'
  const compatible = endpointsOf(routes.filter(({ path }) => path.startsWith('/v1/')))
  return `Of the compatible API only ${compatible.join(', ')} are served.`
}

/** Where client libraries go by themselves, or by a base address that is not quite right. The first that fits speaks. */
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
