/** The account, for its users. */
import { Type } from '@sinclair/typebox'
import { passwordSchema } from '../../core/accounts/passwords.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import { actingAs } from '../../core/audit/audit.ts'
import { fallbackPolicies } from '../../core/chat/chat.ts'
import type { Plans } from '../../core/limits/plans.ts'
import type { Clock } from '../../core/ports.ts'
import { dayMs, formatDay } from '../../core/text/utc-days.ts'
import { toUsd } from '../../core/usage/money.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import { getLimits } from '../../database/repositories/accounts.ts'
import { nameSchema } from '../../http/schemas.ts'
import {
  type Authenticate,
  forbidden,
  notFound,
  readInput,
  reply,
  replyNoContent,
  type SessionRequest,
  sessionRoutes,
} from '../../http/session-routes.ts'
import type { Meter } from '../../limits/meter.ts'
import { type OwnPasswordDeps, verifyOwnPassword } from '../auth/passwords.ts'
import { shownAccount } from '../auth/sign-in.ts'
import { changeSettings, findAccount } from '../auth/stores/users.ts'
import { type AccountToday, accountTodayShape } from './schemas.ts'
import { deleteAccount } from './store.ts'

type AccountDeps = OwnPasswordDeps & {
  readonly config: { readonly plans: Plans }
  readonly newId: (prefix: string) => string
  readonly forgetCounters: (accountId: string) => Promise<void>
  readonly clock: Pick<Clock, 'now'>
  /** Returns the daily usage of an account on a UTC day (days since the epoch), unshipped records included. */
  readonly spent: (accountId: string, day: number) => Promise<DailyUsage>
  readonly meter: Pick<Meter, 'quotaStatus'>
  readonly announce: () => void
}

const changeSchema = strictObject({
  name: Type.Optional(nameSchema),
  web: Type.Optional(Type.Boolean()),
  hedge: Type.Optional(Type.Boolean()),
  requires_two_factor: Type.Optional(Type.Boolean({ description: 'owners only' })),
  fallback: nullable(oneOf(fallbackPolicies)),
})
const deletionSchema = strictObject({
  name: Type.String({ maxLength: 100, description: 'name of the account, as a confirmation' }),
  password: Type.Optional({
    ...passwordSchema,
    description: 'your password, unless you signed in by single sign-on',
  }),
})

/** `GET`, `PATCH` and `DELETE /api/v1/account`. */
export function account(deps: AccountDeps, identify: Authenticate) {
  return sessionRoutes('account', identify, [
    {
      method: 'GET',
      path: '/api/v1/account',
      action: 'account.see',
      summary: 'Get account, plan, limits and daily usage',
      answer: accountTodayShape,
      handle: async ({ principal }) => reply(await overview(deps, principal.accountId)),
    },
    {
      method: 'PATCH',
      path: '/api/v1/account',
      action: 'account.change',
      summary: 'Change the name, web access, hedging, the fallback policy or the required sign-in of the account',
      body: changeSchema,
      examples: {
        'new name': { name: 'Difference Engines' },
        'web access off': { web: false },
        'hedging on': { hedge: true },
        'two-factor sign-in optional': { requires_two_factor: false },
        'the named model only': { fallback: 'same_model' },
      },
      answer: accountTodayShape,
      async handle({ principal: { accountId, role }, request, actor }) {
        const { requires_two_factor: requiresTotp, ...sent } = await readInput(request, changeSchema)
        if (requiresTotp !== undefined && !isAllowed(role, 'account.secure')) throw forbidden()
        const settings = { ...sent, ...(requiresTotp === undefined ? {} : { requiresTotp }) }
        if (Object.keys(settings).length === 0) throw invalidField('name', 'is required unless another setting is sent')
        await changeSettings(actingAs(deps.database, actor), accountId, settings)
        deps.announce()
        return reply(await overview(deps, accountId))
      },
    },
    {
      method: 'DELETE',
      path: '/api/v1/account',
      action: 'account.delete',
      summary: 'Delete the account with its users, keys and all personal data',
      description:
        'Ends all keys and sessions within 1 s. A running billing cycle ends now, and its invoice follows. Usage and invoices stay under IDs, without names. This cannot be undone.',
      body: deletionSchema,
      examples: { confirmed: { name: 'Analytical Engines', password: 'correct horse battery' } },
      answer: null,
      errors: ['invalid_credentials', 'not_found'],
      handle: call => remove(deps, call),
    },
  ])
}

async function remove(deps: AccountDeps, { principal, request, actor }: SessionRequest): Promise<Response> {
  const { name, password } = await readInput(request, deletionSchema)
  const { database, clock, newId } = deps
  const { accountId } = principal
  const account = await findAccount(database, accountId)
  if (account === null) throw notFound()
  if (name !== account.name) throw invalidField('name', 'must be the name of the account, to confirm its deletion')
  // A stolen session must not be enough. A user of single sign-on knows no password.
  if (password !== undefined) await verifyOwnPassword(deps, { principal, actor }, password)
  else if (!principal.isSingleSignOn) throw invalidField('password', 'is required to delete the account')
  if (!(await deleteAccount(actingAs(database, actor), accountId, { at: clock.now(), newId }))) throw notFound()
  deps.announce()
  // The hourly sweep repeats it.
  await deps.forgetCounters(accountId).catch(() => deps.log.warn('limit_counters_kept'))
  return replyNoContent()
}

async function overview(
  { config, database, clock, spent, meter }: AccountDeps,
  accountId: string,
): Promise<AccountToday> {
  const day = formatDay(clock.now())
  const [row, used] = await Promise.all([findAccount(database, accountId), spent(accountId, day)])
  if (row === null) throw notFound()
  const limits = getLimits(row, config.plans)
  const quotaStatus = meter.quotaStatus(accountId, limits)
  return {
    ...shownAccount(row, limits),
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
