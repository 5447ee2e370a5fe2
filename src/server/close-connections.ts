/** Handler of requests, for example an Elysia instance. */
export type RequestHandler = { readonly fetch: (request: Request) => Response | Promise<Response> }

/**
 * Adds `connection: close` to every response, so that clients with an open connection connect to another instance
 * before this one stops. Wraps the whole server only when it is about to stop, so that normal responses have no
 * overhead.
 */
export function closeConnectionsAfterResponse(app: RequestHandler, server: Bun.Server<unknown>): void {
  const { fetch } = app
  server.reload({
    routes: {},
    async fetch(request) {
      const response = await fetch.call(app, request)
      response.headers.set('connection', 'close')
      return response
    },
  })
}
