/** Plan, payment method, soft cap and invoices, for the owner. */

import { Type } from '@sinclair/typebox'
import { budgetPeriod } from '../../core/billing/grace.ts'
import { fromUsd } from '../../core/usage/money.ts'
import { GatewayError, shellCommand } from '../../core/validation/errors.ts'
import { nullable, strictObject } from '../../core/validation/validate.ts'
import type { ConsoleDeps } from '../deps.ts'
import {
  type Authenticate,
  emptyBody,
  notFound,
  refuseUnlessDone,
  type SessionRequest,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import { detachCard, enterCard, openSetup } from './cards.ts'
import { invoiceRoutes } from './invoice-routes.ts'
import { billingShape, pageShape } from './schemas.ts'
import { shownBilling } from './serializers.ts'
import type { BillingAccount, BillingOutcome, NewMethod } from './stores/billing.ts'
import { changeBilling, findBilling, getState, manualMethod, setSoftCap } from './stores/billing.ts'
import { toDues } from './stores/billing-notices.ts'
import { spentInCycle } from './stores/invoices.ts'

const versionSchema = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, description: '`plan_version` that this change is based on' }),
)
const upgradeSchema = strictObject({ confirm: Type.Literal(true, { description: '`true`' }), version: versionSchema })
const downgradeSchema = strictObject({
  confirm: Type.Optional(Type.Literal(true, { description: '`true`' })),
  version: versionSchema,
})
const methodSchema = strictObject({
  setup_session: nullable(
    Type.String({
      pattern: '^cs_\\w{1,250}$',
      maxLength: 255,
      description: 'with Stripe: the ID that its page for cards returned to the dashboard',
    }),
  ),
  payment_method: nullable(
    Type.String({ maxLength: 255, description: 'never accepted: a card cannot be set by its ID' }),
  ),
})
const maximumCapUsd = 1_000_000
const softCapSchema = strictObject({
  monthly_usd: Type.Union([Type.Number({ minimum: 0, maximum: maximumCapUsd }), Type.Null()]),
})

/** Routes under `/api/v1/billing` except the webhooks. */
export function billing(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('billing', identify, [
    sessionRoute({
      route: 'GET /api/v1/billing',
      action: 'billing.see',
      summary: 'Get plan, cycle, payment method and soft cap',
      answer: billingShape,
      handle: ({ principal }) => overview(deps, principal.accountId),
    }),
    sessionRoute({
      route: 'POST /api/v1/billing/upgrade',
      action: 'billing.change',
      summary: 'Change to the plan `usage`; billing starts immediately',
      description:
        'Without a payment processor the operator upgrades accounts, and the response is 403 with the operator’s command, unless `OWNER_UPGRADES=allow` is set. It then agrees to manual invoicing. Canceling a downgrade needs a payment method or an earlier agreement.',
      body: upgradeSchema,
      answer: billingShape,
      once: deps,
      errors: ['payment_required', 'not_found'],
      handle: call => upgrade(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/billing/downgrade',
      action: 'billing.change',
      summary: 'Change to the plan `evaluation` when the cycle ends',
      body: downgradeSchema,
      bodyRequired: false,
      answer: billingShape,
      once: deps,
      errors: ['payment_required', 'not_found'],
      handle: call => downgrade(deps, call),
    }),
    sessionRoute({
      route: 'PUT /api/v1/billing/payment-method',
      action: 'billing.change',
      summary: 'Set the payment method',
      description:
        'The owner enters a card on Stripe’s page (`POST …/payment-method/setup`); this request then sets the card without waiting for Stripe’s event. 404 if no payment processor is configured.',
      body: methodSchema,
      answer: billingShape,
      errors: ['payment_required', 'not_found', 'conflict'],
      handle: call => setMethod(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/billing/payment-method/setup',
      action: 'billing.change',
      summary: 'Create a page for entering a card',
      description: 'Send the browser to `url`. 404 if no payment processor is configured.',
      ...emptyBody,
      answer: pageShape,
      errors: ['not_found'],
      handle: async ({ principal }) => ({ url: await openSetup(deps, principal) }),
    }),
    sessionRoute({
      route: 'DELETE /api/v1/billing/payment-method',
      action: 'billing.change',
      summary: 'Remove the card; on plan `usage` chat responds 402 after 1 hour',
      description: 'Has no effect if the account has no card, or if no payment processor is configured.',
      answer: null,
      errors: ['not_found', 'conflict'],
      handle: call => removeMethod(deps, call),
    }),
    sessionRoute({
      route: 'PUT /api/v1/billing/soft-cap',
      action: 'billing.change',
      summary: 'Set or remove the monthly soft cap',
      description:
        'Blocks no request: from 80% responses have `x-gateway-budget-warning`, and automatic routing prefers cheaper models. Counted per billing cycle if usage is billed, otherwise per UTC calendar month.',
      body: softCapSchema,
      answer: billingShape,
      errors: ['not_found'],
      async handle({ principal: { accountId }, body: { monthly_usd: usd }, database }) {
        await setSoftCap(database, accountId, usd === null ? null : fromUsd(usd), deps.newId)
        deps.announce()
        return overview(deps, accountId)
      },
    }),
    ...invoiceRoutes(deps),
  ])
}

async function overview({ config, database, clock, payments }: ConsoleDeps, accountId: string) {
  const found = await known(findBilling(database, accountId))
  const { cycle } = getState(found)
  const isOwnersChoice = payments.kind === 'stripe' || config.ownerUpgrades
  const now = clock.now()
  const period = budgetPeriod(cycle?.startsAt ?? null, now)
  const periodMicrocents = await spentInCycle(database, accountId, period)
  const isRunning = cycle?.startsAt === period.startsAt
  const cycleMicrocents =
    cycle === null || isRunning ? periodMicrocents : await spentInCycle(database, accountId, cycle)
  const spent = { cycleMicrocents, period, periodMicrocents }
  const dues = toDues(found.account)
  const view = { plans: config.plans, collectedBy: payments.kind, isOwnersChoice, dues, spent, now }
  return shownBilling(found, view)
}

async function upgrade(deps: ConsoleDeps, call: SessionRequest<typeof upgradeSchema>) {
  const { version } = call.body
  if (deps.payments.kind === 'manual' && !deps.config.ownerUpgrades)
    await refuseUnlessOnUsage(deps, call.principal.accountId)
  // Without a payment processor, the owner's consent to charges is the payment agreement.
  const agreed = deps.payments.kind === 'manual' ? { method: manualMethod(deps.newId) } : {}
  const change = { event: 'upgrade', version, ...agreed } as const
  return changePlan(deps, call, change, 'Your account is already on the plan `usage`.')
}

/**
 * Without a payment processor there is no security for a payment, so the operator decides which accounts use `usage`
 * (`OWNER_UPGRADES`). Throws `forbidden` for any other account: also for one whose last cycle on `usage` has ended, and for one
 * without a payment method, because an upgrade would end its grace period by an agreement to manual invoicing.
 */
async function refuseUnlessOnUsage({ database, clock }: ConsoleDeps, accountId: string): Promise<void> {
  const { account, method } = await known(findBilling(database, accountId))
  const { plan, planAfterCycle, cycleEndsAt } = account
  const hasEnded = planAfterCycle === 'evaluation' && cycleEndsAt !== null && cycleEndsAt.getTime() <= clock.now()
  if (plan === 'usage' && !hasEnded && method !== null) return
  throw new GatewayError(
    'forbidden',
    `This gateway has no payment processor, so its operator upgrades accounts: \`${shellCommand('accounts plan <email> usage')}\`.`,
    { shouldRetry: false },
  )
}

async function downgrade(deps: ConsoleDeps, call: SessionRequest<typeof downgradeSchema>) {
  const { version } = call.body
  const change = { event: 'downgrade', version } as const
  const alreadySo = 'Your account is already on the plan `evaluation`, or changes to it at the end of the cycle.'
  return changePlan(deps, call, change, alreadySo)
}

type PlanChange = {
  readonly event: 'upgrade' | 'downgrade'
  /** Undefined = based on the current version. */
  readonly version: number | undefined
  readonly method?: NewMethod
}

async function changePlan(
  deps: ConsoleDeps,
  { principal: { accountId, userId }, database }: SessionRequest,
  change: PlanChange,
  alreadySo: string,
) {
  const { clock, newId } = deps
  const { account } = await known(findBilling(database, accountId))
  const version = change.version ?? account.version
  const at = clock.now()
  refuseOutcome(await changeBilling(database, accountId, { ...change, version, at, userId, newId }), alreadySo)
  deps.announce()
  return overview(deps, accountId)
}

async function setMethod(deps: ConsoleDeps, { principal, body, database }: SessionRequest<typeof methodSchema>) {
  await enterCard({ ...deps, database }, principal, body)
  return overview(deps, principal.accountId)
}

/**
 * Removes a card. The agreement to manual invoicing is the operator's, and no card is needed where the gateway collects
 * nothing: removing either would only block the account after the grace period.
 */
async function removeMethod(deps: ConsoleDeps, { principal, database }: SessionRequest): Promise<null> {
  const { accountId, userId } = principal
  const { clock, newId, payments } = deps
  const { method } = await known(findBilling(database, accountId))
  const cardId = payments.cards === null ? null : (method?.stripePaymentMethodId ?? null)
  if (cardId === null) return null
  const outcome = await changeBilling(database, accountId, { event: 'method_removed', at: clock.now(), userId, newId })
  // A concurrent request removed it first.
  if (outcome === 'payment_method_missing') return null
  refuseOutcome(outcome, 'Your account has no payment method.')
  deps.announce()
  await detachCard(deps, cardId)
  return null
}

async function known(found: Promise<BillingAccount | null>): Promise<BillingAccount> {
  const account = await found
  if (account === null) throw notFound()
  return account
}

function refuseOutcome(outcome: BillingOutcome, alreadySo: string): void {
  if (outcome === 'payment_method_missing')
    throw new GatewayError(
      'payment_required',
      'Add a payment method first: POST /api/v1/billing/payment-method/setup opens the page for cards.',
    )
  refuseUnlessDone(outcome, {
    already_so: alreadySo,
    conflict: 'The plan changed since you read it. Read GET /api/v1/billing and retry.',
    taken: 'This payment method belongs to another account or was removed. Choose another.',
  })
}
