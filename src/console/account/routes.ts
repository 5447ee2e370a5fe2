/** The account, for its users. */

import { type Static, Type } from '@sinclair/typebox'
import { passwordSchema } from '../../core/accounts/passwords.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import { continuePolicies, fallbackPolicies } from '../../core/chat/chat.ts'
import { highestLimits } from '../../core/limits/plans.ts'
import { autoModel, fullName, maximumNameCharacters, unknownPrices } from '../../core/models/models.ts'
import { constraintsSchema } from '../../core/policy/constraints.ts'
import { type AccountRuleRow, accountRulesSchema, ruleProblems } from '../../core/policy/rules.ts'
import { dayMs, formatDay } from '../../core/text/utc-days.ts'
import { fromUsd, toUsd } from '../../core/usage/money.ts'
import { shadowSchema } from '../../core/usage/shadow.ts'
import { GatewayError, shellCommand } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import { changeAccount, getLimits } from '../../database/repositories/accounts.ts'
import type { Account } from '../../database/tables.ts'
import type { Principal } from '../../http/authentication.ts'
import { nameSchema } from '../../http/schemas.ts'
import { type RulesDeps, resolveModel } from '../../request/routing/under-rules.ts'
import { verifyOwnPassword } from '../auth/passwords.ts'
import { shownAccount, shownLimits } from '../auth/sign-in.ts'
import { changeSettings, findAccount } from '../auth/stores/users.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, forbidden, notFound, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import { type AccountToday, accountTodayShape } from './schemas.ts'
import { deleteAccount } from './store.ts'

const changeSchema = strictObject({
  name: Type.Optional(nameSchema),
  web: Type.Optional(Type.Boolean()),
  hedge: Type.Optional(Type.Boolean()),
  requires_two_factor: Type.Optional(Type.Boolean({ description: 'owners only' })),
  fallback: nullable(oneOf(fallbackPolicies)),
  continue: nullable(oneOf(continuePolicies)),
  baseline_model: nullable(
    Type.String({ minLength: 1, maxLength: maximumNameCharacters, description: 'a model with known prices' }),
  ),
  shadow: nullable(shadowSchema),
  constraints: nullable(constraintsSchema),
  rules: nullable(accountRulesSchema),
  limits: Type.Optional(
    strictObject(
      {
        requests_per_minute: nullable(Type.Integer({ minimum: 0, maximum: highestLimits.count })),
        concurrent_requests: nullable(Type.Integer({ minimum: 0, maximum: highestLimits.count })),
        daily_tokens: nullable(Type.Integer({ minimum: 0, maximum: highestLimits.dailyTokens })),
        daily_cost_usd: nullable(Type.Number({ minimum: 0, maximum: highestLimits.dailyUsd })),
      },
      { description: "owners of the operator's account only; null = the limit of the plan" },
    ),
  ),
})
const deletionSchema = strictObject({
  name: Type.String({ maxLength: 100, description: 'name of the account, as a confirmation' }),
  password: Type.Optional({
    ...passwordSchema,
    description: 'your password, unless you signed in by single sign-on',
  }),
})

type AccountDeps = ConsoleDeps & RulesDeps

/** `GET`, `PATCH` and `DELETE /api/v1/account`. */
export function account(deps: AccountDeps, identify: Authenticate) {
  return sessionRoutes('account', identify, [
    sessionRoute({
      route: 'GET /api/v1/account',
      action: 'account.see',
      summary: 'Get account, plan, limits and daily usage',
      answer: accountTodayShape,
      handle: call => overview(deps, call),
    }),
    sessionRoute({
      route: 'PATCH /api/v1/account',
      action: 'account.change',
      summary:
        'Change the name, web access, hedging, fallback and continuation policy, baseline, shadow evaluation, constraints, rules, required sign-in or limits of the account',
      body: changeSchema,
      answer: accountTodayShape,
      async handle(call) {
        const {
          principal: { accountId, role },
          body,
          database,
        } = call
        const { requires_two_factor: requiresTotp, baseline_model: baseline, limits = {}, ...sent } = body
        const hasLimits = Object.keys(limits).length > 0
        if (requiresTotp !== undefined && !isAllowed(role, 'account.secure')) throw forbidden()
        refuseRules(deps, sent.rules ?? [])
        if (sent.shadow != null && deps.config.routing.judgeModel === null) throw invalidField('shadow', missingJudge)
        const settings = {
          ...sent,
          ...(requiresTotp === undefined ? {} : { requiresTotp }),
          ...(baseline === undefined ? {} : { baselineModel: pricedModel(deps, 'baseline_model', baseline) }),
        }
        const isUnchanged = Object.keys(settings).length === 0
        if (isUnchanged && !hasLimits) throw invalidField('name', 'is required unless another setting is sent')
        if (hasLimits) await changeLimits(call, limits)
        if (!isUnchanged) await changeSettings(database, accountId, settings)
        deps.announce()
        return overview(deps, call)
      },
    }),
    sessionRoute({
      route: 'DELETE /api/v1/account',
      action: 'account.delete',
      summary: 'Delete the account with its users, keys and all personal data',
      description:
        'Ends all keys and sessions within 1 s. A running billing cycle ends now, and its invoice follows. Usage and invoices stay under IDs, without names. This cannot be undone.',
      body: deletionSchema,
      answer: null,
      errors: ['invalid_credentials', 'not_found'],
      handle: call => remove(deps, call),
    }),
  ])
}

const missingJudge =
  'needs a judge, and this gateway has none: the operator names its model as `routing.judge_model` in GATEWAY_CONFIG'

/** Returns the full name of a model with known prices; null stays null. Throws `invalid_request`. */
function pricedModel({ catalog }: Pick<ConsoleDeps, 'catalog'>, param: string, name: string | null): string | null {
  const model = name === null ? null : catalog.resolve(name)
  if (name !== null && (model === null || model.pricingSource === unknownPrices))
    throw invalidField(param, 'must be a model of this gateway with known prices')
  return model && fullName(model)
}

/** Changes the limits of the account. Throws 403 for accounts whose limits the operator decides. */
async function changeLimits(
  { principal, database }: SessionRequest,
  limits: NonNullable<Static<typeof changeSchema>['limits']>,
): Promise<void> {
  const account = await findAccount(database, principal.accountId)
  if (account === null) throw notFound()
  if (!mayChangeLimits(principal, account)) throw notOperator()
  const { requests_per_minute, concurrent_requests, daily_tokens, daily_cost_usd: usd } = limits
  const change = {
    ...{ requestsPerMinute: requests_per_minute, concurrentRequests: concurrent_requests, dailyTokens: daily_tokens },
    dailyCostMicrocents: usd == null ? usd : fromUsd(usd),
  }
  await changeAccount(database, account.id, change)
}

/** Throws `invalid_request` for rules that cannot act. */
function refuseRules(deps: RulesDeps, rules: readonly AccountRuleRow[]): void {
  const isModel = (name: string) => name.toLowerCase() === autoModel || resolveModel(deps, name) !== null
  const [problem] = ruleProblems(rules, isModel)
  if (problem !== undefined) throw invalidField('rules', `are not valid: ${problem}`)
}

/** A management key has no scope for it, whatever the role of its owner. */
const mayChangeLimits = (
  { role, managementKey }: Pick<Principal, 'role' | 'managementKey'>,
  account: Pick<Account, 'isOperator'>,
) => managementKey === null && account.isOperator && isAllowed(role, 'account.secure')

const notOperator = () =>
  new GatewayError(
    'forbidden',
    `The operator of this gateway decides the limits of your account: \`${shellCommand('accounts limits <email>')}\`. Owners of the operator's account change their own.`,
    { shouldRetry: false },
  )

async function remove(deps: ConsoleDeps, call: SessionRequest<typeof deletionSchema>) {
  const { principal, body, database } = call
  const { name, password } = body
  const { accountId } = principal
  const account = await findAccount(database, accountId)
  if (account === null) throw notFound()
  if (name !== account.name) throw invalidField('name', 'must be the name of the account, to confirm its deletion')
  // A stolen session must not be enough. A user of single sign-on knows no password.
  if (password !== undefined) await verifyOwnPassword(deps, call, password)
  else if (!principal.isSingleSignOn) throw invalidField('password', 'is required to delete the account')
  if (!(await deleteAccount(database, accountId, { at: deps.clock.now(), newId: deps.newId }))) throw notFound()
  deps.announce()
  // The hourly sweep repeats it.
  await deps.forgetCounters(accountId).catch(() => deps.log.warn('limit_counters_kept'))
  return null
}

async function overview(
  { config, clock, spent, meter }: ConsoleDeps,
  { principal, database }: SessionRequest,
): Promise<AccountToday> {
  const { accountId } = principal
  const day = formatDay(clock.now())
  const [row, used] = await Promise.all([findAccount(database, accountId), spent(accountId, day)])
  if (row === null) throw notFound()
  const limits = getLimits(row, config.plans)
  const quotaStatus = meter.quotaStatus(accountId, limits)
  return {
    ...shownAccount(row, limits),
    own_limits: shownLimits(row),
    rules: row.rules ?? [],
    may_change_limits: mayChangeLimits(principal, row),
    today: {
      tokens: used.tokens,
      cost_usd: toUsd(used.microcents),
      remaining_tokens: Math.max(0, limits.dailyTokens - used.tokens),
      remaining_cost_usd: toUsd(Math.max(0, limits.dailyCostMicrocents - used.microcents)),
      resets_at: new Date((day + 1) * dayMs).toISOString(),
    },
    now: quotaStatus && {
      requests_last_minute: quotaStatus.requests.limit - quotaStatus.requests.remaining,
      seats_taken: quotaStatus.reservations.limit - quotaStatus.reservations.remaining,
    },
  }
}
