/**
 * Limits in Redis. The admissions of one turn of the event loop go in one call, its settlements in another; a request
 * of a loaded account costs one of each. An account that Redis does not have is loaded from the ledger first.
 */
import { runOnce } from '../core/jobs/repeating.ts'
import { type LimitKeys, RedisUnavailableError, type Script } from '../core/limits/redis.ts'
import { getCounterName, type Scope, type ScopeUsage, untilNextMonth } from '../core/limits/scopes.ts'
import type { Clock } from '../core/ports.ts'
import { formatDay, untilMidnight } from '../core/text/utc-days.ts'
import { type DailyUsage, nothing } from '../core/usage/usage-record.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { OwnAccount, toAllowanceRows } from './allowance.ts'
import { allowanceMs, answerMs, leaseMs, reportGraceMs } from './constants.ts'
import type { StatusCounters } from './counters.ts'
import { getCosts, unreached } from './decide.ts'
import type { AdmissionRequest, ConversationNote, LimitErrorCode, OpenReservation, Reservation } from './meter.ts'
import { admitScript, settleScript } from './redis-request-scripts.ts'
import { beginScript, checkScript, loadScript, reportedScript, reportScript } from './redis-upkeep-scripts.ts'
import { spentBy } from './usage-records.ts'

export type LimitRedis = {
  /** Runs a script. Throws `RedisUnavailableError`, although the script may have run. All `keys` are in one slot. */
  evaluate(script: Script, keys: readonly string[], values: readonly string[], deadlineMs?: number): Promise<unknown>
  /** Resolves like `promise`. Throws `RedisUnavailableError` after `deadlineMs` of this process' own time. */
  within<T>(promise: Promise<T>, deadlineMs: number): Promise<T>
  isReady(): boolean
  /** Connections that failed since the last successful one. */
  failedConnections(): number
  /** Calls `listener` when Redis becomes available or unavailable. */
  onChange(listener: (isReady: boolean) => void): void
}

/** Usage of an account and its scopes in the ledger, and the amounts that it has of reported requests. */
export type LedgerUsage = DailyUsage & {
  readonly present: ReadonlyMap<string, DailyUsage>
  readonly scopes: readonly (ScopeUsage & { readonly since: number })[]
}

export type LimitLedger = {
  /** Reads the usage of an account and of all its limited scopes on a UTC day, in one snapshot. Throws if it cannot. */
  load(accountId: string, day: number, requestIds: readonly string[]): Promise<LedgerUsage>
  loadScopes(accountId: string, names: readonly string[], day: number): Promise<readonly ScopeUsage[]>
}

export type RedisStoreOptions = {
  readonly redis: LimitRedis
  readonly keys: LimitKeys
  readonly ledger: LimitLedger
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** For tests: other times than those of `constants.ts`. */
  readonly leaseMs?: number
  readonly reportGraceMs?: number
  /** For tests: the time that Redis uses, in epoch milliseconds. */
  readonly time?: () => number
}

/** Redis has lost its counters since the caller's generation. */
export class StaleGeneration extends Error {
  override readonly name = 'StaleGeneration'
}

/** Whether an error is one of Redis. Any other is one of a call: of its values, its account, or the ledger. */
export const isOfRedis = (cause: unknown) => cause instanceof RedisUnavailableError || cause instanceof StaleGeneration

/** An account cannot be loaded yet: instances still report what they hold. */
export class AccountPending extends Error {
  constructor(readonly waitMs: number) {
    super('Redis has lost the counters of an account')
    this.name = 'AccountPending'
  }
}

/** A decision, and the counters of the account after it. `allocated` = only allowances of instances are in the way. */
export type RedisDecision = {
  readonly outcome: 'admitted' | 'allocated' | LimitErrorCode
  readonly scope: string | null
  readonly retryAfterMs: number
  readonly reservation: Reservation
  readonly counted: StatusCounters
  readonly note: string | null
}

/** A request that ended; `detail` is in the form of the scripts. */
export type EndedRequest = { readonly requestId: string; readonly accountId: string; readonly detail: string }

/** The content of one call about an account. */
export type AccountPart = {
  readonly accountId: string
  /** Null if the call has no allowances of it. */
  readonly own: OwnAccount | null
  readonly open: readonly OpenReservation[]
  readonly ended: readonly EndedRequest[]
  readonly rows: ReturnType<typeof toAllowanceRows>
}

/** Content of one call of a report. */
type ReportCall = {
  readonly instance: string
  /** Another call of the report follows. */
  readonly isMore: boolean
  readonly isLeaving: boolean
  readonly parts: readonly AccountPart[]
}

export type RedisStore = ReturnType<typeof createRedisStore>

/** A request that waits for the end of the turn. */
type Item = {
  readonly accountId: string
  readonly values: readonly string[]
  readonly done: (reply: readonly unknown[]) => void
  readonly fail: (cause: unknown) => void
}

const uncounted = { requestsPerMinute: null, concurrentRequests: null }
const unusedScope = { tokens: 0, microcents: 0, monthMicrocents: 0 }
const million = 1_000_000n
const codes: Readonly<Record<number, RedisDecision['outcome']>> = {
  1: 'admitted',
  2: 'requests_per_minute_exceeded',
  3: 'concurrent_requests_exceeded',
  4: 'daily_tokens_exceeded',
  5: 'daily_cost_exceeded',
  6: 'monthly_cost_exceeded',
  7: 'admitted',
  8: 'allocated',
}
/** Redis is blocked for about 5 ms by as many requests. */
const maximumBatch = 128

/**
 * Creates the calls on one Redis. All throw `RedisUnavailableError` or `StaleGeneration`. `generation` returns that of a
 * partition's counters, or throws `RedisUnavailableError` while it is unknown.
 */
export function createRedisStore(options: RedisStoreOptions, generation: (partition: number) => string) {
  const { redis, keys, ledger, clock, time, leaseMs: lease = leaseMs, reportGraceMs: grace = reportGraceMs } = options
  const now = () => (time === undefined ? '' : whole(time()))
  const loading = new Map<string, Promise<void>>()

  const run = async (script: Script, partition: number, more: readonly string[], values: readonly string[]) => {
    const state = keys.state(partition)
    const reply = await redis.evaluate(script, [state, ...more], [now(), generation(partition), ...values], answerMs)
    if (!Array.isArray(reply)) throw new RedisUnavailableError('unexpected reply of a meter script')
    if (reply[0] === -1) throw new StaleGeneration('Redis has lost its counters')
    return reply as readonly unknown[]
  }

  /** Collects the items of one turn of the event loop, and sends those of one partition together, account by account. */
  const batched = (script: Script, first: readonly string[]) => {
    const waiting = new Map<number, Item[]>()
    const flush = async (partition: number, batch: readonly Item[]): Promise<void> => {
      if (waiting.get(partition) === batch) waiting.delete(partition)
      const byAccount = Map.groupBy(batch, ({ accountId }) => accountId)
      const accounts = [...byAccount.keys()].map(keys.account)
      const counted = [...byAccount.values()].flatMap(own => [
        String(own.length),
        ...own.flatMap(({ values }) => values),
      ])
      try {
        const replies = await run(script, partition, accounts, [...first, ...counted])
        for (const [index, { done, fail }] of [...byAccount.values()].flat().entries()) {
          const reply: unknown = replies[index]
          if (Array.isArray(reply)) done(reply)
          else fail(new RedisUnavailableError('a reply of a meter script is missing'))
        }
      } catch (cause) {
        // An item that fails shall fail no other one. All are safe to repeat.
        if (batch.length > 1 && !isOfRedis(cause)) for (const item of batch) void flush(partition, [item])
        else for (const { fail } of batch) fail(cause)
      }
    }
    return ([accountId, ...values]: readonly [accountId: string, ...values: string[]]) =>
      new Promise<readonly unknown[]>((done, fail) => {
        const partition = keys.partition(accountId)
        const item = { accountId, values, done, fail }
        const batch = waiting.get(partition)
        if (batch !== undefined && batch.length < maximumBatch) return void batch.push(item)
        const started = [item]
        waiting.set(partition, started)
        setImmediate(flush, partition, started)
      })
  }
  const admissions = batched(admitScript, [String(lease)])
  const checks = batched(admitScript, ['0'])
  const settlements = batched(settleScript, [])

  const loadAccount = async (accountId: string): Promise<void> => {
    const partition = keys.partition(accountId)
    const account = keys.account(accountId)
    for (;;) {
      const before = generation(partition)
      const [isLoaded, day, age, ...asked] = await run(reportedScript, partition, [account], [])
      if (isLoaded === 1) return
      if (isLoaded === 2) throw new GatewayError('invalid_api_key', 'The account is deleted.', { shouldRetry: false })
      const waitMs = grace - Number(age)
      if (waitMs > 0) throw new AccountPending(waitMs)
      const { present, ...used } = await ledger.load(accountId, Number(day), asked.map(String))
      // Redis has lost its counters meanwhile: its instances report again first.
      if (generation(partition) !== before) continue
      const known = { ...used, day: Number(day), reported: asked.length, present: Object.fromEntries(present) }
      const [loaded] = await run(loadScript, partition, [account], [JSON.stringify(known)])
      if (loaded === 1) return
    }
  }

  /** Adds scopes that are new in Redis, with what the ledger has of them. */
  const loadScopes = async (accountId: string, scopes: readonly Scope[], day: number): Promise<void> => {
    const names = scopes.map(({ name }) => name)
    const used = new Map((await ledger.loadScopes(accountId, names, day)).map(scope => [scope.name, scope]))
    const rows = scopes.map(({ name, limits: { since = 0 } }) => ({ ...unusedScope, ...used.get(name), name, since }))
    const known = JSON.stringify({ day, scopes: rows })
    await run(loadScript, keys.partition(accountId), [keys.account(accountId)], [known])
  }

  const decide = async (request: AdmissionRequest, send: typeof admissions): Promise<RedisDecision> => {
    const { accountId, scopes } = request
    const values = [accountId, ...admitValues(request)] as const
    for (let tries = 0; tries < 4; tries++) {
      const reply = await send(values)
      if (reply[0] === 0) await runOnce(loading, accountId, () => loadAccount(accountId))
      else if (reply[0] === -2) await loadScopes(accountId, scopes, Number(reply[1]))
      else return toDecision(request, reply, clock.now())
    }
    throw new RedisUnavailableError('a loaded account is missing')
  }

  return {
    /** Reserves if all limits allow it. A repeated request ID gets the same reply. Throws like the load. */
    admit: (request: AdmissionRequest) => decide(request, admissions),

    /** Decides like `admit` and reserves nothing. */
    check: (request: AdmissionRequest) => decide(request, checks),

    /** Increases a reservation, all or nothing; null = Redis does not have the counters. */
    async raise({ reservation, limits, scopes }: OpenReservation, { tokens, microcents }: DailyUsage) {
      const { accountId, requestId, outputCap } = reservation
      const request = {
        requestId,
        accountId,
        limits: { ...limits, requestsPerMinute: unreached, concurrentRequests: unreached },
        scopes: scopes.map(({ name, limits: own }) => ({ name, limits: { ...own, ...uncounted } })),
        conversation: null,
      }
      const amounts = [whole(outputCap), whole(tokens), whole(microcents), '0', '']
      const reply = await admissions([accountId, ...toValues(request, amounts)])
      return Number(reply[0]) > 0 ? toDecision(request, reply, clock.now()) : null
    },

    /**
     * Releases a reservation, counts its usage, and keeps the note of its conversation. `detail` is that of a request that
     * Redis has not admitted, else empty. Returns the counters afterwards, without those of the minute; null = the account is
     * not loaded, or there was nothing to settle.
     */
    async settle(
      { accountId, requestId }: Reservation,
      spent: DailyUsage,
      { detail, note }: { readonly detail: string; readonly note: ConversationNote | null },
    ) {
      const noted = [getNoteField(note?.name ?? null), note?.getText() ?? '']
      const used = [whole(spent.tokens), whole(spent.microcents)]
      const reply = await settlements([accountId, requestId, ...used, detail, ...noted])
      if (reply[0] !== 1) return null
      const [, day = 0, tokens = 0, microcents = 0, open = 0, at = 0] = reply.map(Number)
      const ofDay = toDayCounters(at, clock.now())
      // Redis may still have the day before, until the next admission.
      return { ...(ofDay.day === day ? { tokens, microcents } : nothing), ...ofDay, open }
    },

    /**
     * Renews and reports what an instance has. Returns the number of instances, and per account and row of it the allowance
     * that it should hold; null = the report is too late for this generation.
     */
    async report(partition: number, { instance, isMore, isLeaving, parts }: ReportCall) {
      const accounts = parts.map(({ open, ended, rows }) => ({
        open: open.map(toOpenRow),
        ended: ended.map(({ requestId, detail }) => [requestId, detail]),
        rows,
      }))
      const [instances, ...grants] = await run(
        reportScript,
        partition,
        [keys.instances(partition), ...parts.map(({ accountId }) => keys.account(accountId))],
        [JSON.stringify({ instance, lease, allowance: allowanceMs, grace, isMore, isLeaving, accounts })],
      )
      if (instances === -3) return null
      const toAmounts = (row: unknown) => {
        const [tokens, microcents] = Array.isArray(row) ? row : []
        return [Number(tokens), Number(microcents)] as const
      }
      return {
        instances: Number(instances),
        grants: grants.map(rows => (Array.isArray(rows) ? rows.map(toAmounts) : [])),
      }
    },

    /** Rejects unless Redis does what the scripts need. */
    async checkService(partition: number): Promise<void> {
      await redis.evaluate(checkScript, [keys.check(partition)], [], answerMs)
    },

    /** Returns the generation of a partition, and its age. Begins a new one instead of `over`, or after a loss. */
    async begin(partition: number, over: string): Promise<{ readonly text: string; readonly ageMs: number }> {
      const reply = await redis.evaluate(
        beginScript,
        [keys.state(partition)],
        [now(), '', over, Bun.randomUUIDv7()],
        answerMs,
      )
      const [text, ageMs] = Array.isArray(reply) ? reply : []
      return { text: String(text), ageMs: Number(ageMs) }
    },
  }
}

/** Returns the field of a conversation's note: one of 4,096, by two characters of base64. Empty = it has none. */
const getNoteField = (name: string | null) => name?.slice(0, 2) ?? ''

/** Returns a number in the form that the scripts expect. */
const whole = (number: number) => String(Math.round(number))

/** Returns a request in the form that the scripts store. */
export function toDetail(
  { day, outputCap }: Pick<Reservation, 'day' | 'outputCap'>,
  { tokens, microcents }: DailyUsage,
  admittedAt: number,
  scopes: readonly string[],
): string {
  return `${[tokens, microcents, outputCap, day, admittedAt].map(whole).join(':')}\n${scopes.join('\n')}`
}

/** Returns an open request in the form of the report. */
function toOpenRow({ reservation, progress, admittedAt, scopes }: OpenReservation) {
  const { requestId, reservedTokens: tokens, reservedMicrocents: microcents } = reservation
  const used = progress === null ? null : spentBy(progress(), reservation)
  const checkpoint = used === null ? '' : `${whole(used.tokens)}:${whole(used.microcents)}`
  return [requestId, checkpoint, toDetail(reservation, { tokens, microcents }, admittedAt, scopes.map(getCounterName))]
}

function admitValues(request: AdmissionRequest): string[] {
  const { inputTokens, choices } = request
  const cap = Math.max(1, Math.round(request.outputTokens))
  const { input, output } = getCosts(request)
  const extra = BigInt(request.extraMicrocents)
  const wantedCost = (input + BigInt(cap) * output + million - 1n) / million + extra
  return toValues(request, [
    String(cap),
    String(inputTokens + cap * choices),
    String(wantedCost),
    request.fairShare ? '1' : '0',
    `${whole(inputTokens)}:${whole(choices)}:${input / million + extra}:${input % million}:${output / million}:${output % million}`,
  ])
}

/** Returns a request in the form of the script; `amounts` is what it would reserve. */
function toValues(
  {
    requestId,
    limits,
    scopes,
    conversation,
  }: Pick<AdmissionRequest, 'requestId' | 'limits' | 'scopes' | 'conversation'>,
  amounts: readonly string[],
): string[] {
  return [
    requestId,
    toLimits({ ...limits, monthlyCostMicrocents: null }),
    ...amounts,
    String(scopes.length),
    ...scopes.flatMap(scope => [getCounterName(scope), toLimits(scope.limits)]),
    getNoteField(conversation),
  ]
}

/** Returns limits in the form of the script; empty = unlimited. */
const toLimits = (limits: Omit<Scope['limits'], 'since'>) =>
  [
    limits.requestsPerMinute,
    limits.concurrentRequests,
    limits.dailyTokens,
    limits.dailyCostMicrocents,
    limits.monthlyCostMicrocents,
  ]
    .map(limit => (limit === null ? '' : whole(limit)))
    .join(':')

/** Returns the UTC day of `at`, the time of Redis, and when it ends by the clock of this process. */
function toDayCounters(at: number, now: number): Pick<StatusCounters, 'day' | 'dayEndsAt'> {
  return { day: formatDay(at), dayEndsAt: now + untilMidnight(at) }
}

function toDecision(
  { requestId, accountId, scopes }: Pick<AdmissionRequest, 'requestId' | 'accountId' | 'scopes'>,
  reply: readonly unknown[],
  now: number,
): RedisDecision {
  const [code = 0, wait = 0, outputCap = 0, reservedTokens = 0, reservedMicrocents = 0, day = 0, ...counters] =
    reply.map(Number)
  const [requests = 0, resetMs = 0, tokens = 0, microcents = 0, open = 0, at = 0, place = 0] = counters
  const note = reply[13]
  const outcome = codes[code] ?? 'allocated'
  // Redis knows no calendar beyond the present month.
  const waitMs = outcome === 'monthly_cost_exceeded' ? untilNextMonth(at) : wait
  return {
    outcome,
    scope: scopes[place - 1]?.name ?? null,
    retryAfterMs: Math.max(1, Math.ceil(waitMs)),
    reservation: { requestId, accountId, outputCap, reservedTokens, reservedMicrocents, day },
    counted: { requests, minuteEndsAt: now + resetMs, ...toDayCounters(at, now), tokens, microcents, open },
    note: typeof note === 'string' ? note : null,
  }
}
