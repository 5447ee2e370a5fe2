/** Trace context of a client's request from its `traceparent` header (W3C Trace Context, level 1). */
export type TraceParent = {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  /** True if the client records the trace. */
  readonly sampled: boolean
}

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const longest = 256

/** Returns null if the header is absent or must be ignored by the standard. */
export function readTraceParent(header: string | null): TraceParent | null {
  if (header === null || header.length > longest) return null
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = shape.exec(header.trim()) ?? []
  // Later versions may append fields, version 00 may not; `ff` is invalid.
  if (version === '' || version === 'ff' || (version === '00' && rest !== undefined)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
