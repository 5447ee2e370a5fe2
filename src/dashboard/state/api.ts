import { asFailure, isAbort, readRequestError } from './api-error.ts'
import type { ApiRoute, Routes } from './routes.ts'
import { freshToken, renew } from './session.ts'

type Input = {
  /** Values for the `:names` of the path. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal
}

/** Routes that answer with a file. */
export type ExportRoute = 'GET /api/v1/requests/export' | 'GET /api/v1/audit/export'

/** Calls a route with the session token. Throws `RequestError`; aborts are thrown unchanged. */
export async function callApi<R extends ApiRoute>(route: R, input: Input = {}): Promise<Routes[R]> {
  return read(await authorised(route, input))
}

/** Calls a route without a session: sign-in, registration, accepting an invitation, lists of models. */
export async function callOpen<R extends ApiRoute>(route: R, input: Input = {}): Promise<Routes[R]> {
  return read(await send(route, input, null))
}

/** Returns the response itself, for streaming. */
export async function authorised(route: ApiRoute | ExportRoute, input: Input): Promise<Response> {
  const response = await send(route, input, await attempt(freshToken))
  // The token may have been ended, or signed with a rotated secret: it is refreshed once.
  return response.status === 401 && (await isSessionOver(response))
    ? send(route, input, await attempt(renew))
    : response
}

async function isSessionOver(response: Response): Promise<boolean> {
  return (await readRequestError(response.clone())).code === 'invalid_token'
}

async function read<T>(response: Response): Promise<T> {
  if (!response.ok) throw await readRequestError(response)
  // The API's own tests ensure the types of responses.
  return response.status === 204 ? (null as T) : attempt(() => response.json())
}

function send(route: string, { params, query, body, signal }: Input, token: string | null): Promise<Response> {
  const [method = 'GET', path = '/'] = route.split(' ')
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ''))
  const search = new URLSearchParams(query).toString()
  return attempt(() =>
    fetch(search === '' ? filled : `${filled}?${search}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    }),
  )
}

async function attempt<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (thrown) {
    throw isAbort(thrown) ? thrown : asFailure(thrown)
  }
}
