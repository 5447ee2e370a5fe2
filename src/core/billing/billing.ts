/**
 * Billing rules as pure functions: plan changes, cycle ends, invoices, and when payment is required. Times are epoch
 * milliseconds, money is an integer of 1e-8 USD, and cents are integers.
 */

import type { PlanName } from '../limits/plans.ts'
import { dayMs } from '../text/utc-days.ts'

export const cycleMs = 30 * dayMs
/** Time from the removal of a payment method or a declined invoice until chat answers 402 (`grace.ts`). */
export const graceMs = 3_600_000
/**
 * Delay from the end of a cycle until its invoice. The longest request takes 10 minutes, and its record some seconds
 * more.
 */
export const settlementDelayMs = 15 * 60_000
/** 1 cent. */
export const microcentsPerCent = 1_000_000

export type Cycle = { readonly startsAt: number; readonly endsAt: number }

/** Returns the 30-day cycle that starts at `startsAt`. */
export function cycleFrom(startsAt: number): Cycle {
  return { startsAt, endsAt: startsAt + cycleMs }
}

/** The state of an account that plan changes depend on. */
export type BillingState = {
  readonly plan: PlanName
  /** Increases with every change of plan, made or scheduled. */
  readonly version: number
  /** Null = the account is not billed. */
  readonly cycle: Cycle | null
  /** The plan after the current cycle; null = unchanged. */
  readonly planAfterCycle: PlanName | null
  readonly hasPaymentMethod: boolean
  /** Null if there is a payment method. */
  readonly graceEndsAt: number | null
}

/** `downgrade_now` is for operators: it does not wait for the end of the cycle. */
export const billingEvents = [
  'upgrade',
  'downgrade',
  'downgrade_now',
  'method_added',
  'method_removed',
  'time_passed',
] as const
export type BillingEvent = (typeof billingEvents)[number]

export type BillingRejection = 'already_so' | 'payment_method_missing'

/** A requested change of plan; `effectiveAt` may be in the future. */
type PlannedChange = {
  readonly version: number
  readonly from: PlanName
  readonly to: PlanName
  readonly effectiveAt: number
}

export type Transition = {
  readonly state: BillingState
  /** Why the event was rejected; null = it was applied. Changes that were due before it are applied either way. */
  readonly refusal: BillingRejection | null
  readonly change: PlannedChange | null
  /** Cycles that began, oldest first. */
  readonly opened: readonly Cycle[]
}

/** Applies an event at time `at` to an account. Cycles that ended by then are closed first. */
export function transition(before: BillingState, event: BillingEvent, at: number): Transition {
  const passed = passTime(before, at)
  const { state } = passed
  const refused = (refusal: BillingRejection): Transition => ({ ...passed, refusal, change: null })
  const became = (state: BillingState): Transition => ({ ...passed, state, refusal: null, change: null })
  switch (event) {
    case 'time_passed':
      return became(state)
    case 'method_added':
      return became({ ...state, hasPaymentMethod: true, graceEndsAt: null })
    case 'method_removed':
      if (!state.hasPaymentMethod) return refused('payment_method_missing')
      // The free plan needs no grace period.
      return became({
        ...state,
        hasPaymentMethod: false,
        graceEndsAt: state.plan === 'evaluation' ? null : at + graceMs,
      })
    case 'upgrade': {
      // With a grace period, the new agreement to pay ends it.
      if (state.plan === 'usage' && state.cycle !== null && state.planAfterCycle === null && state.graceEndsAt === null)
        return refused('already_so')
      if (!state.hasPaymentMethod) return refused('payment_method_missing')
      const version = state.version + 1
      const cycle = state.cycle ?? cycleFrom(at)
      return {
        state: { ...state, plan: 'usage', version, cycle, planAfterCycle: null, graceEndsAt: null },
        refusal: null,
        change: { version, from: state.planAfterCycle ?? state.plan, to: 'usage', effectiveAt: at },
        opened: state.cycle === null ? [...passed.opened, cycle] : passed.opened,
      }
    }
    case 'downgrade': {
      if (state.plan === 'evaluation' || state.planAfterCycle === 'evaluation') return refused('already_so')
      const version = state.version + 1
      const change = { version, from: state.plan, to: 'evaluation', effectiveAt: state.cycle?.endsAt ?? at } as const
      const next: BillingState =
        state.cycle === null
          ? { ...state, plan: 'evaluation', version, graceEndsAt: null }
          : { ...state, version, planAfterCycle: 'evaluation' }
      return { ...passed, state: next, refusal: null, change }
    }
    case 'downgrade_now': {
      if (state.plan === 'evaluation') return refused('already_so')
      const version = state.version + 1
      // Later than the cycle's start by any clock: the billed part of the cycle ends there.
      const effectiveAt = state.cycle === null ? at : Math.max(at, state.cycle.startsAt + 1)
      const change = { version, from: state.plan, to: 'evaluation', effectiveAt } as const
      const ended = { plan: 'evaluation', version, cycle: null, planAfterCycle: null, graceEndsAt: null } as const
      return { ...passed, state: { ...state, ...ended }, refusal: null, change }
    }
    default:
      return event satisfies never
  }
}

function passTime(before: BillingState, at: number): Pick<Transition, 'state' | 'opened'> {
  let state = before
  const opened: Cycle[] = []
  while (state.cycle !== null && state.cycle.endsAt <= at) {
    const plan = state.planAfterCycle ?? state.plan
    if (plan === 'usage') {
      const cycle = cycleFrom(state.cycle.endsAt)
      opened.push(cycle)
      state = { ...state, cycle, planAfterCycle: null }
    } else {
      const version = state.version + (plan === state.plan ? 0 : 1)
      state = { ...state, plan, version, cycle: null, planAfterCycle: null, graceEndsAt: null }
    }
  }
  return { state, opened }
}

/** Usage and cost of one model. */
export type LineSums = {
  /** `provider/model`. */
  readonly model: string
  readonly requests: number
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly amountMicrocents: number
}

/**
 * Suffix of an invoice line for usage of the previous cycle that its invoice missed: the record arrived late or
 * replaced a record with a lower cost.
 */
export const earlierCycleSuffix = ' (earlier cycle)'

/**
 * Returns an invoice's lines, highest amount first: one per model, plus one per model with usage of the previous cycle
 * that was recorded after its invoice. So each record is billed once, on one invoice or the next. If the previous cycle
 * was overbilled (by a checkpoint, for example), nothing is refunded here: no line is below 0.
 */
export function toInvoiceLines(
  used: readonly LineSums[],
  earlier: { readonly used: readonly LineSums[]; readonly invoiced: readonly LineSums[] } | null,
): LineSums[] {
  const invoiced = new Map((earlier?.invoiced ?? []).map(line => [line.model, line]))
  const late = (earlier?.used ?? [])
    .map(line => ({ ...subtract(line, invoiced.get(line.model)), model: line.model + earlierCycleSuffix }))
    .filter(line => line.requests > 0 || line.amountMicrocents > 0)
  return [...used.filter(line => line.requests > 0), ...late].sort(
    (left, right) => right.amountMicrocents - left.amountMicrocents || (left.model < right.model ? -1 : 1),
  )
}

function subtract(line: LineSums, other: LineSums | undefined): LineSums {
  if (other === undefined) return line
  const of = (field: Exclude<keyof LineSums, 'model'>) => Math.max(0, line[field] - other[field])
  return {
    model: line.model,
    requests: of('requests'),
    inputTokens: of('inputTokens'),
    cachedInputTokens: of('cachedInputTokens'),
    outputTokens: of('outputTokens'),
    reasoningTokens: of('reasoningTokens'),
    amountMicrocents: of('amountMicrocents'),
  }
}

/** Returns the exact sum of the lines and the amount charged in whole cents. A fraction of a cent is waived. */
export function invoiceTotals(lines: readonly Pick<LineSums, 'amountMicrocents'>[]): {
  readonly totalMicrocents: number
  readonly totalCents: number
} {
  const totalMicrocents = lines.reduce((sum, line) => sum + line.amountMicrocents, 0)
  // Above 2^53 (90 million dollars) no sum is exact, so none is sent.
  if (!Number.isSafeInteger(totalMicrocents)) throw new RangeError('an invoice that no integer holds')
  return { totalMicrocents, totalCents: wholeCents(totalMicrocents) }
}

/**
 * Returns each line in cents, in the order of the lines. They add up to the invoice's cents, and each is less than a
 * cent off its amount.
 */
export function centsOfLines(lines: readonly Pick<LineSums, 'amountMicrocents'>[]): number[] {
  const cents = lines.map(line => wholeCents(line.amountMicrocents))
  const left = invoiceTotals(lines).totalCents - cents.reduce((sum, cent) => sum + cent, 0)
  const byRemainder = lines
    .map(({ amountMicrocents }, index) => ({ index, remainder: amountMicrocents % microcentsPerCent }))
    .sort((item, other) => other.remainder - item.remainder || item.index - other.index)
  for (const { index } of byRemainder.slice(0, left)) cents[index] = (cents[index] ?? 0) + 1
  return cents
}

function wholeCents(microcents: number): number {
  return (microcents - (microcents % microcentsPerCent)) / microcentsPerCent
}

export type InvoiceStatus = 'open' | 'unpaid' | 'void' | 'paid'

const invoiceOrder = { open: 0, unpaid: 1, void: 2, paid: 3 } as const satisfies Record<InvoiceStatus, number>

/**
 * Returns an invoice's status after a new observation. Observations may be old, repeated or out of order; a status that
 * was reached is never undone, so any order leads to the same final status.
 */
export function newerInvoiceStatus(known: InvoiceStatus, seen: InvoiceStatus): InvoiceStatus {
  return invoiceOrder[seen] > invoiceOrder[known] ? seen : known
}

export const currency = 'usd'

/** An invoice as stored by the payment processor. */
export type ProcessorInvoice = {
  /** The processor's own ID; null = it has none. */
  readonly processorId: string | null
  /** Our invoice ID as stored by the processor. */
  readonly invoiceId: string | null
  readonly accountId: string | null
  readonly customerId: string | null
  readonly currency: string
  readonly totalCents: number
  /**
   * Amount still unpaid. An invoice can be settled without a payment: by credit, or carried over because it is too
   * small to charge.
   */
  readonly remainingCents: number
  readonly status: InvoiceStatus
}

/**
 * Returns which property of a processor's invoice differs from ours; null = none. Prevents that an event about another
 * invoice marks ours as paid.
 */
export function findInvoiceMismatch(
  ours: {
    readonly id: string
    readonly accountId: string
    readonly customerId: string | null
    readonly totalCents: number
    readonly processorId: string | null
  },
  seen: ProcessorInvoice,
): 'invoice' | 'account' | 'currency' | 'amount' | null {
  if (seen.invoiceId !== ours.id) return 'invoice'
  if (ours.processorId !== null && seen.processorId !== ours.processorId) return 'invoice'
  if (seen.accountId !== ours.accountId || seen.customerId !== ours.customerId) return 'account'
  if (seen.currency !== currency) return 'currency'
  if (seen.totalCents !== ours.totalCents) return 'amount'
  return seen.status === 'paid' && seen.remainingCents !== 0 ? 'amount' : null
}

/** From this share of the monthly soft cap, responses carry a warning and automatic routing prefers cheaper models. */
export const warningShare = 0.8

/** Returns the used share of a soft cap: 1 = all. A cap of 0 is always fully used. */
export function usedShare(spentMicrocents: number, capMicrocents: number): number {
  return capMicrocents === 0 ? 1 : spentMicrocents / capMicrocents
}

/** Kind of period that a soft cap counts (`grace.ts`). */
export type PeriodKind = 'billing_cycle' | 'calendar_month'

/** Returns the value of the header `x-gateway-budget-warning`, which names the period; null below the warning share. */
export function budgetWarning(spentMicrocents: number, capMicrocents: number, kind: PeriodKind): string | null {
  const share = usedShare(spentMicrocents, capMicrocents)
  if (share < warningShare) return null
  const period = kind === 'billing_cycle' ? 'this billing cycle' : 'this calendar month (UTC)'
  return `${Math.floor(share * 100)}% of the soft cap of ${capMicrocents / 1e8} USD for ${period} is used`
}

/** Returns whether this used share of the soft cap moves cheaper models up. */
export function prefersCheaper(share: number): boolean {
  return share >= warningShare
}
