import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type BillingEvent,
  type BillingState,
  billingEvents,
  budgetWarning,
  centsOfLines,
  cycleFrom,
  cycleMs,
  earlierCycleSuffix,
  findInvoiceMismatch,
  graceMs,
  type InvoiceStatus,
  invoiceTotals,
  type LineSums,
  microcentsPerCent,
  newerInvoiceStatus,
  type ProcessorInvoice,
  toInvoiceLines,
  transition,
} from '../../../src/core/billing/billing.ts'
import { catalog } from '../../../src/models/catalog.ts'
import { costScore, preferCheaper, score } from '../../../src/models/scoring.ts'

const start = Date.UTC(2026, 3, 5, 9, 30)
const free: BillingState = {
  plan: 'evaluation',
  version: 0,
  cycle: null,
  planAfterCycle: null,
  hasPaymentMethod: false,
  graceEndsAt: null,
}
const paying: BillingState = { ...free, plan: 'usage', version: 1, cycle: cycleFrom(start), hasPaymentMethod: true }

const named: Readonly<Record<string, BillingState>> = {
  'free, no method': free,
  'free, method': { ...free, hasPaymentMethod: true },
  paying,
  'paying, in grace': { ...paying, hasPaymentMethod: false, graceEndsAt: start + graceMs },
  'paying, leaving': { ...paying, planAfterCycle: 'evaluation', version: 2 },
  'usage by the operator': { ...free, plan: 'usage' },
}

describe('transition', () => {
  test('returns the specified state for every state and event', () => {
    const at = start + 1000
    const table = Object.entries(named).flatMap(([name, state]) =>
      billingEvents.map(event => {
        const { state: after, refusal, change, opened } = transition(state, event, at)
        const said = [
          after.plan,
          after.cycle === null ? 'no cycle' : 'cycle',
          ...(after.planAfterCycle === null ? [] : [`then ${after.planAfterCycle}`]),
          after.hasPaymentMethod ? 'method' : 'no method',
          ...(after.graceEndsAt === null ? [] : ['grace']),
          ...(change === null ? [] : [`v${change.version} ${change.from}→${change.to}`]),
          ...(opened.length === 0 ? [] : ['opens']),
        ]
        return `${name} + ${event}: ${refusal ?? said.join(', ')}`
      }),
    )
    expect(table.join('\n')).toMatchInlineSnapshot(`
      "free, no method + upgrade: payment_method_missing
      free, no method + downgrade: already_so
      free, no method + downgrade_now: already_so
      free, no method + method_added: evaluation, no cycle, method
      free, no method + method_removed: payment_method_missing
      free, no method + time_passed: evaluation, no cycle, no method
      free, method + upgrade: usage, cycle, method, v1 evaluation→usage, opens
      free, method + downgrade: already_so
      free, method + downgrade_now: already_so
      free, method + method_added: evaluation, no cycle, method
      free, method + method_removed: evaluation, no cycle, no method
      free, method + time_passed: evaluation, no cycle, method
      paying + upgrade: already_so
      paying + downgrade: usage, cycle, then evaluation, method, v2 usage→evaluation
      paying + downgrade_now: evaluation, no cycle, method, v2 usage→evaluation
      paying + method_added: usage, cycle, method
      paying + method_removed: usage, cycle, no method, grace
      paying + time_passed: usage, cycle, method
      paying, in grace + upgrade: payment_method_missing
      paying, in grace + downgrade: usage, cycle, then evaluation, no method, grace, v2 usage→evaluation
      paying, in grace + downgrade_now: evaluation, no cycle, no method, v2 usage→evaluation
      paying, in grace + method_added: usage, cycle, method
      paying, in grace + method_removed: payment_method_missing
      paying, in grace + time_passed: usage, cycle, no method, grace
      paying, leaving + upgrade: usage, cycle, method, v3 evaluation→usage
      paying, leaving + downgrade: already_so
      paying, leaving + downgrade_now: evaluation, no cycle, method, v3 usage→evaluation
      paying, leaving + method_added: usage, cycle, then evaluation, method
      paying, leaving + method_removed: usage, cycle, then evaluation, no method, grace
      paying, leaving + time_passed: usage, cycle, then evaluation, method
      usage by the operator + upgrade: payment_method_missing
      usage by the operator + downgrade: evaluation, no cycle, no method, v1 usage→evaluation
      usage by the operator + downgrade_now: evaluation, no cycle, no method, v1 usage→evaluation
      usage by the operator + method_added: usage, no cycle, method
      usage by the operator + method_removed: payment_method_missing
      usage by the operator + time_passed: usage, no cycle, no method"
    `)
  })

  test('starts billing at an upgrade and delays a downgrade to the end of the cycle', () => {
    const upgraded = transition({ ...free, hasPaymentMethod: true }, 'upgrade', start)
    expect(upgraded.state.cycle).toEqual({ startsAt: start, endsAt: start + 30 * 86_400_000 })
    const leaving = transition(upgraded.state, 'downgrade', start + 5).state
    expect(transition(leaving, 'time_passed', start + cycleMs - 1).state.plan).toBe('usage')
    expect(transition(leaving, 'time_passed', start + cycleMs).state).toMatchObject({
      plan: 'evaluation',
      cycle: null,
      version: 3,
    })
  })

  test('cancels a downgrade when an upgrade follows in the same cycle, and starts a new cycle afterwards', () => {
    const leaving = transition(paying, 'downgrade', start + 5).state
    const back = transition(leaving, 'upgrade', start + 10)
    expect(back).toMatchObject({ opened: [], state: { planAfterCycle: null, cycle: paying.cycle } })
    const later = transition(leaving, 'upgrade', start + cycleMs + 10)
    expect(later.opened).toEqual([cycleFrom(start + cycleMs + 10)])
  })

  test('never combines a grace period with a payment method, or a cycle with the free plan', () => {
    const event = fc.record({
      event: fc.constantFrom<BillingEvent>(...billingEvents),
      /** Set with the event, as for an upgrade with manual invoicing. */
      agrees: fc.boolean(),
      wait: fc.oneof(fc.nat(2 * graceMs), fc.nat(2 * cycleMs)),
    })
    fc.assert(
      fc.property(fc.constantFrom(...Object.values(named)), fc.array(event, { maxLength: 12 }), (from, events) => {
        let [state, at] = [from, start]
        for (const { event, agrees, wait } of events) {
          at += wait
          const before = agrees && event === 'upgrade' ? { ...state, hasPaymentMethod: true } : state
          const after = transition(before, event, at)
          if (after.refusal === null) state = after.state
          if (state.hasPaymentMethod) expect(state.graceEndsAt).toBeNull()
          if (state.plan === 'evaluation') expect([state.cycle, state.planAfterCycle]).toEqual([null, null])
        }
      }),
      { numRuns: 1000 },
    )
  })

  test('ends the remaining cycle of a free account without starting another', () => {
    const { state, opened } = transition({ ...paying, plan: 'evaluation' }, 'time_passed', start + 3 * cycleMs)
    expect([state.cycle, state.plan, opened]).toEqual([null, 'evaluation', []])
  })

  test('returns the same state for one time step as for many, with contiguous cycles', () => {
    const event = fc.record({
      event: fc.constantFrom<BillingEvent>(...billingEvents),
      wait: fc.integer({ min: 0, max: 2 * cycleMs }),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), fc.array(fc.nat(cycleMs), { maxLength: 5 }), (events, stops) => {
        let [once, often] = [free, free]
        let at = start
        for (const { event, wait } of events) {
          for (const stop of stops.filter(stop => stop <= wait).sort((a, b) => a - b))
            often = transition(often, 'time_passed', at + stop).state
          at += wait
          const { state, opened } = transition(once, event, at)
          for (const cycle of opened) expect(cycle.endsAt - cycle.startsAt).toBe(cycleMs)
          for (const [index, { startsAt }] of opened.entries())
            if (index > 0) expect(startsAt).toBe(opened[index - 1]?.endsAt ?? 0)
          if (state.cycle !== null) expect(state.cycle.endsAt).toBeGreaterThan(at)
          expect(state.version).toBeGreaterThanOrEqual(once.version)
          once = state
          often = transition(often, event, at).state
          expect(often).toEqual(once)
        }
      }),
    )
  })
})

const line = (model: string) =>
  fc.record({
    model: fc.constant(model),
    requests: fc.integer({ min: 1, max: 1e6 }),
    inputTokens: fc.nat(1e9),
    cachedInputTokens: fc.nat(1e9),
    outputTokens: fc.nat(1e9),
    reasoningTokens: fc.nat(1e9),
    amountMicrocents: fc.nat(1e12),
  })
const lines = fc
  .uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 12 })
  .chain(models => fc.tuple(...models.map(line)))

describe('invoices', () => {
  test('have line cents that add up to the invoice cents, never above the usage', () => {
    fc.assert(
      fc.property(lines, lines => {
        const { totalMicrocents, totalCents } = invoiceTotals(lines)
        const cents = centsOfLines(lines)
        expect(BigInt(totalMicrocents)).toBe(lines.reduce((sum, item) => sum + BigInt(item.amountMicrocents), 0n))
        expect(cents.reduce((sum, cent) => sum + cent, 0)).toBe(totalCents)
        expect(totalCents * microcentsPerCent).toBeLessThanOrEqual(totalMicrocents)
        expect(totalMicrocents - totalCents * microcentsPerCent).toBeLessThan(microcentsPerCent)
        for (const [index, item] of lines.entries())
          expect(Math.abs((cents[index] ?? 0) * microcentsPerCent - item.amountMicrocents)).toBeLessThan(
            microcentsPerCent,
          )
      }),
    )
  })

  test('bill late records once, on the next invoice, in a separate line', () => {
    const sum = (all: readonly LineSums[]) =>
      all.reduce((total, lineSums) => total + BigInt(lineSums.amountMicrocents), 0n)
    fc.assert(
      fc.property(lines, lines, lines, (before, after, next) => {
        const first = toInvoiceLines(before, null)
        const models = new Map(before.map(item => [item.model, item]))
        for (const item of after) {
          const old = models.get(item.model)
          models.set(item.model, {
            ...item,
            requests: item.requests + (old?.requests ?? 0),
            amountMicrocents: item.amountMicrocents + (old?.amountMicrocents ?? 0),
          })
        }
        const second = toInvoiceLines(next, { used: [...models.values()], invoiced: first })
        expect(sum(first) + sum(second)).toBe(sum(before) + sum(after) + sum(next))
        expect(second.filter(lineSums => lineSums.model.endsWith(earlierCycleSuffix)).length).toBe(after.length)
      }),
    )
  })

  test('bill the increase of a truer record and refund no decrease', () => {
    const line = (model: string, requests: number, amountMicrocents: number): LineSums => ({
      model,
      requests,
      inputTokens: requests,
      cachedInputTokens: 0,
      outputTokens: requests,
      reasoningTokens: 0,
      amountMicrocents,
    })
    const earlier = {
      invoiced: [line('openai/a', 3, 300), line('openai/b', 3, 300), line('openai/c', 3, 300)],
      used: [line('openai/a', 3, 450), line('openai/b', 3, 100), line('openai/c', 4, 200)],
    }
    const lines = toInvoiceLines([line('openai/b', 1, 50)], earlier)
    expect(lines.map(lineSums => [lineSums.model, lineSums.requests, lineSums.amountMicrocents])).toEqual([
      [`openai/a${earlierCycleSuffix}`, 0, 150],
      ['openai/b', 1, 50],
      [`openai/c${earlierCycleSuffix}`, 1, 0],
    ])
  })

  test('newerInvoiceStatus: returns the same status for any order and number of the same observations', () => {
    const news = fc.array(fc.constantFrom<InvoiceStatus>('open', 'unpaid', 'paid'), { maxLength: 8 })
    fc.assert(
      fc.property(news, fc.infiniteStream(fc.nat(1000)), (seen, order) => {
        const shuffled = seen
          .map(invoiceStatus => ({ one: invoiceStatus, by: order.next().value ?? 0 }))
          .sort((a, b) => a.by - b.by)
        const end = (all: readonly InvoiceStatus[]) => all.reduce(newerInvoiceStatus, 'open')
        expect(end([...shuffled.map(({ one: invoiceStatus }) => invoiceStatus), ...seen])).toBe(end(seen))
      }),
    )
    expect(newerInvoiceStatus('paid', 'unpaid')).toBe('paid')
    expect(newerInvoiceStatus('unpaid', 'paid')).toBe('paid')
  })

  test('findInvoiceMismatch: reports an invoice with another order, account, currency or amount [W5]', () => {
    const ours = { id: 'inv_1', accountId: 'acc_1', customerId: 'cus_1', totalCents: 500, processorId: null }
    const seen: ProcessorInvoice = {
      processorId: 'in_1',
      invoiceId: 'inv_1',
      accountId: 'acc_1',
      customerId: 'cus_1',
      currency: 'usd',
      totalCents: 500,
      remainingCents: 0,
      status: 'paid',
    }
    expect(findInvoiceMismatch(ours, seen)).toBeNull()
    expect(findInvoiceMismatch({ ...ours, processorId: 'in_2' }, seen)).toBe('invoice')
    expect(findInvoiceMismatch(ours, { ...seen, invoiceId: 'inv_2' })).toBe('invoice')
    expect(findInvoiceMismatch(ours, { ...seen, accountId: 'acc_2' })).toBe('account')
    expect(findInvoiceMismatch(ours, { ...seen, customerId: null })).toBe('account')
    expect(findInvoiceMismatch(ours, { ...seen, currency: 'jpy' })).toBe('currency')
    expect(findInvoiceMismatch(ours, { ...seen, totalCents: 499 })).toBe('amount')
    expect(findInvoiceMismatch(ours, { ...seen, remainingCents: 1 })).toBe('amount')
    expect(findInvoiceMismatch(ours, { ...seen, status: 'open', remainingCents: 500 })).toBeNull()
  })
})

describe('soft cap', () => {
  test('warns from 80 %, at once for a cap of 0, and names the period', () => {
    expect(budgetWarning(799_999_999, 1_000_000_000, 'billing_cycle')).toBeNull()
    expect(budgetWarning(800_000_000, 1_000_000_000, 'billing_cycle')).toBe(
      '80% of the soft cap of 10 USD for this billing cycle is used',
    )
    expect(budgetWarning(2_500_000_000, 1_000_000_000, 'calendar_month')).toBe(
      '250% of the soft cap of 10 USD for this calendar month (UTC) is used',
    )
    expect(budgetWarning(0, 0, 'calendar_month')).not.toBeNull()
  })

  test('shifts ranking to cheaper models with increasing use, but not below the warning share', () => {
    const terms = { at: 0, tier: null }
    const scored = score(catalog, { strategy: null, level: 'strong', terms })
    expect(preferCheaper(scored, 0.79, terms)).toEqual(scored)
    const cheapnessOfFirst = [0.79, 0.8, 1, 5].map(share => {
      const [first] = preferCheaper(scored, share, terms)
      return first === undefined ? 0 : costScore(first.model, terms)
    })
    expect(cheapnessOfFirst).toEqual(cheapnessOfFirst.toSorted((a, b) => a - b))
    expect(cheapnessOfFirst.at(-1)).toBeGreaterThan(cheapnessOfFirst[0] ?? 1)
  })
})
