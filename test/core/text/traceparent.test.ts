import { expect, test } from 'bun:test'
import { readTraceParent } from '../../../src/core/text/traceparent.ts'

const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']

for (const [header, sampled] of [
  [`00-${traceId}-${spanId}-01`, true],
  [`00-${traceId}-${spanId}-00`, false],
  [`00-${traceId}-${spanId}-ff`, true],
  [` 00-${traceId}-${spanId}-01 `, true],
  [`cc-${traceId}-${spanId}-01`, true],
  [`cc-${traceId}-${spanId}-01-what-a-later-version-adds`, true],
] as const)
  test(`readTraceParent: accepts ${header}`, () =>
    expect(readTraceParent(header)).toEqual({ traceId, spanId, sampled }))

for (const header of [
  null,
  '',
  'canary',
  `00-${traceId}-${spanId}`,
  `00-${traceId}-${spanId}-01-more`,
  `ff-${traceId}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${traceId}-${spanId}-1`,
  `00_${traceId}_${spanId}_01`,
  `cc-${traceId}-${spanId}-01-${'x'.repeat(300)}`,
])
  test(`readTraceParent: returns null for ${header?.slice(0, 80)}`, () => expect(readTraceParent(header)).toBeNull())
