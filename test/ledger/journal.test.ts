import { afterEach, beforeEach, expect, test } from 'bun:test'
import { fsync, mkdirSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { AttemptRecord, UsageRecord } from '../../src/core/usage/usage-record.ts'
import { type JournalOptions, JournalUnwritable, openJournal } from '../../src/ledger/journal.ts'
import { toLine } from '../../src/ledger/record-lines.ts'
import { temporaryFolder, usageRecord } from '../database/support.ts'
import { cpuMs } from '../harness/cpu.ts'
import { eventually } from '../harness/eventually.ts'

let folder = { path: '', remove: () => {} }
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder.remove())

const open = (changes: Partial<JournalOptions> = {}) =>
  openJournal({ directory: join(folder.path, 'journal'), ...changes })
const files = () => readdirSync(join(folder.path, 'journal')).sort()
const record = (index: number) => usageRecord({ request_id: `req_${index}`, metadata: { note: 'ü\n"' } })

const toRecords = (batch: ReturnType<ReturnType<typeof open>['take']>) =>
  (batch?.texts ?? []).map((text): UsageRecord => JSON.parse(text))

function shipAll(journal: ReturnType<typeof open>, maximum = 7): string[] {
  const ids: string[] = []
  for (let batch = journal.take(maximum); batch !== null; batch = journal.take(maximum)) {
    ids.push(...toRecords(batch).map(item => item.request_id))
    batch.release()
  }
  return ids
}

test('journal: ships appended records once in order and removes them from disk', async () => {
  const journal = open({ segmentBytes: 4096 })
  for (let index = 0; index < 100; index++) journal.append(record(index))
  expect(journal.backlog()).toBe(100)
  expect(files().length).toBeGreaterThan(5)
  expect(shipAll(journal)).toEqual(Array.from({ length: 100 }, (_, index) => `req_${index}`))
  expect(journal.take(1)).toBeNull()
  await journal.close()
  expect(files()).toEqual([])
})

test('journal: keeps the cost of web access, and reads records without it', async () => {
  const journal = open()
  journal.append(record(1))
  journal.append({ ...record(2), search_microcents: 20, fetch_microcents: 5 })
  await journal.close()
  const records = toRecords(open().take(10))
  expect(records).toEqual([record(1), { ...record(2), search_microcents: 20, fetch_microcents: 5 }])
  expect(records[0]).not.toHaveProperty('search_microcents')
})

test('journal: reads records of the previous version, and of the next with unknown fields', async () => {
  const journal = open()
  const tried: UsageRecord['tried'] = [
    ['openai/gpt-test', 'timeout', 2, 3000],
    ['google/gemini-test', 'served', 3004, 800],
  ]
  const next = { ...record(3), tried, heard_of: 'later' }
  for (const item of [record(1), { ...record(2), tried }, next]) journal.append(item)
  await journal.close()
  expect<unknown>(toRecords(open().take(10))).toEqual([record(1), { ...record(2), tried }, next])
})

test('journal: rejects a record with an unknown outcome or too many attempts', async () => {
  const journal = open()
  const pair: AttemptRecord = ['openai/gpt-test', 'timeout', 0, 1]
  for (const tried of [[['openai/gpt-test', 'the words of an upstream', 0, 1]], [pair, pair, pair, pair]])
    journal.append({ ...record(1), tried } as UsageRecord)
  await journal.close()
  expect(open().take(10)).toBeNull()
})

test('journal: returns an unreleased batch again', () => {
  const journal = open()
  journal.append(record(1))
  expect(toRecords(journal.take(10))).toEqual([record(1)])
  expect(toRecords(journal.take(10))).toEqual([record(1)])
})

test('journal: creates its folder with mode 0700 and files with 0600 [C5]', () => {
  open().append(record(1))
  expect(statSync(join(folder.path, 'journal')).mode & 0o777).toBe(0o700)
  expect(statSync(join(folder.path, 'journal', files()[0] ?? '')).mode & 0o777).toBe(0o600)
})

test('journal: writes a record before append returns, so it survives kill -9', async () => {
  const script = `
    const { openJournal } = await import(${JSON.stringify(new URL('../../src/ledger/journal.ts', import.meta.url).pathname)})
    const journal = openJournal({ directory: ${JSON.stringify(join(folder.path, 'journal'))} })
    for (const record of ${JSON.stringify([1, 2, 3].map(record))}) journal.append(record)
    process.kill(process.pid, 'SIGKILL')`
  await Bun.spawn([process.execPath, '-e', script]).exited
  expect(shipAll(open())).toEqual(['req_1', 'req_2', 'req_3'])
})

test('journal: writes records of one turn together before their promise resolves', async () => {
  let writes = 0
  const counted = (...call: Parameters<typeof writeSync>) => {
    writes++
    return writeSync(...call)
  }
  const journal = open({ system: { write: counted as typeof writeSync, fsync } })
  const handed = [1, 2, 3].map(index => journal.appendTogether(record(index)))
  expect([journal.backlog(), writes]).toEqual([3, 0])
  await handed[0]
  expect(writes).toBe(1)
  expect(shipAll(open())).toEqual(['req_1', 'req_2', 'req_3'])
})

test('journal: writes pending records before it closes', async () => {
  const journal = open()
  void journal.appendTogether(record(1))
  await journal.close()
  expect(shipAll(open())).toEqual(['req_1'])
})

test('journal: rejects and keeps all records of a turn when the disk is full', async () => {
  let full = true
  const filling = (...call: Parameters<typeof writeSync>) => {
    if (full) throw new Error('ENOSPC')
    return writeSync(...call)
  }
  const journal = open({ system: { write: filling as typeof writeSync, fsync } })
  const handed = await Promise.allSettled([1, 2].map(index => journal.appendTogether(record(index))))
  expect(handed.map(item => item.status === 'rejected' && item.reason)).toEqual([
    expect.any(JournalUnwritable),
    expect.any(JournalUnwritable),
  ])
  const kept = [1, 2].map(index => journal.untilDurable(`req_${index}`, 10_000))
  full = false
  await eventually(() => journal.isWritable(), 10_000)
  await Promise.all(kept)
  expect(shipAll(journal)).toEqual(['req_1', 'req_2'])
})

test('journal: resolves untilDurable only after the write', async () => {
  const journal = open()
  void journal.appendTogether(record(1))
  await journal.untilDurable('req_1', 1000)
  expect(shipAll(open())).toEqual(['req_1'])
})

test('journal: reads only complete lines when truncated at any byte and replayed twice', async () => {
  const journal = open()
  const ends: number[] = []
  const path = () => join(folder.path, 'journal', files()[0] ?? '')
  for (let index = 0; index < 3; index++) {
    journal.append(record(index))
    ends.push(statSync(path()).size)
  }
  await journal.close()
  const whole = readFileSync(path())
  for (let cut = 0; cut <= whole.length; cut++) {
    const directory = join(folder.path, `cut-${cut}`)
    mkdirSync(directory)
    writeFileSync(join(directory, '000000000001.log'), whole.subarray(0, cut))
    const expected = ends.flatMap((end, index) => (end <= cut ? [`req_${index}`] : []))
    const damage: string[] = []
    // The first replay dies before it releases anything.
    const first = openJournal({ directory, onDamage: detail => damage.push(detail) })
    expect(toRecords(first.take(10)).map(item => item.request_id)).toEqual(expected)
    await first.close()
    const second = openJournal({ directory })
    expect(shipAll(second)).toEqual(expected)
    await second.close()
    expect(readdirSync(directory)).toEqual([])
    expect(damage).toEqual([])
  }
})

test('journal: loses and reports only the damaged line when a byte changes', async () => {
  const journal = open()
  for (let index = 0; index < 3; index++) journal.append(record(index))
  await journal.close()
  const path = join(folder.path, 'journal', files()[0] ?? '')
  const bytes = readFileSync(path)
  bytes[Math.floor(bytes.length / 2)] = 0x7f
  writeFileSync(path, bytes)
  const damage: string[] = []
  expect(shipAll(open({ onDamage: detail => damage.push(detail) }))).toEqual(['req_0', 'req_2'])
  expect(damage.length).toBeGreaterThan(0)
})

test('journal: keeps unreleased records over a restart, with new ones', async () => {
  const first = open()
  for (let index = 0; index < 10; index++) first.append(record(index))
  first.take(4)?.release()
  await first.close()
  const second = open()
  second.append(record(10))
  const ids = new Set(shipAll(second))
  for (let index = 4; index <= 10; index++) expect(ids.has(`req_${index}`)).toBe(true)
  await second.close()
  expect(files()).toEqual([])
})

test('journal: reads lines with and without learning data', async () => {
  const [old, none] = [record(1), { ...record(2), learning: null }]
  const lesson = {
    quality: 0.75,
    epoch: null,
    influenced: true,
    choice_probability: 0.995,
    enhanced: false,
    repeat_of: 'req_1',
  }
  const taught = { ...record(3), learning: lesson }
  const first = open()
  for (const item of [old, none, taught]) first.append(item)
  await first.close()
  const second = open()
  expect(toRecords(second.take(10))).toEqual([old, none, taught])
  await second.close()
})

test('journal: finds unshipped records by account and day, also in segments on disk', () => {
  const journal = open({ segmentBytes: 1000 })
  for (let index = 0; index < 20; index++) journal.append(record(index))
  journal.append(usageRecord({ request_id: 'other', account_id: 'acc_2' }))
  journal.append(usageRecord({ request_id: 'later', at_ms: record(0).at_ms + 86_400_000 }))
  while (journal.backlog() > 17) journal.take(1)?.release()
  const day = Math.floor(record(0).at_ms / 86_400_000)
  expect(journal.unshipped('acc_1', day).map(item => item.request_id)).toEqual(
    Array.from({ length: 15 }, (_, index) => `req_${index + 5}`),
  )
})

test('journal: reads no file for an account without records', async () => {
  const first = open({ segmentBytes: 1000 })
  for (let index = 0; index < 20; index++) first.append(record(index))
  first.append(usageRecord({ request_id: 'other', account_id: 'acc_2' }))
  await first.close()
  const journal = open()
  const day = Math.floor(record(0).at_ms / 86_400_000)
  // The files that would have to be read no longer exist.
  for (const file of files().slice(0, -1)) unlinkSync(join(folder.path, 'journal', file))
  expect(journal.unshipped('acc_2', day).map(item => item.request_id)).toEqual(['other'])
  expect(journal.unshipped('acc_3', day)).toEqual([])
  expect(() => journal.unshipped('acc_1', day)).toThrow('ENOENT')
  await journal.close()
})

const full = (after: number) => {
  const disk = { isFull: true, room: after }
  const write: typeof writeSync = (descriptor: number, data: string | NodeJS.ArrayBufferView, ...rest: unknown[]) => {
    if (disk.isFull && disk.room <= 0) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
    const bytes = Buffer.from(data as Uint8Array).subarray(Number(rest[0] ?? 0))
    const part = disk.isFull ? bytes.subarray(0, disk.room) : bytes
    disk.room -= part.length
    return writeSync(descriptor, part)
  }
  return { disk, write }
}

test('journal: keeps a record in memory and rejects new work while the disk is full', async () => {
  const { disk, write } = full(100)
  const journal = open({ system: { write, fsync } })
  expect(() => journal.append(record(1))).toThrow(JournalUnwritable)
  expect(journal.isWritable()).toBe(false)
  expect(statSync(join(folder.path, 'journal', files()[0] ?? '')).size).toBe(0)
  const durable = journal.untilDurable('req_1', 2000)
  await expect(journal.untilDurable('req_1', 5)).rejects.toBeInstanceOf(JournalUnwritable)
  disk.isFull = false
  const again = journal.untilDurable('req_1', 10_000)
  await eventually(() => journal.isWritable(), 10_000)
  await again
  expect(journal.backlog()).toBe(1)
  await journal.close()
  expect(shipAll(open())).toEqual(['req_1'])
  durable.catch(() => {})
})

test('journal: ships records from memory when the disk is full', async () => {
  const { write } = full(0)
  const journal = open({ system: { write, fsync } })
  expect(() => journal.append(record(1))).toThrow(JournalUnwritable)
  const durable = journal.untilDurable('req_1', 2000)
  expect(shipAll(journal)).toEqual(['req_1'])
  await durable
  expect(journal.isWritable()).toBe(true)
})

test('journal: rejects new work, but no record, from its bound on until records are shipped, also after a restart', async () => {
  const bytes = Buffer.byteLength(toLine(JSON.stringify(record(1))))
  const bounded = { maximumBytes: bytes * 4, segmentBytes: bytes * 2 }
  const journal = open(bounded)
  for (const index of [1, 2, 3]) journal.append(record(index))
  expect([journal.fill(), journal.isWritable()]).toEqual([0.75, true])
  for (const index of [4, 5]) journal.append(record(index))
  expect([journal.fill(), journal.isWritable()]).toEqual([1.25, false])
  await journal.close()
  const again = open(bounded)
  expect([again.fill(), again.isWritable()]).toEqual([1.25, false])
  again.take(2)?.release()
  expect([again.fill(), again.isWritable()]).toEqual([0.75, true])
  expect(shipAll(again)).toEqual(['req_3', 'req_4', 'req_5'])
  expect(again.fill()).toBe(0)
})

test('journal: moves records to a new file after a failed fsync', async () => {
  let failures = 1
  const failing = ((descriptor: number, done: (error: NodeJS.ErrnoException | null) => void) =>
    failures-- > 0
      ? queueMicrotask(() => done(Object.assign(new Error('EIO'), { code: 'EIO' })))
      : fsync(descriptor, done)) as typeof fsync
  const damage: string[] = []
  const journal = open({
    fsyncEveryMs: 10,
    system: { write: writeSync, fsync: failing },
    onDamage: detail => damage.push(detail),
  })
  journal.append(record(1))
  const [dead] = files()
  await eventually(() => damage.length > 0 && !files().includes(dead ?? ''), 5_000)
  expect(damage).toHaveLength(1)
  journal.append(record(2))
  expect(journal.backlog()).toBe(2)
  await journal.close()
  expect(shipAll(open())).toEqual(['req_1', 'req_2'])
})

test('journal: keeps a rejected record once, counts it for its account, and ships it again after the next start', async () => {
  const journal = open()
  for (const item of [record(1), record(1), record(2)]) journal.setAside(item)
  expect([journal.aside(), journal.backlog()]).toEqual([2, 0])
  const { account_id, at_ms } = record(1)
  const day = Math.floor(at_ms / 86_400_000)
  expect(journal.unshipped(account_id, day).map(item => item.request_id)).toEqual(['req_1', 'req_2'])
  await journal.close()
  expect(files()).toEqual(['refused.log'])
  const second = open()
  expect([second.aside(), second.backlog()]).toEqual([0, 2])
  expect(shipAll(second)).toEqual(['req_1', 'req_2'])
  await second.close()
  expect(files()).toEqual([])
})

test('journal: leaves rejected records where they are when the disk is full at the start', async () => {
  const journal = open()
  journal.setAside(record(1))
  await journal.close()
  const damage: string[] = []
  const full = (() => {
    throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
  }) as typeof writeSync
  const second = open({ system: { write: full, fsync }, onDamage: detail => damage.push(detail) })
  expect([second.aside(), second.backlog(), damage.length]).toEqual([1, 0, 1])
  await second.close()
  expect(open().backlog()).toBe(1)
})

test('journal: appends at low cost', () => {
  const journal = open()
  for (let index = 0; index < 2000; index++) journal.append(record(index))
  const started = cpuMs()
  for (let index = 0; index < 2000; index++) journal.append(record(index))
  const each = ((cpuMs() - started) / 2000) * 1000
  process.stdout.write(`journal append: ${each.toFixed(1)} µs\n`)
  expect(each).toBeLessThan(2_000)
})
