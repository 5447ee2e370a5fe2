/**
 * Plans, cycles, payment methods and invoices. Whatever changes an account's billing holds the account's row while it reads
 * and writes, so that of two changes at once the second sees the first; what is decided is decided in `core/billing.ts`.
 * Ids and times are given.
 */
import { and, asc, desc, eq, isNull, lt, or, sql } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import {
  type BillingEvent,
  type BillingState,
  budgetMilestones,
  budgetWarning,
  type InvoiceStatus,
  invoiceLines,
  invoiceTotals,
  type LineSums,
  laterStatus,
  milestoneOf,
  mismatch,
  monthOf,
  type Refusal,
  type SeenInvoice,
  settlingMs,
  shareOf,
  type Transition,
  transition,
} from '../core/billing.ts'
import type { Caller } from '../core/plans.ts'
import type { Look, SignedEvent } from '../payments/payments.ts'
import type { Database } from './database.ts'
import { onAccount, type Step } from './on-account.ts'
import {
  type Account,
  accounts,
  type BillingCycle,
  billingCycles,
  type Invoice,
  type InvoiceLine,
  invoiceLines as invoiceLineRows,
  invoices,
  type PaymentMethod,
  paymentMethods,
  planChanges,
  webhookEvents,
} from './tables.ts'

/** An account with the payment method it has now. */
export type BillingAccount = { readonly account: Account; readonly method: PaymentMethod | null }

const workDeadlineMs = 10_000
/** Any number will do that no one else uses on this database. */
const billingLock = 7_245_001_502

/** An account's billing; null where there is no such account. */
export async function findBilling(database: Database, accountId: string): Promise<BillingAccount | null> {
  const rows = await onAccount(database, accountId).orm(step =>
    step
      .select({ account: accounts, method: paymentMethods })
      .from(accounts)
      .leftJoin(paymentMethods, and(eq(paymentMethods.accountId, accounts.id), isNull(paymentMethods.removedAt)))
      .where(eq(accounts.id, accountId))
      .limit(1),
  )
  return rows[0] ?? null
}

/** The account as `core/billing.ts` sees it. */
export function stateOf({ account, method }: BillingAccount): BillingState {
  const { plan, version, cycleStartedAt, cycleEndsAt, planAfterCycle, graceEndsAt } = account
  return {
    plan,
    version,
    cycle:
      cycleStartedAt === null || cycleEndsAt === null
        ? null
        : { startsAt: cycleStartedAt.getTime(), endsAt: cycleEndsAt.getTime() },
    planAfterCycle,
    hasPaymentMethod: method !== null,
    graceEndsAt: graceEndsAt?.getTime() ?? null,
  }
}

export type NewMethod = Pick<PaymentMethod, 'id' | 'kind' | 'stripePaymentMethodId' | 'brand' | 'lastFour'>

export type BillingChange = {
  readonly event: Exclude<BillingEvent, 'time_passed'>
  /** Epoch milliseconds. */
  readonly at: number
  readonly userId: string | null
  readonly newId: (prefix: string) => string
  /** The plan version this was decided on: where it is another by now, it is a `conflict`; null = whichever. */
  readonly version?: number | null
  /** Becomes the account's payment method before the event takes place, where it has none (or another, for `method_added`). */
  readonly method?: NewMethod
  /** Of the account at the payment processor. */
  readonly customerId?: string
}

/** `taken`: the payment method or the customer belongs to another account. */
export type BillingOutcome = 'done' | 'conflict' | 'not_found' | 'taken' | Refusal

/** Changes plan or payment method. The row's lock and the version make it so that of two at once one is refused. */
export function changeBilling(database: Database, accountId: string, change: BillingChange): Promise<BillingOutcome> {
  return onAccount(database, accountId)
    .orm(step => changed(step, accountId, change), workDeadlineMs)
    .catch(error => {
      if (isTaken(error)) return 'taken'
      throw error
    })
}

async function changed(step: Step, accountId: string, change: BillingChange): Promise<BillingOutcome> {
  const found = await lockBilling(step, accountId)
  if (found === null) return 'not_found'
  if (change.version != null && change.version !== found.account.version) return 'conflict'
  const { event, at, userId, method, newId } = change
  const before = stateOf(found)
  const isNew = method !== undefined && (event === 'method_added' ? !isSame(found.method, method) : !found.method)
  const after = transition(isNew ? { ...before, hasPaymentMethod: true } : before, event, at)
  // What time had changed is the worker's to write: a refusal writes nothing.
  if (after.refusal !== null) return after.refusal
  if ((isNew || event === 'method_removed') && found.method !== null)
    await step
      .update(paymentMethods)
      .set({ removedAt: new Date(at) })
      .where(eq(paymentMethods.id, found.method.id))
  if (isNew) {
    await step.insert(paymentMethods).values({ ...method, accountId, createdAt: new Date(at) })
    // What could not be collected is tried again at once.
    await step
      .update(invoices)
      .set({ updatedAt: longAgo })
      .where(and(eq(invoices.accountId, accountId), eq(invoices.status, 'unpaid')))
  }
  await writeState(step, accountId, after, newId, change.customerId)
  if (after.change !== null) {
    const { version, from, to, effectiveAt } = after.change
    await step.insert(planChanges).values({
      accountId,
      version,
      fromPlan: from,
      toPlan: to,
      userId,
      requestedAt: new Date(at),
      effectiveAt: new Date(effectiveAt),
    })
  }
  return 'done'
}

const longAgo = new Date(0)

function isSame(known: PaymentMethod | null, method: NewMethod): boolean {
  return known !== null && known.kind === method.kind && known.stripePaymentMethodId === method.stripePaymentMethodId
}

async function lockBilling(step: Step, accountId: string): Promise<BillingAccount | null> {
  const [account] = await step.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update')
  if (account === undefined) return null
  const [method] = await step
    .select()
    .from(paymentMethods)
    .where(and(eq(paymentMethods.accountId, accountId), isNull(paymentMethods.removedAt)))
  return { account, method: method ?? null }
}

async function writeState(
  step: Step,
  accountId: string,
  { state, opened }: Transition,
  newId: (prefix: string) => string,
  customerId?: string,
): Promise<void> {
  const { plan, version, cycle, planAfterCycle, graceEndsAt } = state
  await step
    .update(accounts)
    .set({
      plan,
      version,
      cycleStartedAt: dateOf(cycle?.startsAt),
      cycleEndsAt: dateOf(cycle?.endsAt),
      planAfterCycle,
      graceEndsAt: dateOf(graceEndsAt),
      updatedAt: sql`clock_timestamp()`,
      ...(customerId === undefined ? {} : { stripeCustomerId: customerId }),
    })
    .where(eq(accounts.id, accountId))
  for (const { startsAt, endsAt } of opened)
    await step
      .insert(billingCycles)
      .values({ id: newId('cyc'), accountId, startsAt: new Date(startsAt), endsAt: new Date(endsAt) })
      .onConflictDoNothing({ target: [billingCycles.accountId, billingCycles.startsAt] })
}

function dateOf(at: number | null | undefined): Date | null {
  return at == null ? null : new Date(at)
}

const uniqueViolation = '23505'

function isTaken(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++)
    if ('code' in at && at.code === uniqueViolation) return true
  return false
}

/** Sets the monthly soft cap; null = none. Gateways take it up within a second. */
export async function setSoftCap(database: Database, accountId: string, microcents: number | null): Promise<void> {
  await onAccount(database, accountId).orm(step =>
    step
      .update(accounts)
      .set({ softCapMicrocents: microcents, updatedAt: sql`clock_timestamp()` })
      .where(eq(accounts.id, accountId)),
  )
}

/** What an account was billed in a UTC month (`YYYY-MM`), from the daily sums. */
export async function spentInMonth(database: Database, accountId: string, month: string): Promise<number> {
  const first = `${month}-01`
  const rows = await onAccount(database, accountId).sql(
    query => query<{ microcents: number }[]>`
      select coalesce(sum(billed_microcents), 0)::float8 as microcents
      from usage_daily
      where account_id = ${accountId} and day >= ${first}::text::date
        and day < ${first}::text::date + interval '1 month'`,
  )
  return rows[0]?.microcents ?? 0
}

/** What a running cycle comes to so far. */
export async function spentInCycle(
  database: Database,
  accountId: string,
  cycle: { readonly startsAt: number; readonly endsAt: number },
): Promise<number> {
  const lines = await onAccount(database, accountId).orm(step => usageByModel(step, accountId, cycle), workDeadlineMs)
  return invoiceTotals(lines).totalMicrocents
}

/**
 * What an account used from `startsAt` up to `endsAt`, by model. Whole UTC days come from the daily sums, which are written
 * in the ledger's own transactions; of the two days that a cycle cuts, each record is asked. One statement, one snapshot.
 */
async function usageByModel(
  step: Pick<PostgresJsDatabase, 'execute'>,
  accountId: string,
  { startsAt, endsAt }: { readonly startsAt: number; readonly endsAt: number },
): Promise<LineSums[]> {
  const [from, to] = [instant(startsAt), instant(endsAt)]
  const [firstWhole, lastWhole] = [wholeDay(Math.ceil(startsAt / dayMs)), wholeDay(Math.floor(endsAt / dayMs))]
  const rows = await step.execute<SumsRow>(sql`
    select model, sum(requests)::float8 as requests, sum(input_tokens)::float8 as input_tokens,
      sum(cached_input_tokens)::float8 as cached_input_tokens, sum(output_tokens)::float8 as output_tokens,
      sum(reasoning_tokens)::float8 as reasoning_tokens, sum(billed_microcents)::text as billed
    from (
      select model, requests, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, billed_microcents
      from usage_daily
      where account_id = ${accountId} and day >= ${firstWhole} and day < ${lastWhole}
      union all
      select case when model = '' then '' else provider || '/' || model end, 1, input_tokens, cached_input_tokens,
        output_tokens, reasoning_tokens, billed_microcents
      from usage_records
      where account_id = ${accountId} and at >= ${from} and at < ${to}
        and (at < ${firstWhole}::timestamp at time zone 'UTC' or at >= ${lastWhole}::timestamp at time zone 'UTC')
    ) as used
    group by model
    having model <> '' or sum(billed_microcents) > 0`)
  return rows.map(row => ({
    model: row.model,
    requests: row.requests,
    inputTokens: row.input_tokens,
    cachedInputTokens: row.cached_input_tokens,
    outputTokens: row.output_tokens,
    reasoningTokens: row.reasoning_tokens,
    amountMicrocents: Number(row.billed),
  }))
}

type SumsRow = {
  readonly model: string
  readonly requests: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly billed: string
}

const dayMs = 86_400_000
const instant = (at: number) => sql`${new Date(at).toISOString()}::text::timestamptz`
const wholeDay = (day: number) => sql`(date '1970-01-01' + ${day}::int)`

/**
 * Lets time pass for accounts whose cycle has ended: the next one begins, or a downgrade takes place. At most 100 accounts;
 * returns how many. Another gateway that does the same has the lock: then none.
 */
export function rollCycles(database: Database, at: number, newId: (prefix: string) => string): Promise<number> {
  return alone(database, async step => {
    const due = await step
      .select({ id: accounts.id })
      .from(accounts)
      .where(sql`${accounts.cycleEndsAt} <= ${instant(at)}`)
      .orderBy(asc(accounts.cycleEndsAt))
      .limit(100)
    for (const { id } of due) {
      const found = await lockBilling(step, id)
      if (found !== null) await writeState(step, id, transition(stateOf(found), 'time_passed', at), newId)
    }
    return due.length
  })
}

/** Makes the invoice of the cycle that ended first, once it has settled. Null where none has, or another gateway is at it. */
export function closeCycle(database: Database, at: number, newId: (prefix: string) => string): Promise<Invoice | null> {
  return alone(
    database,
    async step => {
      const [cycle] = await step
        .select()
        .from(billingCycles)
        .where(and(isNull(billingCycles.closedAt), sql`${billingCycles.endsAt} <= ${instant(at - settlingMs)}`))
        .orderBy(asc(billingCycles.endsAt))
        .limit(1)
        .for('update')
      return cycle === undefined ? null : invoiceFor(step, cycle, at, newId)
    },
    null,
  )
}

async function invoiceFor(
  step: Step,
  cycle: BillingCycle,
  at: number,
  newId: (prefix: string) => string,
): Promise<Invoice | null> {
  const { accountId } = cycle
  const used = await usageByModel(step, accountId, boundsOf(cycle))
  const lines = invoiceLines(used, await earlierUsage(step, cycle))
  const totals = invoiceTotals(lines)
  const issuedAt = new Date(at)
  // Nothing to collect is nothing owed.
  const isPaid = totals.totalCents === 0
  const [invoice] = await step
    .insert(invoices)
    .values({
      id: newId('inv'),
      accountId,
      cycleId: cycle.id,
      status: isPaid ? 'paid' : 'open',
      ...totals,
      issuedAt,
      paidAt: isPaid ? issuedAt : null,
      updatedAt: longAgo,
    })
    .onConflictDoNothing({ target: invoices.cycleId })
    .returning()
  if (invoice !== undefined && lines.length > 0)
    await step.insert(invoiceLineRows).values(lines.map(line => ({ ...line, invoiceId: invoice.id })))
  await step.update(billingCycles).set({ closedAt: issuedAt }).where(eq(billingCycles.id, cycle.id))
  return invoice ?? null
}

/** What the cycle before was used for, as the ledger has it now and as it was invoiced. */
async function earlierUsage(step: Step, { accountId, startsAt }: BillingCycle) {
  const [found] = await step
    .select({ cycle: billingCycles, invoiceId: invoices.id })
    .from(billingCycles)
    .innerJoin(invoices, eq(invoices.cycleId, billingCycles.id))
    .where(and(eq(billingCycles.accountId, accountId), lt(billingCycles.startsAt, startsAt)))
    .orderBy(desc(billingCycles.startsAt))
    .limit(1)
  if (found === undefined) return null
  return {
    used: await usageByModel(step, accountId, boundsOf(found.cycle)),
    invoiced: await linesOf(step, found.invoiceId),
  }
}

function boundsOf({ startsAt, endsAt }: Pick<BillingCycle, 'startsAt' | 'endsAt'>) {
  return { startsAt: startsAt.getTime(), endsAt: endsAt.getTime() }
}

function linesOf(step: Pick<PostgresJsDatabase, 'select'>, invoiceId: string): Promise<InvoiceLine[]> {
  return step
    .select()
    .from(invoiceLineRows)
    .where(eq(invoiceLineRows.invoiceId, invoiceId))
    .orderBy(desc(invoiceLineRows.amountMicrocents), asc(invoiceLineRows.model))
}

/** Of a transaction's length, so that it is let go of however the transaction ends, in the embedded database too. */
function alone<T>(database: Database, work: (step: Step) => Promise<T>): Promise<T | 0>
function alone<T>(database: Database, work: (step: Step) => Promise<T>, otherwise: T): Promise<T>
function alone<T>(database: Database, work: (step: Step) => Promise<T>, otherwise?: T): Promise<T | 0> {
  return database.run(
    ({ orm }) =>
      orm.transaction(async step => {
        const [lock] = await step.execute<{ held: boolean }>(
          sql`select pg_try_advisory_xact_lock(${billingLock}::bigint) as held`,
        )
        return lock?.held === true ? work(step) : (otherwise ?? 0)
      }),
    workDeadlineMs,
  )
}

/** An invoice to be collected, with all that the payment processor must be told. */
export type Due = {
  readonly invoice: Invoice
  readonly lines: readonly InvoiceLine[]
  readonly customerId: string | null
  readonly methodKind: PaymentMethod['kind'] | null
}

const claimSeconds = { open: 60, unpaid: 86_400 }

/**
 * Takes the invoice that waited longest to be collected; null where none is due. Nobody else gets it for a minute, or where
 * it was refused before, for a day.
 */
export async function claimInvoice(database: Database): Promise<Due | null> {
  return database.run(
    ({ orm }) =>
      orm.transaction(async step => {
        const [invoice] = await step
          .select()
          .from(invoices)
          .where(or(isDue('open', claimSeconds.open), isDue('unpaid', claimSeconds.unpaid)))
          .orderBy(asc(invoices.updatedAt))
          .limit(1)
          .for('update', { skipLocked: true })
        if (invoice === undefined) return null
        await step.update(invoices).set({ updatedAt: sql`clock_timestamp()` }).where(eq(invoices.id, invoice.id))
        const [owner] = await step
          .select({ customerId: accounts.stripeCustomerId, methodKind: paymentMethods.kind })
          .from(accounts)
          .leftJoin(paymentMethods, and(eq(paymentMethods.accountId, accounts.id), isNull(paymentMethods.removedAt)))
          .where(eq(accounts.id, invoice.accountId))
        const { customerId = null, methodKind = null } = owner ?? {}
        return { invoice, lines: await linesOf(step, invoice.id), customerId, methodKind }
      }),
    workDeadlineMs,
  )
}

function isDue(status: InvoiceStatus, seconds: number) {
  return and(
    eq(invoices.status, status),
    sql`${invoices.updatedAt} < clock_timestamp() - make_interval(secs => ${seconds}::int)`,
  )
}

/** Notes under which id the payment processor has an invoice, before anything is charged. */
export async function noteProcessorId(database: Database, invoiceId: string, stripeInvoiceId: string): Promise<void> {
  await database.run(({ orm }) =>
    orm
      .update(invoices)
      .set({ stripeInvoiceId })
      .where(and(eq(invoices.id, invoiceId), isNull(invoices.stripeInvoiceId))),
  )
}

export type EventOutcome = 'applied' | 'repeated' | 'ignored' | 'mismatch'

/** Takes up what the payment processor says of an invoice. Nothing is taken up that is not as ours says. */
export function applyInvoice(database: Database, seen: SeenInvoice, at: number): Promise<EventOutcome> {
  return database.run(
    ({ orm }) => orm.transaction(async step => (await appliedInvoice(step, seen, at)).outcome),
    workDeadlineMs,
  )
}

/** Whether an event has had its effect already. */
export async function hasEvent(database: Database, eventId: string): Promise<boolean> {
  const rows = await database.run(({ orm }) =>
    orm.select({ id: webhookEvents.id }).from(webhookEvents).where(eq(webhookEvents.id, eventId)).limit(1),
  )
  return rows.length > 0
}

/** Remembers an event and does what it is good for, in one transaction: of any number of its copies one has an effect. */
export function takeEvent(
  database: Database,
  event: SignedEvent,
  effect: Look,
  at: number,
  newId: (prefix: string) => string,
): Promise<EventOutcome> {
  return database.run(
    ({ orm }) =>
      orm.transaction(async step => {
        const { id, type, objectId, occurredAt } = event
        const fresh = await step
          .insert(webhookEvents)
          .values({ id, type, objectId, occurredAt: new Date(occurredAt), receivedAt: new Date(at) })
          .onConflictDoNothing({ target: webhookEvents.id })
          .returning({ id: webhookEvents.id })
        if (fresh.length === 0) return 'repeated'
        const { outcome, accountId } = await applied(step, effect, at, newId)
        if (accountId !== null) await step.update(webhookEvents).set({ accountId }).where(eq(webhookEvents.id, id))
        return outcome
      }),
    workDeadlineMs,
  )
}

type Applied = { readonly outcome: EventOutcome; readonly accountId: string | null }

async function applied(step: Step, effect: Look, at: number, newId: (prefix: string) => string): Promise<Applied> {
  switch (effect.kind) {
    case 'none':
      return { outcome: 'ignored', accountId: null }
    case 'invoice':
      return appliedInvoice(step, effect.seen, at)
    case 'method_gone': {
      const [row] = await step
        .select({ accountId: paymentMethods.accountId })
        .from(paymentMethods)
        .where(eq(paymentMethods.stripePaymentMethodId, effect.stripePaymentMethodId))
      const found = row === undefined ? null : await lockBilling(step, row.accountId)
      if (found?.method?.stripePaymentMethodId !== effect.stripePaymentMethodId)
        return { outcome: 'ignored', accountId: row?.accountId ?? null }
      const change = { event: 'method_removed', at, userId: null, newId } as const
      const outcome = await changed(step, found.account.id, change)
      return { outcome: outcome === 'done' ? 'applied' : 'ignored', accountId: found.account.id }
    }
    default:
      return effect satisfies never
  }
}

async function appliedInvoice(step: Step, seen: SeenInvoice, at: number): Promise<Applied> {
  const nothing = { outcome: 'ignored', accountId: null } as const
  if (seen.invoiceId === null) return nothing
  const [owner] = await step
    .select({ accountId: invoices.accountId })
    .from(invoices)
    .where(eq(invoices.id, seen.invoiceId))
  if (owner === undefined) return nothing
  // The account before its invoices, as everywhere: two who wait for one another would both be refused.
  const { accountId } = owner
  const [account] = await step.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update')
  const [invoice] = await step.select().from(invoices).where(eq(invoices.id, seen.invoiceId)).for('update')
  if (account === undefined || invoice === undefined) return nothing
  const ours = { ...invoice, customerId: account.stripeCustomerId, processorId: invoice.stripeInvoiceId }
  if (mismatch(ours, seen) !== null) return { outcome: 'mismatch', accountId }
  const status = laterStatus(invoice.status, seen.status)
  await step
    .update(invoices)
    .set({
      status,
      stripeInvoiceId: seen.processorId,
      ...(status === 'paid' && invoice.paidAt === null ? { paidAt: new Date(at) } : {}),
    })
    .where(eq(invoices.id, invoice.id))
  if (status === invoice.status) return { outcome: 'applied', accountId }
  const [unpaid] = await step
    .select({ id: invoices.id })
    .from(invoices)
    .where(and(eq(invoices.accountId, accountId), eq(invoices.status, 'unpaid')))
    .limit(1)
  await step
    .update(accounts)
    .set({
      unpaidSince: unpaid === undefined ? null : (account.unpaidSince ?? new Date(at)),
      updatedAt: sql`clock_timestamp()`,
    })
    .where(eq(accounts.id, accountId))
  return { outcome: 'applied', accountId }
}

export type InvoiceWithCycle = { readonly invoice: Invoice; readonly cycle: BillingCycle }

/** An account's invoices, newest first; 1,000 at most, which are 80 years of them. */
export function listInvoices(database: Database, accountId: string): Promise<InvoiceWithCycle[]> {
  return onAccount(database, accountId).orm(step =>
    step
      .select({ invoice: invoices, cycle: billingCycles })
      .from(invoices)
      .innerJoin(billingCycles, eq(billingCycles.id, invoices.cycleId))
      .where(eq(invoices.accountId, accountId))
      .orderBy(desc(billingCycles.startsAt))
      .limit(1000),
  )
}

/** An invoice of the account with its lines; null where it has none of this id. */
export async function findInvoice(
  database: Database,
  accountId: string,
  invoiceId: string,
): Promise<(InvoiceWithCycle & { readonly lines: readonly InvoiceLine[] }) | null> {
  return onAccount(database, accountId).orm(async orm => {
    const [found] = await orm
      .select({ invoice: invoices, cycle: billingCycles })
      .from(invoices)
      .innerJoin(billingCycles, eq(billingCycles.id, invoices.cycleId))
      .where(and(eq(invoices.accountId, accountId), eq(invoices.id, invoiceId)))
      .limit(1)
    return found === undefined ? null : { ...found, lines: await linesOf(orm, invoiceId) }
  })
}

/**
 * Notes that an account's owners are told that they have reached `percent` of their soft cap in a month. Their e-mail
 * addresses where this is the first to say so; else none: of all gateways one writes.
 */
export async function noteMilestone(
  database: Database,
  accountId: string,
  month: string,
  percent: number,
): Promise<readonly string[]> {
  const reached = JSON.stringify(budgetMilestones.filter(one => one <= percent))
  const rows = await database.run(
    ({ sql: query }) => query<{ email: string }[]>`
      with noted as (
        insert into budget_notices (account_id, month, percent, created_at)
        select ${accountId}, ${month}, value::text::int, clock_timestamp() from json_array_elements(${reached}::text::json)
        on conflict do nothing
        returning percent)
      select email from users
      where account_id = ${accountId} and role = 'owner' and removed_at is null
        and exists (select from noted where percent = ${percent})`,
  )
  return rows.map(({ email }) => email)
}

export type BudgetBook = {
  /** How much of its monthly soft cap an account has used, 1 = all; 0 where it has none, or that is not known yet. */
  shareOf(caller: Caller): number
  /** What it is to be told of that; null below the warning. */
  warningOf(caller: Caller): string | null
}

type BudgetLine = {
  readonly month: string
  readonly microcents: number
  refreshAt: number
  /** Of which milestone somebody was told. */
  readonly milestone: number | null
}

const budgetFreshMs = 5_000
const maximumBudgets = 10_000

/**
 * What accounts with a soft cap have spent this month, seconds old: no request waits for it. Who was not seen yet is asked
 * for in the background, and warned from the next look on.
 */
export function createBudgetBook(
  database: Database,
  clock: { now(): number },
  /** Hears of a milestone that was reached, once or more often. */
  reached: (accountId: string, month: string, percent: number, capMicrocents: number) => void = () => {},
): BudgetBook {
  const lines = new Map<string, BudgetLine>()

  const refresh = async (accountId: string, month: string, cap: number) => {
    const microcents = await spentInMonth(database, accountId, month)
    const earlier = lines.get(accountId)
    const milestone = milestoneOf(microcents, cap)
    const told = earlier?.month === month ? earlier.milestone : null
    if (milestone !== null && milestone > (told ?? 0)) reached(accountId, month, milestone, cap)
    lines.delete(accountId)
    lines.set(accountId, { month, microcents, refreshAt: clock.now() + budgetFreshMs, milestone })
    for (const oldest of lines.keys()) {
      if (lines.size <= maximumBudgets) break
      lines.delete(oldest)
    }
  }
  const spent = (accountId: string, cap: number): number => {
    const now = clock.now()
    const month = monthOf(now)
    const known = lines.get(accountId)
    const line = known?.month === month ? known : { month, microcents: 0, refreshAt: 0, milestone: null }
    if (line.refreshAt <= now) {
      line.refreshAt = now + budgetFreshMs
      lines.set(accountId, line)
      refresh(accountId, month, cap).catch(() => {})
    }
    return line.microcents
  }

  return {
    shareOf: ({ accountId, softCapMicrocents }) =>
      softCapMicrocents === undefined ? 0 : shareOf(spent(accountId, softCapMicrocents), softCapMicrocents),
    warningOf: ({ accountId, softCapMicrocents }) =>
      softCapMicrocents === undefined ? null : budgetWarning(spent(accountId, softCapMicrocents), softCapMicrocents),
  }
}
