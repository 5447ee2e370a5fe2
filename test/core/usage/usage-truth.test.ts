/** One of several records of a request counts, in whatever order they arrive. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { UsageRecord } from '../../../src/core/usage/usage-record.ts'
import {
  compareTruth,
  countedUsage,
  getCorrection,
  mergedRecords,
  mergeRecords,
} from '../../../src/core/usage/usage-truth.ts'
import { usageRecord } from '../../database/support.ts'

/** Few values, so that ties are frequent. */
const records = fc
  .record({
    truth: fc.constantFrom('final' as const, 'checkpoint' as const, undefined),
    status: fc.constantFrom('completed' as const, 'failed' as const),
    input_tokens: fc.integer({ min: 0, max: 2 }),
    output_tokens: fc.integer({ min: 0, max: 2 }),
    billed_microcents: fc.integer({ min: 0, max: 2 }),
    latency_ms: fc.integer({ min: 0, max: 2 }),
    at_ms: fc.constantFrom(0, 1),
  })
  .map(({ truth, ...changes }): UsageRecord => usageRecord({ ...changes, ...(truth === undefined ? {} : { truth }) }))

describe('mergeRecords', () => {
  test('gives the same record for any order, grouping and repetition', () => {
    fc.assert(
      fc.property(records, records, records, (a, b, c) => {
        expect(mergeRecords(a, b)).toEqual(mergeRecords(b, a))
        expect(mergeRecords(mergeRecords(a, b), c)).toEqual(mergeRecords(a, mergeRecords(b, c)))
        expect(mergeRecords(a, a)).toEqual(a)
        expect(mergeRecords(mergeRecords(a, b), b)).toEqual(mergeRecords(a, b))
      }),
      { numRuns: 2_000 },
    )
  })

  test('prefers the final record when the checkpoint has more', () => {
    const checkpoint = usageRecord({ truth: 'checkpoint', status: 'failed', output_tokens: 90, billed_microcents: 49 })
    const final = usageRecord({ output_tokens: 20, billed_microcents: 30 })
    expect(mergeRecords(checkpoint, final)).toBe(final)
    expect(mergeRecords(final, checkpoint)).toBe(final)
  })

  test('prefers the later checkpoint when there is no final record', () => {
    const earlier = usageRecord({ truth: 'checkpoint', status: 'failed', output_tokens: 20, billed_microcents: 30 })
    const later = { ...earlier, output_tokens: 21, billed_microcents: 31 }
    expect(mergeRecords(later, earlier)).toBe(later)
    expect(mergeRecords(earlier, later)).toBe(later)
  })
})

test('correctionOf: adds up to what counts in the end when updates come in any order', () => {
  fc.assert(
    fc.property(fc.array(records, { minLength: 1, maxLength: 6 }), arrivals => {
      let counted: ReturnType<typeof countedUsage> | undefined
      let [tokens, microcents] = [0, 0]
      for (const record of arrivals) {
        const update = countedUsage(record)
        const correction = getCorrection(counted, update)
        tokens += correction.tokens
        microcents += correction.microcents
        if (counted === undefined || compareTruth(update, counted) > 0) counted = update
      }
      const [merged] = mergedRecords(arrivals)
      expect(merged === undefined ? null : countedUsage(merged)).toMatchObject({ tokens, microcents })
    }),
    { numRuns: 2_000 },
  )
})
