import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { openCheckpoints } from '../../src/ledger/checkpoints.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { openOwnRecords } from '../../src/ledger/take-over.ts'
import { temporaryFolder, usageRecord } from '../database/support.ts'

let folder = { path: '', remove: () => {} }
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder.remove())

const record = (id: string, output: number) => usageRecord({ request_id: id, output_tokens: output })
const batch = (...records: UsageRecord[]) => new Map(records.map(item => [item.request_id, item]))
const left = () => {
  const settled: UsageRecord[] = []
  const checkpoints = openCheckpoints(folder.path)
  checkpoints.settleLeft(item => void settled.push(item))
  checkpoints.close()
  return settled
}

test('checkpoints: return the last checkpoint of each open request once after a kill', async () => {
  const source = (name: string) => JSON.stringify(new URL(`../../src/${name}`, import.meta.url).pathname)
  const script = `
    const { openCheckpoints } = await import(${source('ledger/checkpoints.ts')})
    const { createMemoryMeter } = await import(${source('limits/memory.ts')})
    const meter = createMemoryMeter({
      clock: Date,
      journal: { append() {}, appendTogether: async () => {}, isWritable: () => true, untilDurable: async () => {} },
      seed: async () => ({ tokens: 0, microcents: 0 }),
      checkpoints: openCheckpoints(${JSON.stringify(folder.path)}),
    })
    const record = ${JSON.stringify(record('', 0))}
    const limits = { requestsPerMinute: 9, concurrentRequests: 9, dailyTokens: 1e6, dailyCostMicrocents: 1e9 }
    const open = async id => (await meter.admit({ requestId: id, accountId: 'acc_1', limits, scopes: [], inputTokens: 1,
      outputTokens: 99, choices: 1, fairShare: false, inputPrice: 0, outputPrice: 1e8, extraMicrocents: 0 })).reservation
    const note = (reservation, tokens) => meter.checkpoint(reservation, () => ({ record: { ...record,
      request_id: reservation.requestId, output_tokens: tokens, billed_microcents: tokens * 100, at_ms: Date.now() } }))
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(open))
    const text = () => Bun.file(${JSON.stringify(join(folder.path, 'open-requests'))}).text().catch(() => '')
    note(a, 5); note(b, 6)
    while (!(await text()).includes('"request_id":"b"')) await Bun.sleep(10)
    note(a, 7); note(c, 8)
    await meter.settle({ reservation: b, record: { ...record, request_id: 'b' } })
    while (!(await text()).includes('"request_id":"c"')) await Bun.sleep(10)
    note(a, 9)
    process.kill(process.pid, 'SIGKILL')`
  await Bun.spawn([process.execPath, '-e', script]).exited
  const settled = left()
  expect(settled.map(item => [item.request_id, item.output_tokens, item.billed_microcents])).toEqual([
    ['a', 7, 700],
    ['c', 8, 800],
  ])
  expect(left()).toEqual([])
})

test('checkpoints: ignore a truncated line', () => {
  const checkpoints = openCheckpoints(folder.path)
  checkpoints.write(batch(record('a', 1)), [])
  checkpoints.close()
  appendFileSync(join(folder.path, 'open-requests'), '0badc0de {"request_id":"a","output_tok')
  expect(left().map(item => item.output_tokens)).toEqual([1])
})

test('checkpoints: use mode 0600 and do not grow with ended requests [C5]', () => {
  const checkpoints = openCheckpoints(folder.path)
  for (let index = 0; index < 1000; index++) {
    checkpoints.write(batch(record(`r${index}`, 1)), [])
    checkpoints.write(new Map(), [`r${index}`])
  }
  checkpoints.close()
  const file = statSync(join(folder.path, 'open-requests'))
  expect(file.mode & 0o777).toBe(0o600)
  expect(file.size).toBeLessThan(70_000)
  expect(left()).toEqual([])
})

test.each([
  ['its own folder', '.'],
  ['the folder of a worker that is gone', 'worker-2'],
])('openOwnRecords: takes the final record from %s and not the checkpoint before it', async (_, name) => {
  const left = join(folder.path, name)
  const journal = openJournal({ directory: join(left, 'journal') })
  const checkpoints = openCheckpoints(join(left, 'journal'))
  checkpoints.write(batch(record('a', 5), record('b', 6)), [])
  journal.append(record('a', 50))
  await journal.close()
  checkpoints.close()
  const folders = { dataDirectory: folder.path, ownDirectory: folder.path, worker: null, processes: 1 }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const own = openOwnRecords({ ...folders, journalMaximumBytes: 1e9 }, log)
  expect(own.unreported.map(item => [item.request_id, item.output_tokens]).sort()).toEqual([
    ['a', 50],
    ['b', 6],
  ])
  own.checkpoints.close()
  await own.journal.close()
})
