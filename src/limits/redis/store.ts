/**
 * Limits in Redis: one hash per account, one script per decision. A request of a loaded account costs two round trips,
 * to admit and to settle. An account that is new under an epoch is
 * first loaded from Postgres.
 */
import {
  allPartitions,
  getKeys,
  getPartition,
  type PartitionKeys,
  RedisUnavailableError,
  type Script,
} from '../../core/limits/redis.ts'
import { getCounterName, noScopes, type Scope, type ScopeUsage } from '../../core/limits/scopes.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import type { Epoch } from '../epoch.ts'
import type { AdmissionRequest, Reservation } from '../meter.ts'
import type { LimitRedis } from '../ports.ts'
import type { AccountLoad, LimitsHeld } from '../postgres/store.ts'
import { getNumbers, type Numbers, StaleEpoch } from '../reply.ts'
import { whole } from './account-script.ts'
import { admitScript, raiseScript, settleScript, statusScript } from './request-scripts.ts'
import { dueScript, epochScript, loadScopesScript, loadScript, renewScript, sweepScript } from './upkeep-scripts.ts'

type RedisStoreOptions = {
  readonly redis: LimitRedis
  readonly gatewayId: string
  /** Milliseconds until a reservation expires without renewal. */
  readonly leaseMs: number
  /** Reads what an account is loaded with. `day` is Redis' own, in days since the epoch. */
  readonly load: (accountId: string, day: number) => Promise<AccountLoad>
  /** Reads what the ledger has of scopes of an account. */
  readonly loadScopes: (accountId: string, names: readonly string[], day: number) => Promise<readonly ScopeUsage[]>
  /** Returns which of these requests are in the ledger. */
  readonly inLedger: (requestIds: readonly string[]) => Promise<readonly string[]>
  /** Returns the living instances, including this one. */
  readonly living: () => readonly string[]
  /** For tests: the time that Redis uses, in epoch milliseconds. */
  readonly time?: (() => number) | undefined
}

/** End of a request. */
export type RedisSettlement = {
  readonly spent: DailyUsage
  /** False if it certainly has none. */
  readonly hasCheckpoint: boolean
  readonly hasScopes: boolean
}

/** A settlement as replied by Redis. */
type SettledUsage = {
  /** False if Redis had neither a reservation nor a mark of the request. */
  readonly isKnown: boolean
  /** The account's day in Redis, its counters, and Redis' own time. */
  readonly day: number
  readonly tokens: number
  readonly microcents: number
  readonly reservations: number
  readonly at: number
}

/** State of a partition's epoch: 1 = valid, 0 = its key is lost, 2 = a newer epoch is set. */
export type PartitionState = { readonly state: number; readonly text: string }

export type RedisStore = ReturnType<typeof createRedisStore>

const million = 1_000_000n
/** No request waits for maintenance, so its delay must not count as evidence against Redis. */
const upkeepDeadlineMs = 1_000

/** Creates the calls on one Redis. All throw `RedisUnavailableError`, and those under an epoch `StaleEpoch`. */
export function createRedisStore(options: RedisStoreOptions) {
  const { redis, gatewayId, leaseMs, load, loadScopes, inLedger, living, time } = options
  const now = () => String(time?.() ?? '')
  const loading = new Map<string, Promise<void>>()

  const run = async (
    script: Script,
    epoch: Epoch,
    accountId: string,
    more: (keys: PartitionKeys) => readonly string[],
    values: readonly string[],
  ): Promise<readonly unknown[]> => {
    const partition = getPartition(accountId)
    const keys = getKeys(partition)
    const reply = await redis.evaluate(
      script,
      [keys.account(accountId), keys.epoch, ...more(keys)],
      [epoch.keys[partition] ?? '', now(), ...values],
    )
    if (!Array.isArray(reply)) throw new RedisUnavailableError('unexpected reply of a meter script')
    if (reply[0] === -1) throw new StaleEpoch()
    return reply
  }

  /** Ends leases of dead instances whose requests are already counted by the ledger. */
  const dropShipped = async (epoch: Epoch, accountId: string, requestIds: readonly string[]) => {
    if (requestIds.length === 0) return
    for (const requestId of await inLedger(requestIds))
      await run(settleScript, epoch, accountId, () => [], [requestId, '0', '0', '1', '1'])
  }

  /** Loads an account once for all concurrent requests. */
  const loadAccount = (epoch: Epoch, accountId: string, day: number): Promise<void> => {
    const name = `${epoch.number} ${accountId}`
    const running = loading.get(name)
    if (running !== undefined) return running
    const loaded = load(accountId, day)
      .then(known => {
        const text = JSON.stringify({ ...known, day, living: living() })
        return run(loadScript, epoch, accountId, () => [], [String(leaseMs), text])
      })
      .then(([, ...stay]) => dropShipped(epoch, accountId, stay.map(String)))
      .finally(() => loading.delete(name))
    loading.set(name, loaded)
    return loaded
  }

  /** Runs a request's script, and again if the account was not loaded. */
  const runLoaded = async (
    script: Script,
    epoch: Epoch,
    accountId: string,
    values: readonly string[],
    more: (keys: PartitionKeys) => readonly string[] = () => [],
  ) => {
    const first = await run(script, epoch, accountId, more, values)
    if (first[0] !== 0) return first
    await loadAccount(epoch, accountId, Number(first[1]))
    const second = await run(script, epoch, accountId, more, values)
    if (second[0] === 0) throw new RedisUnavailableError('a loaded account is missing')
    return second
  }

  /** Decides, with what the ledger has of scopes that are new in Redis. */
  const decide = async (epoch: Epoch, request: AdmissionRequest, forMs: number): Promise<Numbers> => {
    const { accountId, scopes = noScopes } = request
    const values = admitValues(request, forMs)
    const first = await runLoaded(admitScript, epoch, accountId, values)
    if (first[0] !== scopeMissing) return getNumbers(first)
    const day = Number(first[1])
    const names = scopes.map(({ name }) => name)
    const used = new Map((await loadScopes(accountId, names, day)).map(scope => [scope.name, scope]))
    const rows = scopes.map(scope => {
      const { tokens = 0, microcents = 0, monthMicrocents = 0 } = used.get(scope.name) ?? {}
      return [getCounterName(scope), tokens, microcents, monthMicrocents]
    })
    await run(loadScopesScript, epoch, accountId, () => [], [JSON.stringify({ day, rows })])
    const second = await runLoaded(admitScript, epoch, accountId, values)
    if (second[0] === scopeMissing) throw new RedisUnavailableError('a loaded scope is missing')
    return getNumbers(second)
  }

  return {
    /** Reserves if all limits allow it. A repeated request ID gets the same reply. Throws like the load. */
    admit: (epoch: Epoch, request: AdmissionRequest) => decide(epoch, request, leaseMs),

    /** Decides like `admit` and reserves nothing. */
    check: (epoch: Epoch, request: AdmissionRequest) => decide(epoch, request, 0),

    /** Reads an account's counters. Throws like the load. */
    status: async (epoch: Epoch, accountId: string): Promise<Numbers> =>
      getNumbers(await runLoaded(statusScript, epoch, accountId, [])),

    /** Increases a reservation; null = the account cannot pay for it. */
    async raise(epoch: Epoch, reservation: Reservation, held: LimitsHeld, wanted: DailyUsage): Promise<Numbers | null> {
      const { limits, scopes } = held
      const numbers = getNumbers(
        await run(raiseScript, epoch, reservation.accountId, () => [], [
          reservation.requestId,
          whole(wanted.tokens),
          whole(wanted.microcents),
          whole(limits.dailyTokens),
          whole(limits.dailyCostMicrocents),
          ...scopes.flatMap(raiseValues),
        ]),
      )
      return numbers[0] === 1 ? numbers : null
    },

    /** Releases a reservation and counts its usage. */
    async settle(epoch: Epoch, reservation: Reservation, end: RedisSettlement): Promise<SettledUsage> {
      const { spent, hasCheckpoint, hasScopes } = end
      const reply = await runLoaded(settleScript, epoch, reservation.accountId, [
        reservation.requestId,
        whole(spent.tokens),
        whole(spent.microcents),
        hasCheckpoint ? '1' : '0',
        hasScopes ? '1' : '0',
      ])
      const [status, day, tokens, microcents, reservations, at] = getNumbers(reply)
      return { isKnown: status === 1, day, tokens, microcents, reservations, at }
    },

    /** Renews leases of one account. `pairs` are a request ID and its new checkpoint, empty = none. */
    async renew(epoch: Epoch, accountId: string, pairs: readonly string[]): Promise<void> {
      const values = [String(leaseMs), accountId, gatewayId, ...pairs]
      await runLoaded(renewScript, epoch, accountId, values, keys => [keys.checkpointed])
    },

    /** Settles what dead instances left open on accounts without requests. */
    async sweep(epoch: Epoch, partition: number): Promise<void> {
      const keys = getKeys(partition)
      const due = await redis.evaluate(dueScript, [keys.checkpointed], [now()], upkeepDeadlineMs)
      const swept = (Array.isArray(due) ? due.map(String) : []).map(accountId =>
        redis.evaluate(
          sweepScript,
          [keys.account(accountId), keys.epoch, keys.checkpointed],
          [epoch.keys[partition] ?? '', now(), accountId, ...living()],
          upkeepDeadlineMs,
        ),
      )
      await Promise.all(swept)
    },

    /** Compares every partition with epoch `number`, or sets it there. */
    partitions: (number: number, isToBeSet: boolean): Promise<PartitionState[]> =>
      Promise.all(
        allPartitions.map(async partition => {
          const keys = getKeys(partition)
          const reply = await redis.evaluate(epochScript, [keys.epoch], [whole(number), isToBeSet ? '1' : '0'])
          const [state, text] = Array.isArray(reply) ? reply : []
          return { state: Number(state), text: String(text) }
        }),
      ),
  }
}

function admitValues(request: AdmissionRequest, leaseMs: number): string[] {
  const { limits, inputTokens, choices, scopes = noScopes } = request
  const cap = Math.max(1, Math.round(request.outputTokens))
  const inputCost = BigInt(inputTokens) * BigInt(request.inputPrice)
  const price = BigInt(choices) * BigInt(request.outputPrice)
  const extra = BigInt(request.extraMicrocents)
  const wantedCost = (inputCost + BigInt(cap) * price + million - 1n) / million + extra
  return [
    request.requestId,
    whole(limits.requestsPerMinute),
    whole(limits.concurrentRequests),
    whole(limits.dailyTokens),
    whole(limits.dailyCostMicrocents),
    String(cap),
    String(inputTokens + cap * choices),
    String(wantedCost),
    request.fairShare ? '1' : '0',
    String(leaseMs),
    `${whole(inputTokens)}:${whole(choices)}:${inputCost / million + extra}:${inputCost % million}:${price / million}:${price % million}`,
    ...scopes.flatMap(scopeValues),
  ]
}

/** A reply of the admission script: one of the scopes is not loaded. */
const scopeMissing = -2

function scopeValues(scope: Scope): string[] {
  const { requestsPerMinute, concurrentRequests } = scope.limits
  const [name, ...amounts] = raiseValues(scope)
  return [name, orEmpty(requestsPerMinute), orEmpty(concurrentRequests), ...amounts]
}

function raiseValues(scope: Scope): [string, ...string[]] {
  const { dailyTokens, dailyCostMicrocents, monthlyCostMicrocents } = scope.limits
  return [getCounterName(scope), orEmpty(dailyTokens), orEmpty(dailyCostMicrocents), orEmpty(monthlyCostMicrocents)]
}

/** Empty = unlimited. */
const orEmpty = (limit: number | null) => (limit === null ? '' : whole(limit))
