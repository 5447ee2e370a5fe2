/**
 * Limits owned by one process and used by others: over a connection that can be paused and cut, and with real
 * processes.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createLocalRateLimiters } from '../../src/core/limits/rate-limits.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { lockDataFolder } from '../../src/database/data-folder.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { openOwnRecords } from '../../src/ledger/take-over.ts'
import { createLocalMeter } from '../../src/limits/local/meter.ts'
import type { AdmissionRequest } from '../../src/limits/meter.ts'
import { createOwnerClient } from '../../src/limits/owner/client.ts'
import { listenLocally } from '../../src/limits/owner/local-socket.ts'
import type { OwnerMessage, WorkerMessage } from '../../src/limits/owner/messages.ts'
import { createOwnerService } from '../../src/limits/owner/service.ts'
import { movableClock, temporaryFolder, usageRecord } from '../database/support.ts'
import { eventually } from '../harness/eventually.ts'
import { admitted, meterContract, send, settlement, wide } from './meter.contract.ts'
import type { OwnedOrder, OwnedOutcome } from './owned-racer.ts'

type Clock = { now(): number }

/** Creates an owner with its journal, and workers on simulated connections. */
function startOwner(clock: Clock = movableClock()) {
  const written: UsageRecord[] = []
  const journal = {
    async appendTogether(record: UsageRecord) {
      written.push(record)
    },
    isWritable: () => true,
    untilDurable: async () => {},
  }
  let spent = async () => ({ tokens: 0, microcents: 0 })
  const meter = createLocalMeter({ clock, journal, seed: () => spent() })
  const service = createOwnerService({ meter, limits: createLocalRateLimiters(clock), spent: () => spent() })
  return {
    meter,
    service,
    written,
    /** Sets the usage that the ledger returns from now on. */
    seedWith(next: typeof spent) {
      spent = next
    },
    join: (worker: number, deadlineMs?: number) => joinOwner(service, clock, worker, deadlineMs),
  }
}

/** Creates a worker on a connection that keeps the order of messages and holds them while paused. */
function joinOwner(service: ReturnType<typeof createOwnerService>, clock: Clock, worker: number, deadlineMs = 60_000) {
  const own: UsageRecord[] = []
  const held: (() => void)[] = []
  let isStopped = false
  let hints = 0
  const deliver = (action: () => void) => (isStopped ? void held.push(action) : queueMicrotask(action))
  const connection = service.connect((message: OwnerMessage) => {
    const text = JSON.stringify(message)
    deliver(() => client.receive(JSON.parse(text)))
  })
  const client = createOwnerClient({
    worker,
    clock,
    deadlineMs,
    send(message: WorkerMessage) {
      const text = JSON.stringify(message)
      deliver(() => connection.receive(JSON.parse(text)))
    },
    journal: () => ({
      appendTogether: async record => void own.push(record),
      isWritable: () => true,
      untilDurable: async () => {},
    }),
    onChanged: () => hints++,
  })
  return {
    ...client,
    own,
    hints: () => hints,
    stopWire() {
      isStopped = true
    },
    startWire() {
      isStopped = false
      for (const action of held.splice(0)) action()
    },
    /** Like the kernel for a killed process. */
    die: () => connection.close(),
  }
}

meterContract('asked over a wire', async () => {
  const clock = movableClock()
  const owner = startOwner(clock)
  const worker = owner.join(1)
  return { meter: worker.meter, clock, records: async () => owner.written, close: () => worker.meter.close() }
})

const item: AdmissionRequest['limits'] = { ...wide, concurrentRequests: 1 }

describe('limits owner', () => {
  test('grants the last free request of an account to one worker, and again after its settlement', async () => {
    const owner = startOwner()
    const workers = [owner.join(1), owner.join(2)]
    const admissions = await Promise.all(
      workers.map(({ meter }, index) => meter.admit(send(`r${index}`, { limits: item }))),
    )
    expect(admissions.map(admission => admission.admitted).sort()).toEqual([false, true])
    const reservations = admissions.flatMap(admission => (admission.admitted ? [admission.reservation] : []))
    // Any worker may settle it.
    for (const reservation of reservations)
      await workers[1]?.meter.settle(settlement(reservation, 10, 10, reservation.day * 86_400_000))
    expect((await workers[0]?.meter.admit(send('r3', { limits: item })))?.admitted).toBe(true)
  })

  test("settles a dead worker's open requests to the last report and releases the others", async () => {
    const owner = startOwner()
    const [dying, living] = [owner.join(1), owner.join(2)]
    const two = { ...wide, concurrentRequests: 2 }
    const reported = admitted(await dying.meter.admit(send('reported', { limits: two })))
    await dying.meter.admit(send('silent', { limits: two }))
    expect((await living.meter.admit(send('early', { limits: two }))).admitted).toBe(false)
    dying.meter.checkpoint(reported, () => settlement(reported, 77, 55, reported.day * 86_400_000))
    await dying.meter.close()
    await Bun.sleep(0)
    await dying.die()
    expect(owner.written).toMatchObject([{ request_id: 'reported', input_tokens: 77, billed_microcents: 55 }])
    const quotaStatus = owner.meter.quotaStatus('acc_1', two)
    expect(quotaStatus).toMatchObject({ reservations: { remaining: 2 }, tokens: { remaining: two.dailyTokens - 77 } })
    expect((await living.meter.admit(send('late', { limits: two }))).admitted).toBe(true)
  })

  test('releases an admission whose worker died or stopped waiting during the load', async () => {
    const owner = startOwner()
    const { promise: read, resolve } = Promise.withResolvers<{ tokens: number; microcents: number }>()
    owner.seedWith(() => read)
    const [dying, late, next] = [owner.join(1), owner.join(2, 1), owner.join(3)]
    void dying.meter.admit(send('dying', { limits: item })).catch(() => {})
    await expect(late.meter.admit(send('late', { limits: item }))).rejects.toMatchObject({
      status: 503,
      retryAfterMs: 1000,
    })
    await dying.die()
    resolve({ tokens: 0, microcents: 0 })
    await Bun.sleep(0)
    expect((await next.meter.admit(send('next', { limits: item }))).admitted).toBe(true)
  })

  test('causes 503 when it does not answer, while open requests still end and count once', async () => {
    const owner = startOwner()
    const worker = owner.join(1, 1)
    const reservation = admitted(await worker.meter.admit(send('open', { limits: item })))
    worker.stopWire()
    await expect(worker.meter.admit(send('refused'))).rejects.toMatchObject({ status: 503, retryAfterMs: 1000 })
    await worker.meter.settle(settlement(reservation, 10, 10, reservation.day * 86_400_000))
    expect(worker.own).toMatchObject([{ request_id: 'open', billed_microcents: 10 }])
    worker.startWire()
    await Bun.sleep(0)
    expect(owner.written.map(record => record.request_id)).toEqual(['open'])
    expect(owner.meter.quotaStatus('acc_1', item)).toMatchObject({
      reservations: { remaining: 1 },
      tokens: { remaining: item.dailyTokens - 10 },
    })
  })

  test('rejects at once when gone, and workers keep the records of open requests', async () => {
    const owner = startOwner()
    const worker = owner.join(1)
    const reservation = admitted(await worker.meter.admit(send('open')))
    worker.stopWire()
    const waiting = worker.meter.admit(send('waiting'))
    worker.lost()
    await expect(waiting).rejects.toMatchObject({ status: 503 })
    await expect(worker.meter.admit(send('later'))).rejects.toMatchObject({ status: 503 })
    await worker.meter.settle(settlement(reservation, 10, 10, reservation.day * 86_400_000))
    expect(worker.own.map(record => record.request_id)).toEqual(['open'])
    expect(await worker.drained(0)).toBe(true)
  })

  test('limits the number of waiting calls, except settlements', async () => {
    const owner = startOwner()
    const worker = owner.join(1)
    const reservation = admitted(await worker.meter.admit(send('open')))
    worker.stopWire()
    const waiting = Array.from({ length: 5_000 }, (_, index) => worker.meter.admit(send(`w${index}`)).catch(() => null))
    await expect(worker.meter.admit(send('beyond'))).rejects.toMatchObject({
      status: 503,
      detail: expect.stringContaining('too many calls wait'),
    })
    const settled = worker.meter.settle(settlement(reservation, 10, 10, reservation.day * 86_400_000))
    worker.startWire()
    await Promise.all([...waiting, settled])
    expect(owner.written.map(record => record.request_id)).toEqual(['open'])
  })

  test('forwards changes to other workers and counts rate limiters over all of them', async () => {
    const owner = startOwner()
    const workers = [owner.join(1), owner.join(2), owner.join(3)]
    workers[0]?.changed()
    await Bun.sleep(0)
    expect(workers.map(worker => worker.hints())).toEqual([0, 1, 1])
    const takes = workers.map(worker => worker.limits('attempts', { allowed: 2, windowMs: 60_000 }))
    const waits = await Promise.all(takes.map(limit => limit.take('somebody')))
    expect(waits.filter(wait => wait === 0)).toHaveLength(2)
    expect(waits.filter(wait => wait > 0)).toHaveLength(1)
  })
})

test('worker journals: moves the records of folders without a process, once', async () => {
  const { path, remove } = temporaryFolder()
  const leave = (worker: number, id: string) => {
    mkdirSync(join(path, `worker-${worker}`), { recursive: true })
    openJournal({ directory: join(path, `worker-${worker}`, 'journal') }).append(usageRecord({ request_id: id }))
  }
  leave(1, 'left')
  leave(2, 'held')
  const release = lockDataFolder(join(path, 'worker-2'))
  const failed = () => expect.unreachable()
  const log = { debug: failed, info: failed, warn: failed, error: failed }
  const start = async (worker: number | null, processes: number) => {
    const ownDirectory = worker === null ? path : join(path, `worker-${worker}`)
    const folders = { dataDirectory: path, ownDirectory, worker, processes, journalMaximumBytes: 1 << 30 }
    const { journal, checkpoints, unreported } = openOwnRecords(folders, log)
    const found = journal.waiting().map(record => record.request_id)
    expect(unreported.map(record => record.request_id).toSorted()).toEqual(found.toSorted())
    checkpoints.close()
    await journal.close()
    return found
  }
  expect(await start(null, 1)).toEqual(['left'])
  expect(await start(null, 1)).toEqual(['left'])
  release()
  // Worker 2 has its own folder; that of an earlier single process, and of a third worker, have no process.
  leave(3, 'left_3')
  expect(await start(2, 2)).toEqual(['held'])
  expect(await start(1, 2)).toEqual(['left', 'left_3'])
  expect(await start(null, 1)).toEqual(['left', 'left_3', 'held'])
  remove()
})

describe('worker processes', () => {
  const { path, remove } = temporaryFolder()
  const socket = join(path, 'limits.sock')
  const owner = startOwner({ now: Date.now })
  const stop = listenLocally<WorkerMessage, OwnerMessage>(socket, peer => {
    const connection = owner.service.connect(peer.send)
    return { receive: connection.receive, closed: () => void connection.close() }
  })
  const racers = Array.from({ length: 3 }, () => startRacer(socket))
  afterAll(async () => {
    for (const racer of racers) racer.child.kill('SIGKILL')
    await Promise.all(racers.map(racer => racer.child.exited))
    stop()
    expect(existsSync(socket)).toBe(false)
    remove()
  })

  const places = 40
  // Each costs exactly 1,000 of 1e-8 USD and 11 tokens.
  const unit = { inputTokens: 10, outputTokens: 1, inputPrice: 0, outputPrice: 1_000_000_000 }
  const last: Readonly<Record<string, Partial<AdmissionRequest['limits']>>> = {
    cent: { dailyCostMicrocents: places * 1_000 + 999 },
    token: { dailyTokens: places * 11 + 10 },
    reservation: { concurrentRequests: places },
    minute: { requestsPerMinute: places, concurrentRequests: 1_000 },
  }
  test.each(Object.keys(last))('share the last %s without granting or losing one twice', async name => {
    const limits = { ...wide, concurrentRequests: 1_000, ...last[name] }
    const request = send('', { ...unit, accountId: name, limits })
    const raced = await Promise.all(racers.map(racer => racer.tell({ kind: 'race', request, count: 60 })))
    expect(raced.map(({ failed }) => failed)).toEqual([0, 0, 0])
    expect(raced.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(places)
  })

  test('lose nothing when one is killed: its reservations are released, others stay', async () => {
    const request = send('', { ...unit, accountId: 'killed', limits: { ...wide, concurrentRequests: 10 } })
    const [dying, living] = [startRacer(socket), startRacer(socket)]
    expect(await dying.tell({ kind: 'race', request, count: 4 })).toMatchObject({ admitted: 4 })
    expect(await living.tell({ kind: 'race', request, count: 10 })).toMatchObject({ admitted: 6 })
    dying.child.kill('SIGKILL')
    await dying.child.exited
    await eventually(() => owner.meter.quotaStatus('killed', request.limits)?.reservations.remaining === 4)
    expect(await living.tell({ kind: 'race', request, count: 10 })).toMatchObject({ admitted: 4 })
    living.child.kill('SIGKILL')
    await living.child.exited
  })
})

function startRacer(socket: string) {
  const waiting: ((outcome: OwnedOutcome) => void)[] = []
  const child = Bun.spawn([process.execPath, new URL('owned-racer.ts', import.meta.url).pathname, socket], {
    stdout: 'inherit',
    stderr: 'inherit',
    ipc: (outcome: OwnedOutcome) => waiting.shift()?.(outcome),
  })
  return {
    child,
    tell: (order: OwnedOrder) =>
      new Promise<OwnedOutcome>(done => {
        waiting.push(done)
        child.send(order)
      }),
  }
}
