/** `accounts …`: manages accounts and their limits. */
import { randomBytes } from 'node:crypto'
import { getMaximumShortfall, readConfig, readPlans } from '../config/config.ts'
import { createPasswords } from '../console/auth/password-hashing.ts'
import { shownLimits } from '../console/auth/sign-in.ts'
import { releaseUnverified } from '../console/auth/stores/email-links.ts'
import { changePassword, findUser } from '../console/auth/stores/users.ts'
import { removeTotp } from '../console/auth/totp.ts'
import { changeBilling, manualMethod } from '../console/billing/stores/billing.ts'
import type { ShadowReport } from '../console/insights/schemas.ts'
import { readShadow } from '../console/insights/store.ts'
import { listKeys, resumeKeys } from '../console/keys/stores/keys.ts'
import { findOperatorAccount, moveOperator } from '../console/provider-keys/store.ts'
import { randomBase62 } from '../core/accounts/api-keys.ts'
import {
  findPause,
  highestLimits,
  type Limits,
  limitsText,
  type PlanName,
  plans as publishedPlans,
} from '../core/limits/plans.ts'
import { formatDay } from '../core/text/utc-days.ts'
import { fromUsd, shownUsd, toUsd } from '../core/usage/money.ts'
import { shellCommand } from '../core/validation/errors.ts'
import type { Database } from '../database/database.ts'
import {
  type AccountChange,
  changeAccount,
  createAccount,
  findAccountByEmail,
  getLimits,
  listAccounts,
} from '../database/repositories/accounts.ts'
import type { Account, ApiKey } from '../database/tables.ts'
import { getDailyUsage } from '../ledger/ledger.ts'
import {
  CommandFailure,
  choice,
  columns,
  command,
  json,
  newId,
  print,
  printJson,
  printTable,
  UsageError,
} from './command.ts'
import { withAccount, withDatabase } from './open-database.ts'

const email = '<email>'
const planNames = Object.keys(publishedPlans) as PlanName[]

const create = command({
  name: 'accounts create',
  about: 'Create an account with an owner; prints the password once',
  operands: { email },
  options: {
    plan: { type: 'string', value: planNames.join('|'), about: 'default: evaluation' },
    json,
  },
  async run({ operands, options }) {
    const address = mailAddress(operands.email)
    const plan = choice('--plan', options.plan ?? 'evaluation', planNames)
    const password = randomBase62(20, randomBytes)
    const createdAt = new Date()
    const account = { id: newId('acc'), name: address, plan: 'evaluation', createdAt } as const
    const owner = {
      id: newId('usr'),
      accountId: account.id,
      email: address,
      passwordHash: await createPasswords().hash(password, null),
      role: 'owner',
      createdAt,
    } as const
    await withDatabase(
      async database => {
        // An unconfirmed registration must not block the operator.
        await releaseUnverified(database, address)
        const found = await findAccountByEmail(database, address)
        if (found !== null && found.account.id !== account.id)
          throw new CommandFailure(`${address} already has an account: accounts show ${address}`)
        // The first account of the command line; one of a registration never is.
        const isOperator = (await findOperatorAccount(database)) === null
        await createAccount(database, { ...account, isOperator }, owner)
        if (plan === 'usage') await movePlan(database, account.id, plan)
      },
      { mayBegin: true },
    )
    if (options.json)
      return printJson({
        id: account.id,
        email: address,
        plan,
        limits: shownLimits(readPlans()[plan]),
        created_at: createdAt.toISOString(),
        user_id: owner.id,
        password,
      })
    print(
      ...columns([
        ['account', account.id],
        ['email', address],
        ['plan', plan],
        ['password', `${password}  (shown once)`],
      ]),
      '',
      `Create an API key:  ${shellCommand(`keys create ${address}`)}`,
    )
  },
})

const list = command({
  name: 'accounts list',
  about: 'List all accounts, oldest first',
  operands: {},
  options: { json },
  run: ({ options }) =>
    withDatabase(async database => {
      const plans = readPlans()
      const listed = await listAccounts(database)
      if (options.json)
        return printJson({
          data: listed.map(({ account, email, members }) => ({
            id: account.id,
            email,
            plan: account.plan,
            members,
            requests_per_minute: getLimits(account, plans).requestsPerMinute,
            created_at: account.createdAt.toISOString(),
          })),
        })
      if (listed.length === 0)
        return print(`No accounts. Create one:  ${shellCommand('accounts create you@example.com')}`)
      printTable([
        ['ID', 'OWNER', 'PLAN', 'MEMBERS', 'RPM', 'CREATED'],
        ...listed.map(({ account, email, members }) => [
          account.id,
          email,
          account.plan,
          String(members),
          String(getLimits(account, plans).requestsPerMinute),
          account.createdAt.toISOString().slice(0, 10),
        ]),
      ])
    }),
})

const show = command({
  name: 'accounts show',
  about: 'Show an account: plan, limits, what it used today (UTC), keys',
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account, user }) => {
      const plans = readPlans()
      const limits = getLimits(account, plans)
      const today = await getDailyUsage(database, account.id, formatDay(Date.now()))
      const keys = await listKeys(database, account.id)
      const paused = await pausedKeys(database, account, keys)
      const valid = keys.filter(key => key.revokedAt === null && (key.expiresAt === null || key.expiresAt > new Date()))
      if (options.json)
        return printJson({
          id: account.id,
          email: user.email,
          plan: account.plan,
          operator: account.isOperator,
          limits: shownLimits(limits),
          own_limits: shownLimits(account),
          today: { tokens: today.tokens, cost_usd: toUsd(today.microcents) },
          shortfall_usd: toUsd(getSum(keys)),
          paused_keys: paused.map(({ key, until, requestId, member }) => ({
            id: key.id,
            name: key.name,
            email: member,
            request_id: requestId,
            until: new Date(until).toISOString(),
          })),
          keys: { valid: valid.length, total: keys.length },
          created_at: account.createdAt.toISOString(),
        })
      const own = (limit: keyof Limits) =>
        account[limit] === null ? '' : `  (override; plan limit ${count(plans[account.plan][limit])})`
      const ownCost =
        account.dailyCostMicrocents === null
          ? ''
          : `  (override; plan limit ${shownUsd(plans[account.plan].dailyCostMicrocents)})`
      printTable([
        ['account', account.id],
        ['email', user.email],
        ['plan', account.plan],
        ...(account.isOperator ? [['operator', 'yes: its owners manage provider keys']] : []),
        ['created', account.createdAt.toISOString()],
        ['requests per minute', `${limits.requestsPerMinute}${own('requestsPerMinute')}`],
        ['concurrent requests', `${limits.concurrentRequests}${own('concurrentRequests')}`],
        ['tokens today', `${count(today.tokens)} of ${count(limits.dailyTokens)}${own('dailyTokens')}`],
        ['cost today', `${shownUsd(today.microcents)} of ${shownUsd(limits.dailyCostMicrocents)}${ownCost}`],
        ['shortfall today', shownUsd(getSum(keys))],
        ...paused.map(({ key, until, requestId, member }) => [
          'paused key',
          `${key.name} (${key.id}) of ${member} until ${new Date(until).toISOString()}, for ${requestId}: accounts resume`,
        ]),
        ['keys', `${valid.length} valid of ${keys.length}`],
      ])
    }),
})

const plan = command({
  name: 'accounts plan',
  about: 'Change the plan immediately; limit overrides stay',
  operands: { email, plan: planNames.join('|') },
  options: { json },
  run({ operands, options }) {
    const name = choice('The plan', operands.plan, planNames)
    return change(operands.email, (database, accountId) => movePlan(database, accountId, name), options.json)
  },
})

const limits = command({
  name: 'accounts limits',
  about: 'Override plan limits; takes effect within 5 s',
  operands: { email },
  options: {
    rpm: { type: 'string', value: 'N', about: 'requests per minute' },
    concurrent: { type: 'string', value: 'N', about: 'concurrent requests' },
    'daily-tokens': { type: 'string', value: 'N', about: 'tokens per UTC day' },
    'daily-cost-usd': { type: 'string', value: 'N', about: 'US dollars per UTC day' },
    reset: { type: 'boolean', about: "restore the plan's limits" },
    json,
  },
  run({ operands, options }) {
    const { reset, json: asJson, ...given } = options
    const limit = (name: 'rpm' | 'concurrent' | 'daily-tokens', most: number) =>
      given[name] === undefined ? undefined : whole(`--${name}`, given[name], most)
    const usd = given['daily-cost-usd']
    const wanted: AccountChange = {
      requestsPerMinute: limit('rpm', highestLimits.count),
      concurrentRequests: limit('concurrent', highestLimits.count),
      dailyTokens: limit('daily-tokens', highestLimits.dailyTokens),
      dailyCostMicrocents: usd === undefined ? undefined : dollars('--daily-cost-usd', usd),
    }
    const isEmpty = Object.values(wanted).every(value => value === undefined)
    if (isEmpty && !reset) throw new UsageError('Set at least one limit, or --reset.')
    if (!isEmpty && reset) throw new UsageError('--reset cannot be combined with limits.')
    const chosen = reset ? planLimits : wanted
    return change(operands.email, (database, accountId) => changeAccount(database, accountId, chosen), asJson)
  },
})

const resume = command({
  name: 'accounts resume',
  about: 'Set the shortfall of the keys of an account to 0, so that they may chat again; takes effect within 5 s',
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account, user }) => {
      const before = await resumeKeys(database, account.id)
      if (options.json) printJson({ id: account.id, email: user.email, shortfall_usd: 0, before_usd: toUsd(before) })
      else print(`${user.email}: shortfall ${shownUsd(0)}, was ${shownUsd(before)}.`)
    }),
})

const shadow = command({
  name: 'accounts shadow',
  about: 'Show how routing does against the baseline, by the verdicts of shadow evaluation',
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account }) => {
      const found = await readShadow({ database, config: readConfig() }, account.id, Date.now())
      if (options.json) return printJson(found)
      const rows = found.models.map(row => [row.model, row.baseline_model, ...verdictCells(row)])
      const all = ['all', '', ...verdictCells(found.total)]
      print(...columns([['MODEL', 'BASELINE', 'COMPARED', 'MATCHED OR BETTER (95%)', 'COST'], ...rows, all]))
    }),
})

function verdictCells({ compared, matched_or_better: matched, cost_usd }: ShadowReport['total']): string[] {
  const [share, low, high] = [matched?.share, matched?.low, matched?.high].map(of => ((of ?? 0) * 100).toFixed(1))
  return [String(compared), matched === null ? '–' : `${share}% (${low}–${high}%)`, shownUsd(fromUsd(cost_usd))]
}

const operator = command({
  name: 'accounts operator',
  about: "Make an account the operator's: its owners manage the gateway's provider keys, and stored keys are theirs",
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account, user }) => {
      await moveOperator(database, account.id)
      if (options.json) printJson({ id: account.id, email: user.email, operator: true })
      else print(`The account of ${user.email} is the operator’s.`)
    }),
})

const resetPassword = command({
  name: 'accounts reset-password',
  about: 'Set a new password for a user; prints it once. It signs in for an hour where only single sign-on does',
  operands: { email },
  options: { json },
  async run({ operands, options }) {
    const password = randomBase62(20, randomBytes)
    const passwordHash = await createPasswords().hash(password, null)
    await withAccount(operands.email, async (database, { user }) => {
      const { accountId, id, passwordHash: checkedHash } = user
      const wasReset = await changePassword(database, accountId, id, {
        checkedHash,
        newHash: passwordHash,
        keptSession: '',
        isByOperator: true,
      })
      if (!wasReset) throw new CommandFailure('The password changed concurrently. Retry.')
      if (options.json) printJson({ email: user.email, user_id: user.id, password })
      else
        printTable([
          ['email', user.email],
          ['password', `${password}  (shown once)`],
        ])
    })
  },
})

const resetTwoFactor = command({
  name: 'accounts reset-two-factor',
  about: 'Disable two-factor sign-in of a user who lost the authenticator app and the recovery codes',
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { user }) => {
      const wasEnabled = await removeTotp(database, { accountId: user.accountId, userId: user.id })
      if (options.json) printJson({ email: user.email, user_id: user.id, was_enabled: wasEnabled })
      else print(`${user.email}: two-factor sign-in ${wasEnabled ? 'is disabled' : 'was not set up'}.`)
    }),
})

export const accountCommands = [
  ...[create, list, show, plan, limits, resume, shadow, operator, resetPassword, resetTwoFactor],
]

/** Returns today's unbilled usage beyond reservations. */
function getSum(keys: readonly ApiKey[]): number {
  const today = new Date().toISOString().slice(0, 10)
  return keys.reduce((sum, key) => sum + (key.shortfallDay === today ? key.shortfallMicrocents : 0), 0)
}

/** Returns the keys that are paused now, each with the email of the member who owns it. */
async function pausedKeys(database: Database, { id, plan }: Account, keys: readonly ApiKey[]) {
  const maximumShortfall = getMaximumShortfall()
  const paused = keys.flatMap(key => {
    const pause = findPause(plan, key, maximumShortfall)
    return pause === null || pause.until <= Date.now() ? [] : [{ key, ...pause }]
  })
  return Promise.all(
    paused.map(async item => ({
      ...item,
      member: (await findUser(database, id, item.key.userId))?.email ?? item.key.userId,
    })),
  )
}

const planLimits: AccountChange = {
  requestsPerMinute: null,
  concurrentRequests: null,
  dailyTokens: null,
  dailyCostMicrocents: null,
}

/**
 * Changes an account's plan immediately. Without a payment method, the operator's command counts as an agreement to
 * manual invoicing. Repeating it changes nothing.
 */
async function movePlan(database: Database, accountId: string, plan: PlanName): Promise<void> {
  const by = { at: Date.now(), userId: null, newId }
  const outcome = await changeBilling(
    database,
    accountId,
    plan === 'usage' ? { ...by, event: 'upgrade', method: manualMethod(newId) } : { ...by, event: 'downgrade_now' },
  )
  if (outcome !== 'done' && outcome !== 'already_so') throw new CommandFailure(`The plan did not change: ${outcome}.`)
}

function change(
  address: string,
  work: (database: Database, accountId: string) => Promise<unknown>,
  asJson = false,
): Promise<void> {
  return withAccount(address, async (database, { account, user }) => {
    await work(database, account.id)
    const { account: changed } = (await findAccountByEmail(database, user.email)) ?? { account }
    const now = getLimits(changed, readPlans())
    if (asJson)
      return printJson({
        id: account.id,
        email: user.email,
        plan: changed.plan,
        limits: shownLimits(now),
        own_limits: shownLimits(changed),
      })
    print(`${user.email}: plan ${changed.plan}, ${limitsText(now)}.`)
  })
}

const count = (value: number) => value.toLocaleString('en')

function mailAddress(text: string): string {
  const address = text.trim().toLowerCase()
  if (address.length > 254 || !/^[^\s@]+@[^\s@]+$/.test(address))
    throw new UsageError(`"${text}" is not an email address.`)
  return address
}

function whole(name: string, text: string, maximum: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value <= maximum) return value
  throw new UsageError(`${name} must be a whole number from 0 to ${maximum}.`)
}

function dollars(name: string, text: string): number {
  const value = Number(text)
  if (/^\d+(\.\d{1,8})?$/.test(text) && value <= highestLimits.dailyUsd) return fromUsd(value)
  throw new UsageError(`${name} must be an amount from 0 to ${highestLimits.dailyUsd}, like 12.50.`)
}
