/** What answers requests: an Elysia instance, for one. */
type RequestHandler = { readonly fetch: (request: Request) => Response | Promise<Response> }

/**
 * From now on every response also asks for its connection to be closed, so that a client that keeps one open connects elsewhere
 * before this gateway stops. Wrapped around a whole server that is about to stop: a serving one pays nothing for it.
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
