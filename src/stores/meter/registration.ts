/**
 * What a gateway knows of accounts, told to Redis under an epoch in the making: counts are made anew from it, once all
 * gateways that are alive have said theirs (`roll-call.ts`).
 */
import type { Seat } from '../meter.ts'
import type { Script } from '../redis.ts'
import { whole } from '../scripts/account.ts'
import { registerScript, remindScript } from '../scripts/meter.ts'
import { keysOf, partitionOf } from './partitions.ts'
import type { Settled, Waiting } from './spent.ts'
import { RedisEmptied, type UnderEpochOptions } from './under-epoch.ts'

export type Registration = {
  /** By this gateway and without Redis, since Redis last spoke of the account. */
  readonly settled: Settled | null
  readonly seats: readonly Seat[]
  /** Admissions of the last minute, ms ago, oldest first. */
  readonly ages: readonly number[]
  readonly waiting: readonly Waiting[]
}

export type RegistrarOptions = Pick<UnderEpochOptions, 'redis' | 'time'> & {
  readonly gatewayId: string
  /** How long the seats are held from here on. */
  readonly leaseMs: number
}

/** Both throw `RedisAway`, or `RedisEmptied` where that epoch is not in the making any more. */
export type Registrar = {
  /** Registers what this gateway knows of an account. */
  register(epoch: string, accountId: string, known: Registration): Promise<void>
  /** Tells what is known to be settled of accounts of a partition, ahead of registering. */
  remind(epoch: string, partition: number, known: ReadonlyMap<string, Settled>): Promise<void>
}

const deadlineMs = 500
/** Accounts that are told of in one call. */
const remindersAtOnce = 250
/** Of a partition with more accounts than that none are told of: registering must not take longer than others wait. */
const maximumReminders = 5_000

export function createRegistrar({ redis, gatewayId, leaseMs, time }: RegistrarOptions): Registrar {
  const tell = async (script: Script, keys: readonly string[], epoch: string, values: readonly string[]) => {
    const reply = await redis.evaluate(script, keys, [epoch, String(time?.() ?? ''), ...values], deadlineMs)
    if (!Array.isArray(reply) || reply[0] !== 1) throw new RedisEmptied()
  }

  return {
    async register(epoch, accountId, { settled, seats, ages, waiting }) {
      const keys = keysOf(partitionOf(accountId))
      const known = {
        gateway: gatewayId,
        leases: seats.map(seat => [
          seat.requestId,
          seat.reservedTokens,
          seat.reservedMicrocents,
          seat.outputCap,
          seat.day,
        ]),
        ages,
        waiting: waiting.map(one => [
          one.requestId,
          one.tokens,
          one.microcents,
          one.day,
          one.truth === 'final' ? 1 : 0,
        ]),
        settled: settled === null ? [] : [settled.day, settled.tokens, settled.microcents],
      }
      const values = [String(leaseMs), JSON.stringify(known)]
      await tell(registerScript, [keys.account(accountId), keys.announced], epoch, values)
    },

    async remind(epoch, partition, known) {
      if (known.size > maximumReminders) return
      const keys = keysOf(partition)
      const all = [...known]
      const parts = Array.from({ length: Math.ceil(all.length / remindersAtOnce) }, (_, index) =>
        all.slice(index * remindersAtOnce, (index + 1) * remindersAtOnce),
      )
      const told = parts.map(part =>
        tell(
          remindScript,
          [...part.map(([accountId]) => keys.account(accountId)), keys.announced],
          epoch,
          part.map(([, { day, tokens, microcents }]) => `${day}:${whole(tokens)}:${whole(microcents)}`),
        ),
      )
      await Promise.all(told)
    },
  }
}
