/** When an account has to pay before it may chat, and which emails its owners get. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { graceMs } from '../../../src/core/billing/billing.ts'
import { type Dues, graceNotices, graceOf, isNoticeTrue, paymentRequiredFrom } from '../../../src/core/billing/grace.ts'

const start = Date.UTC(2026, 3, 5, 9, 30)
const nothing: Dues = { plan: 'usage', graceEndsAt: null, unpaidSince: null }
const methodRemovedAt = (at: number): Dues => ({ ...nothing, graceEndsAt: at + graceMs })
const declinedAt = (at: number): Dues => ({ ...nothing, unpaidSince: at })

const dues = fc.record({
  plan: fc.constantFrom<Dues['plan']>('evaluation', 'usage'),
  graceEndsAt: fc.option(fc.integer({ min: start, max: start + 3 * graceMs })),
  unpaidSince: fc.option(fc.integer({ min: start, max: start + 3 * graceMs })),
})

describe('refusedFrom', () => {
  test('returns null when nothing is owed', () => {
    expect(paymentRequiredFrom(nothing)).toBeNull()
    expect(paymentRequiredFrom({ ...methodRemovedAt(start), plan: 'evaluation' })).toBeNull()
  })

  test('gives a declined invoice the same hour as a removed payment method', () => {
    expect(paymentRequiredFrom(declinedAt(start))).toBe(start + graceMs)
    expect(paymentRequiredFrom(methodRemovedAt(start))).toBe(start + graceMs)
    expect(paymentRequiredFrom({ ...declinedAt(start), plan: 'evaluation' })).toBe(start + graceMs)
  })

  test('counts the hour of the first cause when there are two', () => {
    const both = (removed: number, declined: number) => graceOf({ ...methodRemovedAt(removed), unpaidSince: declined })
    expect(both(start, start + 5)).toEqual({ cause: 'payment_method', beganAt: start, endsAt: start + graceMs })
    expect(both(start + 5, start)).toEqual({ cause: 'invoice', beganAt: start, endsAt: start + graceMs })
  })

  test('never comes before a whole hour after the first cause', () => {
    fc.assert(
      fc.property(dues, one => {
        const causes = [
          ...(one.plan === 'usage' && one.graceEndsAt !== null ? [one.graceEndsAt - graceMs] : []),
          ...(one.unpaidSince === null ? [] : [one.unpaidSince]),
        ]
        expect(paymentRequiredFrom(one)).toBe(causes.length === 0 ? null : Math.min(...causes) + graceMs)
      }),
    )
  })
})

describe('graceNotices', () => {
  const kinds = (before: Dues, after: Dues, at: number) =>
    graceNotices(before, after, at).map(({ kind, dueAt }) => [kind, dueAt - start])

  test('announces the start at once and the end after the hour', () => {
    expect(kinds(nothing, declinedAt(start), start)).toEqual([
      ['grace_began', 0],
      ['grace_ended', graceMs],
    ])
  })

  test('announces nothing for a second cause, a cured one, or an hour that is over', () => {
    const both = { ...declinedAt(start), graceEndsAt: start + 5 + graceMs }
    expect(kinds(declinedAt(start), both, start + 5)).toEqual([])
    expect(kinds(declinedAt(start), nothing, start + 5)).toEqual([])
    const removedFirst = { ...methodRemovedAt(start), unpaidSince: start + 5 }
    expect(kinds(removedFirst, declinedAt(start + 5), start + 3 * graceMs)).toEqual([])
  })

  test('announces the later end when the first of two causes is cured within its hour', () => {
    const removedFirst = { ...methodRemovedAt(start), unpaidSince: start + 5 }
    expect(kinds(removedFirst, declinedAt(start + 5), start + 10)).toEqual([
      ['grace_began', 10],
      ['grace_ended', graceMs + 5],
    ])
  })
})

describe('isNoticeTrue', () => {
  const [began, ended] = graceNotices(nothing, declinedAt(start), start)
  if (began === undefined || ended === undefined) throw new Error('a decline calls for two notices')

  test('is false for a start when the hour is over, and for an end before it', () => {
    const isTrue = (notice: typeof began, at: number) => isNoticeTrue(notice, declinedAt(start), null, at)
    expect([isTrue(began, start + graceMs - 1), isTrue(began, start + graceMs)]).toEqual([true, false])
    expect([isTrue(ended, start + graceMs - 1), isTrue(ended, start + graceMs)]).toEqual([false, true])
  })

  test('is false when the account has paid, or another grace period runs', () => {
    const later = start + graceMs
    expect(isNoticeTrue(ended, nothing, null, later)).toBe(false)
    expect(isNoticeTrue(ended, declinedAt(start + 1), null, later + 1)).toBe(false)
    const unpaid = { kind: 'invoice_unpaid', subject: 'inv_1' } as const
    expect(isNoticeTrue(unpaid, declinedAt(start), 'unpaid', start)).toBe(true)
    expect(isNoticeTrue(unpaid, nothing, 'paid', start)).toBe(false)
  })
})
