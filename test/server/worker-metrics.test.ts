import { expect, test } from 'bun:test'
import { createCounter, createHistogram, exposition, mergeWorkers } from '../../src/observability/instruments.ts'
import { sendToProcess } from '../../src/server/launcher.ts'
import {
  createGathering,
  createSiblings,
  type FiguresMessage,
  type WorkerPeers,
} from '../../src/server/worker-metrics.ts'
import { patient } from '../harness/patience.ts'
import { scrape } from '../harness/prometheus.ts'

/** Workers and their supervisor, connected as by pipes; those in `deaf` receive nothing. */
function family(count: number, deaf: readonly number[] = []) {
  const answerMs = deaf.length === 0 ? patient.workerFiguresMs : 1
  const gathering = createGathering(answerMs)
  const pass = <T>(message: T): T => JSON.parse(JSON.stringify(message))
  const workers: { siblings: WorkerPeers; peer: { send(message: FiguresMessage): void } }[] = []
  for (let worker = 1; worker <= count; worker++) {
    const things = createCounter({ name: 'things_total', help: 'Things.', axes: [] })
    const times = createHistogram({ name: 'took_seconds', help: 'Time.', axes: [], bounds: [1] })
    things.add(worker)
    times.observe(worker)
    const peer = {
      send(message: FiguresMessage) {
        if (!deaf.includes(worker)) queueMicrotask(() => siblings.hear(pass(message)))
      },
    }
    const up = (message: FiguresMessage) =>
      queueMicrotask(() =>
        gathering.hear(
          peer,
          pass(message),
          workers.map(item => item.peer),
        ),
      )
    const siblings = createSiblings({ worker, answerMs: patient.workerFiguresMs }, { send: up }, () => [
      things.family(),
      times.family(),
    ])
    workers.push({ siblings, peer })
  }
  return workers.map(({ siblings }) => siblings)
}

test('worker metrics: contain all workers in every scrape, each series under its worker', async () => {
  for (const siblings of family(3)) {
    const { sum, values } = scrape(exposition(mergeWorkers(await siblings.gather())))
    for (const worker of [1, 2, 3]) {
      expect(values.get(`things_total{worker="${worker}"}`)).toBe(worker)
      expect(sum('took_seconds_bucket', { worker: String(worker), le: '1' })).toBe(worker === 1 ? 1 : 0)
    }
    expect(sum('took_seconds_count')).toBe(3)
  }
})

test('worker metrics: separate concurrent scrapes', async () => {
  const all = family(2)
  const found = await Promise.all([...all, ...all].map(siblings => siblings.gather()))
  for (const figures of found) expect(figures.map(({ worker }) => worker).sort()).toEqual([1, 2])
})

test('worker metrics: consist of one worker if there are no others', async () => {
  const [only] = family(1)
  expect((await only?.gather())?.map(({ worker }) => worker)).toEqual([1])
})

test('worker metrics: omit a worker that does not answer after the deadline', async () => {
  const [first] = family(3, [2])
  expect((await first?.gather())?.map(({ worker }) => worker).sort()).toEqual([1, 3])
})

test('worker metrics: contain only the own figures without a supervisor', async () => {
  const alone = createSiblings({ worker: 4, answerMs: 1 }, { send() {} }, () => [])
  expect((await alone.gather()).map(({ worker }) => worker)).toEqual([4])
})

test('worker metrics: reach the other workers when one has closed its end or has ended', async () => {
  const hangUp = 'process.disconnect(); setTimeout(() => {}, 10_000)'
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const child = Bun.spawn([process.execPath, '-e', hangUp], { ipc() {}, onDisconnect: () => resolve() })
  await closed
  sendToProcess(child, 'SIGTERM')
  child.kill()
  await child.exited
  sendToProcess(child, 'SIGTERM')
})
