/**
 * Limits in Redis: an account's counters are one hash, every decision one script. A warm request costs two round trips, one to
 * admit and one to settle; the usage record enters a stream in the second. An account that is new under an epoch is loaded from
 * Postgres first.
 */
import { allPartitions, keysOf, type PartitionKeys, partitionOf } from '../../core/limits/partitions.ts'
import type { Limits } from '../../core/limits/plans.ts'
import { RedisUnavailableError } from '../../core/limits/redis-away.ts'
import type { Script } from '../../core/limits/script.ts'
import type { DailyUsage } from '../../core/limits/spent.ts'
import type { Epoch } from '../failover/epoch.ts'
import type { AdmissionRequest, Reservation } from '../meter.ts'
import type { LimitRedis } from '../ports.ts'
import type { Loaded } from '../postgres/store.ts'
import { type Numbers, numbersOf, StaleEpoch } from '../reply.ts'
import { whole } from './account-script.ts'
import { admitScript, raiseScript, settleScript } from './request-scripts.ts'
import { dueScript, epochScript, loadScript, renewScript, sweepScript } from './upkeep-scripts.ts'

export type RedisStoreOptions = {
  readonly redis: LimitRedis
  readonly gatewayId: string
  /** How long a reservation lasts that its gateway does not renew. */
  readonly leaseMs: number
  /** Reads what an account begins with. `day` is Redis' own, in days since the epoch. */
  readonly load: (accountId: string, day: number) => Promise<Loaded>
  /** Returns those of these requests that the ledger has. */
  readonly inLedger: (requestIds: readonly string[]) => Promise<readonly string[]>
  /** The gateways that are alive, this one included. */
  readonly living: () => readonly string[]
  /** Tests: the time that Redis is to use, in epoch milliseconds. */
  readonly time?: (() => number) | undefined
}

/** A settlement as Redis replied it. */
export type SettledUsage = {
  /** False if Redis had no reservation and no mark of the request. */
  readonly isKnown: boolean
  /** Id of the record's entry in the stream; empty = it wrote none. */
  readonly entryId: string
  /** The account's day in Redis, its counters, and Redis' own time. */
  readonly day: number
  readonly tokens: number
  readonly microcents: number
  readonly seats: number
  readonly at: number
}

/** A partition as an epoch finds it: 1 = valid, 0 = its key is lost, 2 = a newer epoch is set. */
export type PartitionState = { readonly state: number; readonly text: string; readonly oldestEntry: string }

export type RedisStore = ReturnType<typeof createRedisStore>

const million = 1_000_000n
/** No request waits for upkeep, and its delay must not count as evidence against Redis. */
const upkeepDeadlineMs = 1_000

/** Returns the calls on one Redis. All throw `RedisAway`, and those under an epoch `StaleEpoch`. */
export function createRedisStore(options: RedisStoreOptions) {
  const { redis, gatewayId, leaseMs, load, inLedger, living, time } = options
  const now = () => String(time?.() ?? '')
  const loading = new Map<string, Promise<void>>()

  const run = async (
    script: Script,
    epoch: Epoch,
    accountId: string,
    more: (keys: PartitionKeys) => readonly string[],
    values: readonly string[],
  ): Promise<readonly unknown[]> => {
    const partition = partitionOf(accountId)
    const keys = keysOf(partition)
    const reply = await redis.evaluate(
      script,
      [keys.account(accountId), keys.epoch, ...more(keys)],
      [epoch.keys[partition] ?? '', now(), ...values],
    )
    if (!Array.isArray(reply)) throw new RedisUnavailableError('a reply that no script of the meter gives')
    if (reply[0] === -1) throw new StaleEpoch()
    return reply
  }

  /** Ends leases of dead gateways whose requests the ledger has: it counts them already. */
  const dropShipped = async (epoch: Epoch, accountId: string, requestIds: readonly string[]) => {
    if (requestIds.length === 0) return
    for (const requestId of await inLedger(requestIds))
      await run(settleScript, epoch, accountId, streamOf, [requestId, '0', '0', '', '1'])
  }

  /** However many requests come at once, an account is loaded once. */
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

  /** Runs a script of a request, and once more if it finds the account not loaded. */
  const runLoaded = async (
    script: Script,
    epoch: Epoch,
    accountId: string,
    values: readonly string[],
    more: (keys: PartitionKeys) => readonly string[] = streamOf,
  ) => {
    const first = await run(script, epoch, accountId, more, values)
    if (first[0] !== 0) return first
    await loadAccount(epoch, accountId, Number(first[1]))
    const second = await run(script, epoch, accountId, more, values)
    if (second[0] === 0) throw new RedisUnavailableError('an account that was loaded and is not there')
    return second
  }

  return {
    /** Reserves, if all limits allow it. A repeated request id is answered as before. Throws as the load does. */
    admit: async (epoch: Epoch, request: AdmissionRequest): Promise<Numbers> =>
      numbersOf(await runLoaded(admitScript, epoch, request.accountId, admitValues(request, leaseMs))),

    /** Enlarges a reservation; null = the account cannot pay for it. */
    async raise(epoch: Epoch, seat: Reservation, limits: Limits, wanted: DailyUsage): Promise<Numbers | null> {
      const numbers = numbersOf(
        await run(raiseScript, epoch, seat.accountId, () => [], [
          seat.requestId,
          whole(wanted.tokens),
          whole(wanted.microcents),
          whole(limits.dailyTokens),
          whole(limits.dailyCostMicrocents),
        ]),
      )
      return numbers[0] === 1 ? numbers : null
    },

    /** Releases a reservation and counts what was used. `record` = as JSON; empty = it is durable elsewhere. */
    async settle(
      epoch: Epoch,
      seat: Reservation,
      spent: DailyUsage,
      record: string,
      mayHaveCheckpoint: boolean,
    ): Promise<SettledUsage> {
      const reply = await runLoaded(settleScript, epoch, seat.accountId, [
        seat.requestId,
        whole(spent.tokens),
        whole(spent.microcents),
        record,
        mayHaveCheckpoint ? '1' : '0',
      ])
      const entryId = String(reply[1])
      const [, , day, tokens, microcents, seats, at] = numbersOf(reply)
      // An entry's id begins with the milliseconds of its writing.
      return {
        isKnown: Number(reply[0]) === 1,
        entryId,
        day,
        tokens,
        microcents,
        seats,
        at: at || Number.parseInt(entryId, 10),
      }
    },

    /** Renews leases of one account; pairs of a request id and its new checkpoint, empty = none. */
    async renew(epoch: Epoch, accountId: string, pairs: readonly string[]): Promise<void> {
      const values = [String(leaseMs), accountId, gatewayId, ...pairs]
      await runLoaded(renewScript, epoch, accountId, values, keys => [keys.checkpointed])
    },

    /** Settles what dead gateways left open on accounts without requests. */
    async sweep(epoch: Epoch, partition: number): Promise<void> {
      const keys = keysOf(partition)
      const due = await redis.evaluate(dueScript, [keys.checkpointed], [now()], upkeepDeadlineMs)
      const swept = (Array.isArray(due) ? due.map(String) : []).map(accountId =>
        redis.evaluate(
          sweepScript,
          [keys.account(accountId), keys.epoch, keys.stream, keys.checkpointed],
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
          const keys = keysOf(partition)
          const reply = await redis.evaluate(
            epochScript,
            [keys.epoch, keys.stream],
            [whole(number), isToBeSet ? '1' : '0'],
          )
          const [state, text, oldestEntry] = Array.isArray(reply) ? reply : []
          return { state: Number(state), text: String(text), oldestEntry: String(oldestEntry) }
        }),
      ),
  }
}

function admitValues(request: AdmissionRequest, leaseMs: number): string[] {
  const { limits, inputTokens, choices } = request
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
  ]
}

const streamOf = ({ stream }: PartitionKeys) => [stream]
