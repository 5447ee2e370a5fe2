/** An OpenTelemetry collector for tests: accepts OTLP over HTTP on a real socket and stores what it received. */

export type CollectedSpan = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
  readonly status?: { readonly code: number }
}

export type Collector = {
  readonly url: string
  readonly requests: readonly { readonly path: string; readonly headers: Headers; readonly body: string }[]
  /** Statuses of the next responses in order; then 200. */
  readonly statuses: number[]
  spans(): readonly CollectedSpan[]
  /** Names of the received metrics. */
  metrics(): ReadonlySet<string>
  stop(): Promise<void>
}

type Traces = {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: CollectedSpan[] }[] }[]
}
type Metrics = {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly { readonly metrics: { readonly name: string }[] }[]
  }[]
}

export function startCollector(): Collector {
  const requests: { path: string; headers: Headers; body: string }[] = []
  const statuses: number[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const status = statuses.shift() ?? 200
      const body = await request.text()
      requests.push({ path: new URL(request.url).pathname, headers: request.headers, body })
      return new Response('{}', { status })
    },
  })
  const bodies = <T>(path: string) =>
    requests.filter(request => request.path === path).map(request => JSON.parse(request.body) as T)
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    statuses,
    spans: () =>
      bodies<Traces>('/v1/traces').flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
      ),
    metrics: () =>
      new Set(
        bodies<Metrics>('/v1/metrics').flatMap(({ resourceMetrics }) =>
          resourceMetrics.flatMap(({ scopeMetrics }) =>
            scopeMetrics.flatMap(({ metrics }) => metrics.map(({ name }) => name)),
          ),
        ),
      ),
    stop: () => server.stop(true),
  }
}
