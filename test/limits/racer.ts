/** One instance's meter, journal and shipper in a separate process, controlled by its parent. */
import { join } from 'node:path'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { systemClock } from '../../src/database/clock.ts'
import { openDatabase } from '../../src/database/database.ts'
import { openCheckpoints } from '../../src/ledger/checkpoints.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { createLimitLedger } from '../../src/ledger/ledger.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import type { AdmissionRequest, Reservation } from '../../src/limits/meter.ts'
import { SharedMeter } from '../../src/limits/shared.ts'
import { patient, patientStore } from '../harness/patience.ts'
import { settlement } from './meter.contract.ts'
import { openLimitRedis } from './rig.ts'

export type RacerSettings = {
  /** One URL, or those of a cluster's nodes separated by commas. */
  readonly redis: string
  readonly database: string
  readonly folder: string
  readonly id: string
  readonly leaseMs?: number
  /** Deadline of a Redis command, for tests of a Redis that does not answer. */
  readonly redisMs?: number
  /** How long a client retries a 503. */
  readonly asksAgainMs?: number
}

/** Commands of the parent process. */
export type Order =
  | { readonly kind: 'shared' }
  | { readonly kind: 'race'; readonly request: AdmissionRequest; readonly count: number; readonly withinMs: number }
  | {
      readonly kind: 'settle'
      readonly tokens: number
      readonly microcents: number
      readonly tags?: Record<string, string>
    }
  | { readonly kind: 'checkpoint'; readonly tokens: number; readonly microcents: number }
  | { readonly kind: 'renew' }
  | { readonly kind: 'drain' }

/** Result of a race: the admitted requests, and the others by code. */
export type Outcome = {
  readonly ok: boolean
  readonly admitted: number
  readonly refused: Readonly<Record<string, number>>
  /** Attempts that got 503, each followed by another one. What such an attempt reserved is released 1.5 s later. */
  readonly undecided: number
  /** Maximum of single attempts. */
  readonly slowestMs: number
}

const settings = JSON.parse(process.argv[2] ?? '{}') as RacerSettings
const log = { warn() {}, error() {} }
const database = openDatabase(settings.database, patientStore)
const journal = openJournal({ directory: join(settings.folder, 'journal') })
const checkpoints = openCheckpoints(join(settings.folder, 'journal'))
const left = journal.waiting()
checkpoints.settleLeft(record => {
  left.push(record)
  journal.append(record)
})
const { keys, redis } = openLimitRedis(settings.redis.split(','), settings.redisMs)
const meter = new SharedMeter({
  redis,
  keys,
  ledger: createLimitLedger(database),
  clock: systemClock,
  journal,
  checkpoints,
  gatewayId: settings.id,
  leaseMs: settings.leaseMs ?? 15_000,
  deadlines: patient,
  onEvent: (event, detail) => {
    if (process.env.RACER_EVENTS !== undefined) process.stderr.write(`${settings.id} ${event}: ${detail}\n`)
  },
})
meter.takeOver(left)
const shipper = createShipper({ journal, database, clock: systemClock, log })

/** A client with 503 retries as the response advises: a starved machine may decide late, never wrongly. */
const { asksAgainMs = 60_000 } = settings

const reservations: Reservation[] = []
let asked = 0

async function race(request: AdmissionRequest, count: number, withinMs: number): Promise<Outcome> {
  const refused: Record<string, number> = {}
  let admitted = 0
  let undecided = 0
  let slowestMs = 0
  const askOnce = async (): Promise<string | null> => {
    const startedAt = performance.now()
    try {
      const admission = await meter.admit({ ...request, requestId: `${settings.id}-${asked++}` })
      if (!admission.admitted) return admission.code
      admitted++
      reservations.push(admission.reservation)
      return null
    } catch (cause) {
      return cause instanceof GatewayError ? cause.code : String(cause)
    } finally {
      slowestMs = Math.max(slowestMs, performance.now() - startedAt)
    }
  }
  const item = async (index: number) => {
    await Bun.sleep((withinMs * index) / count)
    const lastAskedAt = performance.now() + asksAgainMs
    let code = await askOnce()
    while (code === 'service_unavailable' && performance.now() < lastAskedAt) {
      undecided++
      await Bun.sleep(200)
      code = await askOnce()
    }
    if (code !== null) refused[code] = (refused[code] ?? 0) + 1
  }
  await Promise.all(Array.from({ length: count }, (_, index) => item(index)))
  return { ok: true, admitted, refused, undecided, slowestMs }
}

async function obey(order: Order): Promise<Outcome> {
  const done = { ok: true, admitted: 0, refused: {}, undecided: 0, slowestMs: 0 }
  switch (order.kind) {
    case 'shared':
      return { ...done, ok: meter.isShared() }
    case 'race':
      return race(order.request, order.count, order.withinMs)
    case 'settle': {
      const { tokens, microcents, tags } = order
      const settle = (reservation: Reservation) => {
        const end = settlement(reservation, tokens, microcents, Date.now())
        return meter.settle(tags === undefined ? end : { ...end, record: { ...end.record, tags } })
      }
      await Promise.all(reservations.splice(0).map(settle))
      return done
    }
    case 'checkpoint':
      for (const reservation of reservations)
        meter.checkpoint(reservation, () =>
          settlement(reservation, order.tokens, order.microcents, reservation.day * 86_400_000),
        )
      return done
    case 'renew':
      await meter.renew()
      return done
    case 'drain':
      return { ...done, ok: await shipper.drain(5000) }
    default:
      return order satisfies never
  }
}

process.on('message', (message: { readonly id: number; readonly order: Order }) => {
  obey(message.order).then(
    outcome => process.send?.({ id: message.id, outcome }),
    cause =>
      process.send?.({
        id: message.id,
        outcome: { ok: false, admitted: 0, refused: { [String(cause)]: 1 }, undecided: 0, slowestMs: 0 },
      }),
  )
})
