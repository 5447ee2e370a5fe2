/** Meters in separate processes that race for the limits of one account. */
import { join } from 'node:path'
import type { AdmissionRequest } from '../../src/limits/meter.ts'
import { temporaryFolder } from '../database/support.ts'
import { eventually } from '../harness/eventually.ts'
import { send } from './meter.contract.ts'
import type { Order, Outcome, RacerSettings } from './racer.ts'

export type Race = {
  readonly admitted: number
  readonly refused: Readonly<Record<string, number>>
  /** Attempts that got 503. */
  readonly undecided: number
  readonly slowestMs: number
}

export type Racer = {
  readonly pid: number
  tell(order: Order): Promise<Outcome>
  kill(): Promise<void>
  /** Starts a process on the same folder, after the first one was killed. */
  startAgain(): Racer
}

type Stores = {
  /** One URL, or one per instance. */
  readonly redis: string | readonly string[]
  readonly database: string
  readonly leaseMs?: number
  readonly redisMs?: number
  readonly asksAgainMs?: number
}

/** Starts `count` instances. `stop` ends them and removes their folders. */
export function startRacers(count: number, { redis: redisAt, ...stores }: Stores) {
  const folder = temporaryFolder()
  const all = Array.from({ length: count }, (_, index) => {
    const redis = typeof redisAt === 'string' ? redisAt : (redisAt[index] ?? '')
    const id = `gateway${index}-${Bun.randomUUIDv7().slice(-8)}`
    return startRacer({ ...stores, redis, folder: join(folder.path, `gateway${index}`), id })
  })
  const everyone = (order: Order) => Promise.all(all.map(racer => racer.tell(order)))
  return {
    all,
    everyone,
    /** Resolves when all of them use Redis. */
    shared: (withinMs: number) =>
      eventually(async () => (await everyone({ kind: 'shared' })).every(outcome => outcome.ok), withinMs, 50),
    race: async (request: AdmissionRequest, each: number, withinMs = 0): Promise<Race> =>
      totals(await everyone({ kind: 'race', request, count: each, withinMs })),
    async stop() {
      await Promise.all(all.map(racer => racer.kill()))
      folder.remove()
    },
  }
}

function startRacer(settings: RacerSettings): Racer {
  const waiting = new Map<number, (outcome: Outcome) => void>()
  let orders = 0
  const child = Bun.spawn([process.execPath, new URL('racer.ts', import.meta.url).pathname, JSON.stringify(settings)], {
    stdout: 'inherit',
    stderr: 'inherit',
    ipc(message: { id: number; outcome: Outcome }) {
      waiting.get(message.id)?.(message.outcome)
      waiting.delete(message.id)
    },
  })
  return {
    pid: child.pid,
    tell: order =>
      new Promise<Outcome>(done => {
        waiting.set(++orders, done)
        child.send({ id: orders, order })
      }),
    async kill() {
      child.kill('SIGKILL')
      await child.exited
    },
    startAgain: () => startRacer({ ...settings, id: `${settings.id}-again` }),
  }
}

function totals(outcomes: readonly Outcome[]): Race {
  const refused: Record<string, number> = {}
  for (const outcome of outcomes)
    for (const [code, times] of Object.entries(outcome.refused)) refused[code] = (refused[code] ?? 0) + times
  return {
    admitted: outcomes.reduce((total, outcome) => total + outcome.admitted, 0),
    refused,
    undecided: outcomes.reduce((total, outcome) => total + outcome.undecided, 0),
    slowestMs: Math.max(...outcomes.map(outcome => outcome.slowestMs)),
  }
}

const roomy = {
  requestsPerMinute: 100_000,
  concurrentRequests: 100_000,
  dailyTokens: 1_000_000_000,
  dailyCostMicrocents: 1_000_000_000,
}

/** Each request costs exactly 1,000 of 1e-8 USD and 11 tokens and cannot be reduced. */
export function unit(accountId: string, limits: Partial<AdmissionRequest['limits']>): AdmissionRequest {
  return send('', {
    accountId,
    limits: { ...roomy, ...limits },
    inputTokens: 10,
    outputTokens: 1,
    inputPrice: 0,
    outputPrice: 1_000_000_000,
  })
}
