/**
 * What billing decides, as values: how plans change, when cycles end, what an invoice says, who has to pay first. Times are
 * epoch milliseconds, money is an integer of 1e-8 USD, and cents are whole.
 */

import type { PlanName } from '../limits/plans.ts'
import { byScore, costScore, type Scored } from '../routing/scoring.ts'
import { dayMs } from '../text/utc-days.ts'

export const cycleMs = 30 * dayMs
/** From the removal of a payment method, or from a declined invoice, until chat answers 402 (`grace.ts`). */
export const graceMs = 3_600_000
/** A cycle's invoice is made so long after its end: the longest answer takes 10 minutes, and its record a moment more. */
export const settlementDelayMs = 15 * 60_000
/** 1 cent. */
export const microcentsPerCent = 1_000_000

export type Cycle = { readonly startsAt: number; readonly endsAt: number }

/** The 30 days from `startsAt` on. */
export function cycleFrom(startsAt: number): Cycle {
  return { startsAt, endsAt: startsAt + cycleMs }
}

/** All of an account that its plan depends on. */
export type BillingState = {
  readonly plan: PlanName
  /** Grows with every change of plan, made or foreseen. */
  readonly version: number
  /** Null = nothing is billed. */
  readonly cycle: Cycle | null
  /** What the plan becomes when the cycle ends; null = it stays. */
  readonly planAfterCycle: PlanName | null
  readonly hasPaymentMethod: boolean
  /** Null wherever there is a payment method. */
  readonly graceEndsAt: number | null
}

/** `downgrade_now` is the operator's: it does not wait for the cycle's end. */
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

/** A change of plan as it is asked for; `effectiveAt` may be to come. */
export type PlannedChange = {
  readonly version: number
  readonly from: PlanName
  readonly to: PlanName
  readonly effectiveAt: number
}

export type Transition = {
  readonly state: BillingState
  /** Why the event changed nothing but what time had changed before it; null = it took place. */
  readonly refusal: BillingRejection | null
  readonly change: PlannedChange | null
  /** Cycles that began, in their order. */
  readonly opened: readonly Cycle[]
}

/** What an event at `at` makes of an account. Cycles that ended by then have ended first, whoever notices. */
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
      // What is free needs no grace.
      return became({
        ...state,
        hasPaymentMethod: false,
        graceEndsAt: state.plan === 'evaluation' ? null : at + graceMs,
      })
    case 'upgrade': {
      if (state.plan === 'usage' && state.cycle !== null && state.planAfterCycle === null) return refused('already_so')
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
      // After the cycle's start by any clock: what is billed of the cycle ends there.
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

/** What one model was used for, and what that cost. */
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
 * Ends the name of a line of what the cycle before was not billed for, because its record arrived after the invoice, or took the
 * place of one that was billed for less.
 */
export const earlierCycleSuffix = ' (earlier cycle)'

/**
 * An invoice's lines, dearest first: one per model, and one more per model that the cycle before turned out to have used
 * after its invoice was made. So each record is billed once, on one invoice or the next. Of what was billed too much, as a
 * checkpoint may have been, nothing is given back here: no line is below 0.
 */
export function invoiceLines(
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

/** The exact sum of the lines, and what is collected of it: whole cents, what is below one is waived. */
export function invoiceTotals(lines: readonly Pick<LineSums, 'amountMicrocents'>[]): {
  readonly totalMicrocents: number
  readonly totalCents: number
} {
  const totalMicrocents = lines.reduce((sum, line) => sum + line.amountMicrocents, 0)
  // Beyond 2^53 (90 million dollars) no sum above can be trusted, and none is sent.
  if (!Number.isSafeInteger(totalMicrocents)) throw new RangeError('an invoice that no integer holds')
  return { totalMicrocents, totalCents: wholeCents(totalMicrocents) }
}

/** Each line in cents, in the lines' order: they add up to the invoice's cents, and none is a cent off its amount. */
export function centsOfLines(lines: readonly Pick<LineSums, 'amountMicrocents'>[]): number[] {
  const cents = lines.map(line => wholeCents(line.amountMicrocents))
  const left = invoiceTotals(lines).totalCents - cents.reduce((sum, one) => sum + one, 0)
  const byRemainder = lines
    .map(({ amountMicrocents }, index) => ({ index, remainder: amountMicrocents % microcentsPerCent }))
    .sort((one, other) => other.remainder - one.remainder || one.index - other.index)
  for (const { index } of byRemainder.slice(0, left)) cents[index] = (cents[index] ?? 0) + 1
  return cents
}

function wholeCents(microcents: number): number {
  return (microcents - (microcents % microcentsPerCent)) / microcentsPerCent
}

export type InvoiceStatus = 'open' | 'unpaid' | 'void' | 'paid'

const standing = { open: 0, unpaid: 1, void: 2, paid: 3 } as const satisfies Record<InvoiceStatus, number>

/**
 * The status after another look at the invoice. News may be old, double or out of order: what was reached is never given
 * up, so that any order of the same news leads to the same end.
 */
export function newerInvoiceStatus(known: InvoiceStatus, seen: InvoiceStatus): InvoiceStatus {
  return standing[seen] > standing[known] ? seen : known
}

export const currency = 'usd'

/** An invoice as the payment processor has it. */
export type ProcessorInvoice = {
  /** The processor's own id; null = it keeps none. */
  readonly processorId: string | null
  /** What it says of whose it is. */
  readonly invoiceId: string | null
  readonly accountId: string | null
  readonly customerId: string | null
  readonly currency: string
  readonly totalCents: number
  /** What is still to be paid. An invoice may be met without a payment: by credit, or carried over as too small to charge. */
  readonly remainingCents: number
  readonly status: InvoiceStatus
}

/** What of a processor's invoice is not as ours says; null = all is. Nothing is marked paid on the word of another's. */
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

/** From this share of the monthly soft cap on, callers are warned and auto-routing leans to cheaper models. */
export const warningShare = 0.8

/** How much of a soft cap is used: 1 = all. A cap of nothing is always used up. */
export function usedShare(spentMicrocents: number, capMicrocents: number): number {
  return capMicrocents === 0 ? 1 : spentMicrocents / capMicrocents
}

/** Kind of period that a soft cap counts (`budget-period.ts`). */
export type PeriodKind = 'billing_cycle' | 'calendar_month'

/** Returns the value of the header `x-gateway-budget-warning`, which names the period; null below the share that warns. */
export function budgetWarning(spentMicrocents: number, capMicrocents: number, kind: PeriodKind): string | null {
  const share = usedShare(spentMicrocents, capMicrocents)
  if (share < warningShare) return null
  const period = kind === 'billing_cycle' ? 'this billing cycle' : 'this calendar month (UTC)'
  return `${Math.floor(share * 100)}% of the soft cap of ${capMicrocents / 1e8} USD for ${period} is used`
}

const [firstLean, fullLean] = [0.3, 0.6]

/** Scores that lean to cheaper models, the more of the soft cap is used; best first. Below the warning they stay as they are. */
export function preferCheaper(scored: readonly Scored[], share: number): readonly Scored[] {
  if (share < warningShare) return scored
  const lean = firstLean + (fullLean - firstLean) * Math.min(1, (share - warningShare) / (1 - warningShare))
  return scored
    .map(entry => ({ ...entry, score: (1 - lean) * entry.score + lean * costScore(entry.model) }))
    .sort(byScore)
}

/** Shares of the soft cap, in percent, at which owners get an email. */
export const budgetMilestones = [80, 100] as const

/** The highest of them that is reached; null = none. */
export function milestoneOf(spentMicrocents: number, capMicrocents: number): number | null {
  const share = usedShare(spentMicrocents, capMicrocents)
  return budgetMilestones.findLast(percent => share * 100 >= percent) ?? null
}
