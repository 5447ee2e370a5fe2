/** When an account must pay before it may chat, and which emails its owners get. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { graceMs } from '../../../src/core/billing/billing.ts'
import {
  type Dues,
  findGrace,
  graceNotices,
  isNoticeTrue,
  paymentRequiredFrom,
} from '../../../src/core/billing/grace.ts'

const start = Date.UTC(2026, 3, 5, 9, 30)
const nothing: Dues = { plan: 'usage', graceEndsAt: null, unpaidSince: null }
const methodRemovedAt = (at: number): Dues => ({ ...nothing, graceEndsAt: at + graceMs })
const declinedAt = (at: number): Dues => ({ ...nothing, unpaidSince: at })

const dues = fc.record({
  plan: fc.constantFrom<Dues['plan']>('evaluation', 'usage'),
  graceEndsAt: fc.option(fc.integer({ min: start, max: start + 3 * graceMs })),
  unpaidSince: fc.option(fc.integer({ min: start, max: start + 3 * graceMs })),
})

describe('paymentRequiredFrom', () => {
  test('returns null when nothing is owed', () => {
    expect(paymentRequiredFrom(nothing)).toBeNull()
    expect(paymentRequiredFrom({ ...methodRemovedAt(start), plan: 'evaluation' })).toBeNull()
  })

  test('gives a declined invoice the same grace period as a removed payment method', () => {
    expect(paymentRequiredFrom(declinedAt(start))).toBe(start + graceMs)
    expect(paymentRequiredFrom(methodRemovedAt(start))).toBe(start + graceMs)
    expect(paymentRequiredFrom({ ...declinedAt(start), plan: 'evaluation' })).toBe(start + graceMs)
  })

  test('uses the grace period of the first cause when there are two', () => {
    const both = (removed: number, declined: number) =>
      findGrace({ ...methodRemovedAt(removed), unpaidSince: declined })
    expect(both(start, start + 5)).toEqual({ cause: 'payment_method', beganAt: start, endsAt: start + graceMs })
    expect(both(start + 5, start)).toEqual({ cause: 'invoice', beganAt: start, endsAt: start + graceMs })
  })

  test('returns at least one hour after the first cause', () => {
    fc.assert(
      fc.property(dues, due => {
        const causes = [
          ...(due.plan === 'usage' && due.graceEndsAt !== null ? [due.graceEndsAt - graceMs] : []),
          ...(due.unpaidSince === null ? [] : [due.unpaidSince]),
        ]
        expect(paymentRequiredFrom(due)).toBe(causes.length === 0 ? null : Math.min(...causes) + graceMs)
      }),
    )
  })
})

describe('graceNotices', () => {
  const kinds = (before: Dues, after: Dues, at: number) =>
    graceNotices(before, after, at).map(({ kind, dueAt }) => [kind, dueAt - start])

  test('returns the start notice at once and the end notice after one hour', () => {
    expect(kinds(nothing, declinedAt(start), start)).toEqual([
      ['grace_began', 0],
      ['grace_ended', graceMs],
    ])
  })

  test('returns nothing for a second cause, a resolved one, or an ended grace period', () => {
    const both = { ...declinedAt(start), graceEndsAt: start + 5 + graceMs }
    expect(kinds(declinedAt(start), both, start + 5)).toEqual([])
    expect(kinds(declinedAt(start), nothing, start + 5)).toEqual([])
    const removedFirst = { ...methodRemovedAt(start), unpaidSince: start + 5 }
    expect(kinds(removedFirst, declinedAt(start + 5), start + 3 * graceMs)).toEqual([])
  })

  test('returns the later end when the first of two causes is resolved', () => {
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

  test('returns false for a start notice after the hour, and for an end notice before it', () => {
    const isTrue = (notice: typeof began, at: number) => isNoticeTrue(notice, declinedAt(start), null, at)
    expect([isTrue(began, start + graceMs - 1), isTrue(began, start + graceMs)]).toEqual([true, false])
    expect([isTrue(ended, start + graceMs - 1), isTrue(ended, start + graceMs)]).toEqual([false, true])
  })

  test('returns false when the account has paid, or another grace period runs', () => {
    const later = start + graceMs
    expect(isNoticeTrue(ended, nothing, null, later)).toBe(false)
    expect(isNoticeTrue(ended, declinedAt(start + 1), null, later + 1)).toBe(false)
    const unpaid = { kind: 'invoice_unpaid', subject: 'inv_1' } as const
    expect(isNoticeTrue(unpaid, declinedAt(start), 'unpaid', start)).toBe(true)
    expect(isNoticeTrue(unpaid, nothing, 'paid', start)).toBe(false)
  })
})
