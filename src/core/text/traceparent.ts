/** The trace that a caller's request is part of, from its `traceparent` header (W3C Trace Context, level 1). */
export type TraceParent = {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  /** Whether the caller records it. */
  readonly sampled: boolean
}

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const longest = 256

/** Null where there is none, or one that the standard says to ignore. */
export function readTraceParent(header: string | null): TraceParent | null {
  if (header === null || header.length > longest) return null
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = shape.exec(header.trim()) ?? []
  // Later versions may append fields, the first may not; `ff` is none.
  if (version === '' || version === 'ff' || (version === '00' && rest !== undefined)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
