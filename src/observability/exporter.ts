/**
 * Sends spans and metrics to an OpenTelemetry collector (OTLP over HTTP, JSON) in batches in the background. One
 * bounded call at a time; batches that a collector rejects after some retries are dropped and counted.
 *
 * Written by hand because the official SDK with two exporters needs 42 MB on disk, 26 MB of memory and 0.3 s at startup
 * (measured, Bun 1.4.5), and opens its own connections.
 */
import { intervalTimer } from '../core/jobs/repeating.ts'
import type { Log, Network } from '../core/ports.ts'
import { createCounter, type Family, type Labels } from './instruments.ts'
import type { Attribute, Span, Tracer } from './traces.ts'

export type ExporterOptions = {
  /** Base URL of the collector without a trailing slash; `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string
  /** Additional headers for the collector, including secrets. */
  readonly headers: Readonly<Record<string, string>>
  /** Attributes of everything sent: service, version and process. */
  readonly resource: Labels
  readonly fetch: Network['fetch']
  readonly now: () => number
  readonly tracer: Tracer
  readonly families: () => readonly Family[]
  readonly metricsEveryMs: number
  readonly log: Pick<Log, 'warn'>
}

export type Exporter = {
  /** Metrics of the exporter itself. */
  families(): readonly Family[]
  /** Sends what is left for at most 2 s, and stops the timer. */
  close(): Promise<void>
}

const tickMs = 1000
const maximumBatchSpans = 2048
const sendDeadlineMs = 10_000
const closingDeadlineMs = 2_000
const maximumTries = 3

const signals = ['traces', 'metrics'] as const
type Signal = (typeof signals)[number]

/** Starts exporting. The timer does not keep the process alive. */
export function startExporter(options: ExporterOptions): Exporter {
  const { resource, now, tracer, log } = options
  const startedAt = now()
  const outcomes = createCounter({
    name: 'gateway_telemetry_exports_total',
    help: 'Telemetry batches by result of the export.',
    axes: [signals.map(signal => ({ signal })), [{ outcome: 'sent' }, { outcome: 'dropped' }]],
    showsZeros: true,
  })
  let running: Promise<void> | null = null
  let failures = 0
  let metricsAt = startedAt + options.metricsEveryMs
  const closing = new AbortController()

  const send = async (signal: Signal, body: object): Promise<void> => {
    const text = JSON.stringify(body)
    for (let tries = 1; ; tries++) {
      const problem = await post(options, signal, text, closing.signal)
      if (problem === null) {
        failures = 0
        return outcomes.add(1, signals.indexOf(signal), 0)
      }
      if (problem.isFinal || tries === maximumTries || closing.signal.aborted) {
        outcomes.add(1, signals.indexOf(signal), 1)
        if (failures++ % 60 === 0) log.warn('telemetry_export_failed', { signal, failures, detail: problem.detail })
        return
      }
      await Bun.sleep(tickMs)
    }
  }

  const sendTraces = async () => {
    for (let spans = tracer.drain(maximumBatchSpans); spans.length > 0; spans = tracer.drain(maximumBatchSpans))
      await send('traces', tracesBody(resource, spans))
  }
  const sendMetrics = () => send('metrics', metricsBody(resource, options.families(), startedAt, now()))

  const run = async () => {
    await sendTraces()
    if (now() < metricsAt) return
    metricsAt = now() + options.metricsEveryMs
    await sendMetrics()
  }
  const stop = intervalTimer(tickMs, () => {
    running ??= run().finally(() => {
      running = null
    })
  })

  return {
    families: () => [
      outcomes.family(),
      {
        name: 'gateway_trace_spans_dropped_total',
        help: 'Spans dropped because the export buffer was full.',
        kind: 'counter',
        samples: [{ labels: {}, value: tracer.dropped() }],
      },
    ],
    async close() {
      stop()
      const deadline = setTimeout(() => closing.abort(), closingDeadlineMs)
      await running
      await sendTraces()
      await sendMetrics()
      clearTimeout(deadline)
    },
  }
}

type Problem = { readonly detail: string /** False if sending it again cannot succeed. */; readonly isFinal: boolean }

/** Returns null if the collector accepted it. Never throws. */
async function post(
  { endpoint, headers, fetch }: ExporterOptions,
  signal: Signal,
  body: string,
  closing: AbortSignal,
): Promise<Problem | null> {
  try {
    const response = await fetch(`${endpoint}/v1/${signal}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      signal: AbortSignal.any([closing, AbortSignal.timeout(sendDeadlineMs)]),
      // A redirect would send the headers with their secrets to another host.
      redirect: 'error',
    })
    await response.body?.cancel()
    if (response.ok) return null
    const { status } = response
    return { detail: `the collector answered ${status}`, isFinal: status !== 429 && status < 502 }
  } catch (cause) {
    return { detail: cause instanceof Error ? cause.name : 'unknown', isFinal: false }
  }
}

/** Converts spans and metrics to OTLP JSON (protocol 1.x): IDs in hexadecimal, 64-bit integers as text. */

type KeyValue = { readonly key: string; readonly value: object }

const scope = { name: 'gateway-ai' }
const spanKinds = { internal: 1, server: 2, client: 3 } as const satisfies Record<Span['kind'], number>
const errorStatus = 2
const cumulative = 2

/** Returns the body for `/v1/traces`. */
function tracesBody(resource: Labels, spans: readonly Span[]): object {
  return {
    resourceSpans: [
      { resource: { attributes: getAttributes(resource) }, scopeSpans: [{ scope, spans: spans.map(getSpan) }] },
    ],
  }
}

/** Returns the body for `/v1/metrics`. Times are epoch milliseconds: of the process start, and now. */
function metricsBody(resource: Labels, families: readonly Family[], startedAt: number, now: number): object {
  const times = { startTimeUnixNano: nanoseconds(startedAt), timeUnixNano: nanoseconds(now) }
  const metrics = families.map(family => getMetric(family, times))
  return {
    resourceMetrics: [{ resource: { attributes: getAttributes(resource) }, scopeMetrics: [{ scope, metrics }] }],
  }
}

function getSpan({ traceId, spanId, parentId, name, kind, startedAt, endedAt, attributes, error }: Span): object {
  return {
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    name,
    kind: spanKinds[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: getAttributes(error === null ? attributes : { ...attributes, 'error.type': error }),
    ...(error === null ? {} : { status: { code: errorStatus } }),
  }
}

function getMetric(family: Family, times: object): object {
  const { name, help: description } = family
  if (family.kind === 'histogram')
    return {
      name,
      description,
      histogram: {
        aggregationTemporality: cumulative,
        dataPoints: family.series.map(({ labels, counts, sum }) => ({
          ...times,
          attributes: getAttributes(labels),
          count: String(counts.reduce((total, count) => total + count, 0)),
          sum,
          bucketCounts: counts.map(String),
          explicitBounds: family.bounds,
        })),
      },
    }
  const dataPoints = family.samples.map(({ labels, value }) => ({
    ...times,
    attributes: getAttributes(labels),
    asDouble: value,
  }))
  return family.kind === 'gauge'
    ? { name, description, gauge: { dataPoints } }
    : { name, description, sum: { dataPoints, aggregationTemporality: cumulative, isMonotonic: true } }
}

function getAttributes(attributes: Readonly<Record<string, Attribute>>): readonly KeyValue[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))
}

function anyValue(value: Attribute): object {
  switch (typeof value) {
    case 'string':
      return { stringValue: value.toWellFormed() }
    case 'boolean':
      return { boolValue: value }
    case 'number':
      return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
    default:
      return { arrayValue: { values: value.map(anyValue) } }
  }
}

/** Converts epoch milliseconds to nanoseconds with microsecond precision, the limit of a double. */
function nanoseconds(milliseconds: number): string {
  return `${Math.round(milliseconds * 1000)}000`
}
