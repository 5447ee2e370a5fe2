/** Converts spans and metrics to OTLP JSON (protocol 1.x): IDs in hexadecimal, 64-bit integers as text. */
import type { Family, Labels } from './instruments.ts'
import type { Attribute, Span } from './traces.ts'

type KeyValue = { readonly key: string; readonly value: object }

const scope = { name: 'gateway-ai' }
const spanKinds = { internal: 1, server: 2, client: 3 } as const satisfies Record<Span['kind'], number>
const errorStatus = 2
const cumulative = 2

/** Returns the body for `/v1/traces`. */
export function tracesBody(resource: Labels, spans: readonly Span[]): object {
  return {
    resourceSpans: [
      { resource: { attributes: getAttributes(resource) }, scopeSpans: [{ scope, spans: spans.map(getSpan) }] },
    ],
  }
}

/** Returns the body for `/v1/metrics`. Times are epoch milliseconds: of the process start, and now. */
export function metricsBody(resource: Labels, families: readonly Family[], startedAt: number, now: number): object {
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
