/**
 * Which gateways there are, and whether Redis can be believed. Each partition of accounts has an epoch key; counts are
 * valid under one epoch only. An emptied or restarted Redis has lost it, and a gateway that handed out limits while it
 * could not reach Redis takes it away. Then a new one is announced, everybody goes on under local limits, stops admitting
 * for a moment, registers what it knows, and when all that are alive have, the new epoch stands.
 */

import type { Redis } from '../redis.ts'
import { beatScript } from '../scripts/meter.ts'
import { allPartitions, keysOf } from './partitions.ts'

export type RollCallOptions = {
  readonly redis: Redis
  readonly gatewayId: string
  readonly newName: () => string
  /** Milliseconds that never run backwards. */
  readonly monotonic: () => number
  /** Whether this gateway has anything to say of a partition. */
  readonly hasAnything: (partition: number) => boolean
  /** Tells Redis all of it. From here until `stands` nothing of the partition is admitted. */
  readonly register: (partition: number, epoch: string) => Promise<void>
  /** Whether anything may be admitted in Redis: false while another gateway must do without it. Never rejects. */
  readonly mayEnter: (partition: number) => Promise<boolean>
  /** There is no use in calling: another gateway decides without Redis, and cannot reach it. */
  readonly isBarred: (partition: number) => boolean
  /** The epoch that was registered for stands; called before anything is admitted under it. */
  readonly stands: (partition: number) => void
  /** The oldest entry of a partition's stream; empty = none. */
  readonly oldestEntry: (partition: number, entryId: string) => void
  /** How long a rebuild runs before gateways register. */
  readonly rebuildMs?: number
}

export type RollCall = {
  /** The epoch to admit under; null = Redis is not to be used for this partition now. */
  epochOf(partition: number): string | null
  /** The epoch in the making that this gateway has registered for; its admissions wait for it, or for `deadlineMs`. */
  settledSoon(partition: number, deadlineMs: number): Promise<void> | null
  /** Whether this gateway has registered for an epoch that does not stand yet. */
  isRegistered(partition: number): boolean
  /** Redis answered that it does not know our epoch. */
  lost(partition: number): void
  /** This gateway has handed out limits of a partition without Redis: its counts are wrong by that. */
  distrust(partition: number): void
  /** Gateways alive in a partition when last heard of, this one included. */
  gatewaysIn(partition: number): number
  /** Looks after every partition that is due. Never throws. */
  beat(): Promise<void>
  close(): Promise<void>
}

type Partition = {
  readonly index: number
  epoch: string | null
  registeredFor: string
  distrusted: boolean
  siblings: readonly string[]
  beating: boolean
  beatAt: number
  readonly waiting: (() => void)[]
}

const calmBeatMs = 1000
const busyBeatMs = 100
const defaultRebuildMs = 600
/** How long a gateway that was there is waited for. */
const patienceMs = 3000
const beatDeadlineMs = 100

/** Starts calling. The timer does not keep the process alive. */
export function startRollCall(options: RollCallOptions): RollCall {
  const { redis, gatewayId, monotonic, rebuildMs = defaultRebuildMs } = options
  const all = allPartitions.map(
    (index): Partition => ({
      index,
      epoch: null,
      registeredFor: '',
      distrusted: false,
      siblings: [],
      beating: false,
      beatAt: Number.NEGATIVE_INFINITY,
      waiting: [],
    }),
  )
  const at = (index: number): Partition => {
    const partition = all[index]
    if (partition === undefined) throw new Error(`there is no partition ${index}`)
    return partition
  }

  const beatOne = async (partition: Partition): Promise<void> => {
    if (partition.beating || !redis.isReady()) return
    partition.beating = true
    partition.beatAt = monotonic()
    try {
      await hear(partition, await call(partition))
    } catch {
      // Redis is away, or someone else's announcement took this one's place: the next beat will tell.
      if (partition.epoch === null) withdraw(partition)
    } finally {
      partition.beating = false
    }
  }

  const call = async (partition: Partition): Promise<readonly unknown[]> => {
    const keys = keysOf(partition.index)
    const reply = await redis.evaluate(
      beatScript,
      [keys.epoch, keys.gateways, keys.announced, keys.stream],
      [
        partition.epoch ?? '',
        '',
        gatewayId,
        options.newName(),
        partition.registeredFor,
        partition.distrusted ? '1' : '',
        partition.siblings.join(','),
        String(rebuildMs),
        String(patienceMs),
      ],
      beatDeadlineMs,
    )
    return Array.isArray(reply) ? reply : []
  }

  const hear = async (partition: Partition, reply: readonly unknown[]): Promise<void> => {
    const [state, name, oldest, gateways] = [Number(reply[0]), String(reply[1]), String(reply[2]), String(reply[3])]
    if (state === 1) {
      if (name === partition.epoch) {
        // Only a standing epoch's stream says what is in Postgres: an emptied one is empty for another reason.
        options.oldestEntry(partition.index, oldest)
      } else if (name === partition.registeredFor && !partition.distrusted) await open(partition, name)
      else if (!options.hasAnything(partition.index)) await open(partition, name)
      // An epoch that was made without this gateway, although it had something to say.
      else partition.distrusted = true
      partition.siblings = gateways === '' ? [] : gateways.split(',')
      return
    }
    partition.epoch = null
    partition.siblings = [...new Set([...partition.siblings, ...gateways.split(',')])]
    if (partition.registeredFor !== name) withdraw(partition)
    if (state !== 2 || partition.registeredFor === name) return
    partition.registeredFor = name
    partition.distrusted = false
    await options.register(partition.index, name)
    await hear(partition, await call(partition))
  }

  const open = async (partition: Partition, name: string) => {
    const { registeredFor } = partition
    partition.distrusted = false
    // Where it may not, the next beat asks again.
    if (!(await options.mayEnter(partition.index))) return
    if (partition.distrusted || partition.registeredFor !== registeredFor || !redis.isReady()) return
    options.stands(partition.index)
    partition.epoch = name
    partition.registeredFor = ''
    partition.distrusted = false
    wake(partition)
  }

  const withdraw = (partition: Partition) => {
    partition.registeredFor = ''
    wake(partition)
  }

  const wake = (partition: Partition) => {
    for (const go of partition.waiting.splice(0)) go()
  }

  const beat = async () => {
    const now = monotonic()
    const due = all.filter(
      one =>
        now - one.beatAt >= (one.epoch === null || one.distrusted ? busyBeatMs : calmBeatMs) - 5 &&
        !options.isBarred(one.index),
    )
    await Promise.all(due.map(beatOne))
  }

  const isRegistered = (index: number) => {
    const { registeredFor, epoch, distrusted } = at(index)
    return registeredFor !== '' && epoch === null && !distrusted && redis.isReady()
  }

  redis.onChange(isReady => {
    if (isReady) {
      void beat()
      return
    }
    for (const partition of all) withdraw(partition)
  })
  const timer = setInterval(() => void beat(), busyBeatMs)
  timer.unref()

  return {
    epochOf(index) {
      const { epoch, distrusted } = at(index)
      return redis.isReady() && !distrusted ? epoch : null
    },
    settledSoon(index, deadlineMs) {
      const partition = at(index)
      if (!isRegistered(index)) return null
      return new Promise(done => {
        const late = setTimeout(done, deadlineMs)
        partition.waiting.push(() => {
          clearTimeout(late)
          done()
        })
      })
    },
    isRegistered,
    lost(index) {
      const partition = at(index)
      if (partition.epoch === null) return
      partition.epoch = null
      void beatOne(partition)
    },
    distrust(index) {
      at(index).distrusted = true
    },
    gatewaysIn: index => Math.max(1, at(index).siblings.length),
    beat,
    async close() {
      clearInterval(timer)
    },
  }
}
