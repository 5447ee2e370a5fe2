/** The route table in words, for whoever looks around or asks by a wrong method. */
type Route = { readonly method: string; readonly path: string }

/** What a program can ask, as `GET /api/v1/keys/{id}`, in the order of the table. */
export function endpointsOf(routes: readonly Route[]): string[] {
  return routes.filter(({ method, path }) => method !== 'OPTIONS' && !isOfPage(path)).map(written)
}

/** What is at this very address, whatever its method. */
export function endpointsAt(routes: readonly Route[], pathname: string): string[] {
  const exact = routes.filter(({ path }) => path === pathname)
  return (exact.length > 0 ? exact : routes.filter(({ path }) => isAt(path, pathname))).map(written)
}

/** A route's path as documents write it: `/api/v1/keys/{id}`. */
export function writtenPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{id}')
}

const written = ({ method, path }: Route) => `${method} ${writtenPath(path)}`

/** A page, or a file that belongs to one. */
function isOfPage(path: string): boolean {
  return path === '/' || path.startsWith('/assets/') || path.endsWith('.css')
}

function isAt(path: string, pathname: string): boolean {
  const [given, wanted] = [pathname.split('/'), path.split('/')]
  return given.length === wanted.length && wanted.every((part, index) => part.startsWith(':') || part === given[index])
}
