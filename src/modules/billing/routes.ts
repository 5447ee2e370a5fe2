/** Plan, payment method, soft cap and invoices: the owner's own. */
import { Type } from '@sinclair/typebox'
import { monthOf } from '../../core/billing.ts'
import { GatewayError } from '../../core/errors.ts'
import { fromUsd } from '../../core/money.ts'
import { checker, nullable } from '../../core/validate.ts'
import type { Deps } from '../../deps.ts'
import { doOnce, onceErrors, onceHeaders } from '../../http/idempotency.ts'
import {
  type Call,
  type Identify,
  notFound,
  readInput,
  reply,
  replyNothing,
  sessionRoutes,
} from '../../http/session-routes.ts'
import type { BillingAccount, BillingOutcome, NewMethod } from '../../stores/billing.ts'
import { billingShape, invoiceListShape, invoiceWithLinesShape } from './shapes.ts'
import { shownBilling, shownInvoice, shownLine } from './shown.ts'

export type BillingDeps = Pick<
  Deps,
  | 'config'
  | 'database'
  | 'stores'
  | 'clock'
  | 'newId'
  | 'payments'
  | 'log'
  | 'idempotency'
  | 'newRequestId'
  | 'secretOf'
  | 'announce'
>

const strict = { additionalProperties: false } as const
const versionSchema = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, description: 'the plan version that this was decided on' }),
)
const upgradeSchema = Type.Object(
  { confirm: Type.Literal(true, { description: '`true`' }), version: versionSchema },
  strict,
)
const downgradeSchema = Type.Object(
  { confirm: Type.Optional(Type.Literal(true, { description: '`true`' })), version: versionSchema },
  strict,
)
const methodSchema = Type.Object(
  { payment_method: nullable(Type.String({ pattern: '^[a-zA-Z]+_\\w{1,200}$', maxLength: 255 })) },
  strict,
)
const maximumCapUsd = 1_000_000
const softCapSchema = Type.Object(
  { monthly_usd: Type.Union([Type.Number({ minimum: 0, maximum: maximumCapUsd }), Type.Null()]) },
  strict,
)
const checkUpgrade = checker(upgradeSchema)
const checkDowngrade = checker(downgradeSchema)
const checkMethod = checker(methodSchema)
const checkSoftCap = checker(softCapSchema)

/** The routes under `/api/v1/billing` but the webhooks. */
export function billing(deps: BillingDeps, identify: Identify) {
  return sessionRoutes('billing', identify, [
    {
      method: 'GET',
      path: '/api/v1/billing',
      action: 'billing.see',
      summary: 'Plan, cycle, payment method and soft cap',
      answer: billingShape,
      handle: ({ principal }) => overview(deps, principal.accountId),
    },
    {
      method: 'POST',
      path: '/api/v1/billing/upgrade',
      action: 'billing.change',
      summary: 'Change to the plan `usage`: charges begin at once',
      description: 'Where no payment processor is set up, saying yes is the agreement itself.',
      body: upgradeSchema,
      examples: { yes: { confirm: true } },
      answer: billingShape,
      requestHeaders: onceHeaders,
      errors: ['payment_required', 'not_found', ...onceErrors],
      handle: call => doOnce(deps, call, async once => ({ answer: await upgrade(deps, once), resultId: null })),
    },
    {
      method: 'POST',
      path: '/api/v1/billing/downgrade',
      action: 'billing.change',
      summary: 'Change to the plan `evaluation` when the cycle ends',
      body: downgradeSchema,
      bodyRequired: false,
      examples: { yes: { confirm: true } },
      answer: billingShape,
      requestHeaders: onceHeaders,
      errors: ['payment_required', 'not_found', ...onceErrors],
      handle: call => doOnce(deps, call, async once => ({ answer: await downgrade(deps, once), resultId: null })),
    },
    {
      method: 'PUT',
      path: '/api/v1/billing/payment-method',
      action: 'billing.change',
      summary: 'Set the payment method',
      description: 'The manual method needs no body; with Stripe, `payment_method` is the id that its form gave.',
      body: methodSchema,
      bodyRequired: false,
      examples: { 'the manual method': {} },
      answer: billingShape,
      errors: ['payment_required', 'not_found', 'conflict'],
      handle: call => setMethod(deps, call),
    },
    {
      method: 'DELETE',
      path: '/api/v1/billing/payment-method',
      action: 'billing.change',
      summary: 'Remove the payment method: an hour later chat answers 402',
      answer: null,
      errors: ['not_found', 'conflict'],
      handle: call => removeMethod(deps, call),
    },
    {
      method: 'PUT',
      path: '/api/v1/billing/soft-cap',
      action: 'billing.change',
      summary: 'Set the monthly soft cap, or take it away',
      description:
        'It blocks nothing: from 80 % of it answers carry `x-gateway-budget-warning`, and auto-routing saves.',
      body: softCapSchema,
      examples: { 'twenty dollars a month': { monthly_usd: 20 }, none: { monthly_usd: null } },
      answer: billingShape,
      errors: ['not_found'],
      async handle({ principal: { accountId }, request }) {
        const { monthly_usd: usd } = await readInput(request, checkSoftCap)
        await deps.stores.billing.setSoftCap(deps.database, accountId, usd === null ? null : fromUsd(usd))
        deps.announce()
        return overview(deps, accountId)
      },
    },
    {
      method: 'GET',
      path: '/api/v1/billing/invoices',
      action: 'billing.see',
      summary: 'Invoices, newest first',
      answer: invoiceListShape,
      async handle({ principal }) {
        const found = await deps.stores.invoices.listInvoices(deps.database, principal.accountId)
        return reply({ data: found.map(shownInvoice) })
      },
    },
    {
      method: 'GET',
      path: '/api/v1/billing/invoices/:id',
      action: 'billing.see',
      summary: 'An invoice, with a line per model',
      answer: invoiceWithLinesShape,
      async handle({ principal, params }) {
        const found = await deps.stores.invoices.findInvoice(deps.database, principal.accountId, params.id ?? '')
        if (found === null) throw notFound()
        return reply({ ...shownInvoice(found), lines: found.lines.map(shownLine) })
      },
    },
  ])
}

async function overview(
  { config, database, stores, clock, payments }: BillingDeps,
  accountId: string,
): Promise<Response> {
  const found = await known(stores.billing.findBilling(database, accountId))
  const { cycle } = stores.billing.stateOf(found)
  const now = clock.now()
  const [cycleMicrocents, monthMicrocents] = await Promise.all([
    cycle === null ? 0 : stores.invoices.spentInCycle(database, accountId, cycle),
    stores.budgets.spentInMonth(database, accountId, monthOf(now)),
  ])
  return reply(shownBilling(found, config.plans, payments.kind, { cycleMicrocents, monthMicrocents }, now))
}

async function upgrade(deps: BillingDeps, { principal, request }: Call): Promise<Response> {
  const { version } = await readInput(request, checkUpgrade)
  // Where nobody else collects, saying yes to charges is the agreement itself.
  const agreed = {
    id: deps.newId('pay'),
    kind: 'manual',
    stripePaymentMethodId: null,
    brand: null,
    lastFour: null,
  } as const
  const change = { event: 'upgrade', version, ...(deps.payments.kind === 'manual' ? { method: agreed } : {}) } as const
  return changePlan(deps, principal, change, 'Your account is on the plan `usage` already.')
}

async function downgrade(deps: BillingDeps, { principal, request }: Call): Promise<Response> {
  const { version } = await readInput(request, checkDowngrade)
  const change = { event: 'downgrade', version } as const
  const alreadySo = 'Your account is on the plan `evaluation` already, or will be when the cycle ends.'
  return changePlan(deps, principal, change, alreadySo)
}

type PlanChange = {
  readonly event: 'upgrade' | 'downgrade'
  /** Undefined = decided on the one that is there now. */
  readonly version: number | undefined
  readonly method?: NewMethod
}

async function changePlan(
  deps: BillingDeps,
  { accountId, userId }: Call['principal'],
  change: PlanChange,
  alreadySo: string,
): Promise<Response> {
  const { database, stores, clock, newId } = deps
  const { account } = await known(stores.billing.findBilling(database, accountId))
  const version = change.version ?? account.version
  const at = clock.now()
  orRefuse(
    await stores.billing.changeBilling(database, accountId, { ...change, version, at, userId, newId }),
    alreadySo,
  )
  deps.announce()
  return overview(deps, accountId)
}

async function setMethod(deps: BillingDeps, { principal, request }: Call): Promise<Response> {
  const { accountId, userId, email } = principal
  const { payment_method: methodId = null } = await readInput(request, checkMethod)
  const { database, stores, clock, newId, payments } = deps
  const { account, method: old } = await known(stores.billing.findBilling(database, accountId))
  const customerId =
    payments.kind === 'stripe' && methodId === null
      ? null
      : await payments.customer(accountId, email, account.stripeCustomerId)
  const added = await payments.addMethod(customerId, methodId)
  const outcome = await stores.billing.changeBilling(database, accountId, {
    event: 'method_added',
    at: clock.now(),
    userId,
    newId,
    method: { ...added, id: newId('pay') },
    ...(customerId === null ? {} : { customerId }),
  })
  orRefuse(outcome, 'This is your payment method already.')
  deps.announce()
  const oldId = old?.stripePaymentMethodId ?? null
  if (oldId !== null && oldId !== added.stripePaymentMethodId) await detach(deps, oldId)
  return overview(deps, accountId)
}

async function removeMethod(deps: BillingDeps, { principal }: Call): Promise<Response> {
  const { accountId, userId } = principal
  const { database, stores, clock, newId } = deps
  const { method } = await known(stores.billing.findBilling(database, accountId))
  if (method === null) throw notFound()
  const outcome = await stores.billing.changeBilling(database, accountId, {
    event: 'method_removed',
    at: clock.now(),
    userId,
    newId,
  })
  if (outcome === 'payment_method_missing') throw notFound()
  orRefuse(outcome, 'Your account has no payment method.')
  deps.announce()
  if (method.stripePaymentMethodId !== null) await detach(deps, method.stripePaymentMethodId)
  return replyNothing()
}

/** The account has let go of it already: where the processor cannot be reached, it only keeps what nobody will charge. */
async function detach({ payments, log }: BillingDeps, methodId: string): Promise<void> {
  try {
    await payments.removeMethod(methodId)
  } catch {
    log.warn('payment_method_not_detached')
  }
}

async function known(found: Promise<BillingAccount | null>): Promise<BillingAccount> {
  const account = await found
  if (account === null) throw notFound()
  return account
}

function orRefuse(outcome: BillingOutcome, alreadySo: string): void {
  switch (outcome) {
    case 'done':
      return
    case 'not_found':
      throw notFound()
    case 'already_so':
      throw new GatewayError('conflict', alreadySo)
    case 'conflict':
      throw new GatewayError(
        'conflict',
        'The plan has changed meanwhile. Look at GET /api/v1/billing, then decide again.',
      )
    case 'taken':
      throw new GatewayError(
        'conflict',
        'This payment method is another account’s, or was given up before. Choose another.',
      )
    case 'payment_method_missing':
      throw new GatewayError('payment_required', 'Add a payment method first: PUT /api/v1/billing/payment-method.')
    default:
      outcome satisfies never
  }
}
