import type { ErrorBody } from './routes.ts'

type Told = ErrorBody['error']

/** An API error, or a failed connection. `code` is the API's own, or `offline`. */
export class RequestError extends Error {
  readonly status: number
  readonly code: Told['code'] | 'offline'
  readonly param: string | null
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null

  constructor(options: {
    readonly status: number
    readonly code: Told['code'] | 'offline'
    readonly message: string
    readonly param?: string | null
    readonly requestId?: string | null
    readonly retryAfterSeconds?: number | null
  }) {
    super(options.message)
    this.name = 'Failure'
    this.status = options.status
    this.code = options.code
    this.param = options.param ?? null
    this.requestId = options.requestId ?? null
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
  }
}

/** Returns the error of a response; a response in another format comes from a proxy. */
export async function readRequestError(response: Response): Promise<RequestError> {
  const body: Partial<ErrorBody> = await response
    .text()
    .then(JSON.parse)
    .catch(() => ({}))
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return toFailure(response.status, body.error, Number.isFinite(seconds) ? seconds : null)
}

export function toFailure(
  status: number,
  told: Told | undefined,
  retryAfterSeconds: number | null = null,
): RequestError {
  if (told === undefined)
    return new RequestError({
      status,
      code: 'service_unavailable',
      message: `A proxy returned status ${status}. Try again.`,
    })
  const { code, message, param, request_id: requestId } = told
  return new RequestError({ status, code, message, param, requestId, retryAfterSeconds })
}

/** Returns any thrown value as an error; unknown ones are network errors. */
export function asFailure(thrown: unknown): RequestError {
  if (thrown instanceof RequestError) return thrown
  return new RequestError({
    status: 0,
    code: 'offline',
    message: 'The gateway is unreachable. Check the connection, and that it is running.',
  })
}

/** Returns true if a page change or a button aborted the call, which is not an error. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'AbortError'
}

export type Readiness = 'ready' | 'not_ready' | 'unreachable'

/** What a failed `GET /readyz` tells: the gateway answers 503 while it starts or stops, other errors are of a proxy. */
export const toReadiness = (thrown: unknown): Readiness =>
  asFailure(thrown).status === 503 ? 'not_ready' : 'unreachable'
