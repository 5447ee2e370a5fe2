/**
 * Keeps usage records on disk until Postgres has them. A line (`record-lines.ts`) is written in one system call before the
 * client receives the end of the response, so it survives `kill -9`. A grouped `fsync` at most every 200 ms bounds what a
 * power failure can lose. A truncated last line fails its checksum; its client has not received the end.
 *
 * Files are segments, shipped in order and deleted when Postgres has committed them. Only the segments being shipped
 * and written are in memory. Cost: a partly shipped segment is shipped again after a crash, which the ledger's key
 * makes harmless.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { whenNeeded } from '../core/jobs/repeating.ts'
import { formatDay } from '../core/text/utc-days.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { readRecords, toLine, toRecord } from './record-lines.ts'
import { openRecordsAside } from './records-aside.ts'

/** The disk write failed and the record is in memory only. It is still shipped, and written when the disk recovers. */
export class JournalUnwritable extends Error {
  constructor(cause: unknown) {
    super(`The usage journal cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'JournalUnwritable'
  }
}

/** Records to ship as JSON texts, oldest first: as they were written, since to make a text costs more than to send it. */
type JournalBatch = {
  readonly texts: readonly string[]
  /** Deletes the records after Postgres has committed them. */
  release(): void
}

export type Journal = {
  /** Returns when a completed `write` holds the record. Throws `JournalUnwritable`; the record then stays in memory. */
  append(record: UsageRecord): void
  /** The same as a promise, in one `write` with all records of the same turn of the event loop. */
  appendTogether(record: UsageRecord): Promise<void>
  /**
   * Returns true if new work may begin: false while a record waits in memory, after another attempt to write it, and
   * while the files have reached their bound.
   */
  isWritable(): boolean
  /** Resolves when a record that `append` could not write is on disk or in Postgres; rejects after `deadlineMs`. */
  untilDurable(requestId: string, deadlineMs: number): Promise<void>
  /** Returns up to `maximum` records to ship; null = none. Only one batch is open: call again after its release. */
  take(maximum: number): JournalBatch | null
  /**
   * Returns the records of an account that are not released or are set aside, from a UTC day (since the epoch) to
   * another one, inclusive; absent = the same.
   */
  unshipped(accountId: string, from: number, to?: number): UsageRecord[]
  /** Returns all unreleased records. Reads what is on disk. */
  waiting(): UsageRecord[]
  /** Returns the number of unreleased records. */
  backlog(): number
  /** Returns the share of the bound that the files fill; above 1 while open requests end beyond it. */
  fill(): number
  /** Calls `listener` with each new record, and never more than one listener. */
  onRecord(listener: () => void): void
  /** Stores a record that Postgres rejects in a separate file. The next start ships it again. */
  setAside(record: UsageRecord): void
  /** Returns the number of records that are set aside. */
  aside(): number
  close(): Promise<void>
}

export type JournalOptions = {
  readonly directory: string
  readonly segmentBytes?: number
  /** Bytes of unreleased files from which on no new work may begin; absent = unbounded. */
  readonly maximumBytes?: number
  readonly fsyncEveryMs?: number
  /** Called for unreadable lines at startup, and for a file abandoned after a failed `fsync`. */
  readonly onDamage?: (detail: string) => void
  /** System calls, replaceable by tests. */
  readonly system?: { readonly write: typeof writeSync; readonly fsync: typeof fsync }
}

type Segment = {
  readonly path: string
  /** Accounts with records in this segment. */
  readonly accounts: Set<string>
  /** Records as JSON texts; null = on disk only, to be read when its turn comes. */
  texts: string[] | null
  count: number
  shipped: number
  bytes: number
}
type Active = { readonly descriptor: number; readonly segment: Segment; isDirty: boolean }

const defaultSegmentBytes = 16 << 20
const defaultFsyncEveryMs = 200
/** A completely shipped segment of at least this size is closed, so that a start does not read it again. */
const worthLeavingBytes = 256 << 10
const retryWritingMs = 250
const refusedFile = 'refused.log'

/** Resolves after all events of the current turn are handled. */
const endOfTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/**
 * Opens the journal in `directory` (created with mode 0700), including what an earlier process left unshipped. Throws
 * if that fails.
 */
export function openJournal(options: JournalOptions): Journal {
  const { directory, segmentBytes = defaultSegmentBytes, fsyncEveryMs = defaultFsyncEveryMs } = options
  const { maximumBytes = Number.POSITIVE_INFINITY } = options
  const { onDamage = () => {}, system = { write: writeSync, fsync } } = options
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  chmodSync(directory, 0o700)

  const left = readdirSync(directory)
    .filter(name => /^\d{12}\.log$/.test(name))
    .sort()
  let sequence = left.length === 0 ? 0 : Number.parseInt(left.at(-1) ?? '', 10)
  /** Oldest first; the active segment, if any, is last. */
  const segments: Segment[] = []
  for (const name of left) {
    const path = join(directory, name)
    const records = readRecords(path, onDamage)
    if (records.length === 0) rmSync(path, { force: true })
    else
      segments.push({
        path,
        accounts: new Set(records.map(record => record.account_id)),
        texts: null,
        count: records.length,
        shipped: 0,
        bytes: statSync(path).size,
      })
  }
  let active: Active | null = null
  /** Accepted records that the disk rejected. */
  let stranded: UsageRecord[] = []
  /** Records of this turn of the event loop, written at its end. */
  let together: { readonly records: UsageRecord[]; readonly written: Promise<void> } | null = null
  let triedAt = Number.NEGATIVE_INFINITY
  let isSyncing = false
  const waiting = new Map<string, () => void>()
  const aside = openRecordsAside(join(directory, refusedFile), onDamage)

  const syncing = whenNeeded(fsyncEveryMs, () => sync())
  let onRecord = () => {}

  const begin = (): Active => {
    const path = join(directory, `${String(++sequence).padStart(12, '0')}.log`)
    const descriptor = openSync(path, 'ax', 0o600)
    const segment: Segment = { path, accounts: new Set(), texts: [], count: 0, shipped: 0, bytes: 0 }
    segments.push(segment)
    return { descriptor, segment, isDirty: false }
  }

  /** Stops writing the file. `closed` is called when its bytes are synced. */
  const leave = (closed: () => void = () => {}) => {
    if (active === null) return closed()
    const { descriptor, segment } = active
    active = null
    if (segment.shipped === segment.count) {
      closeSync(descriptor)
      remove(segment)
      return closed()
    }
    if (segments[0] !== segment) segment.texts = null
    system.fsync(descriptor, error => {
      closeSync(descriptor)
      if (error !== null) rewrite(segment, error)
      closed()
    })
  }

  const remove = (segment: Segment) => {
    const index = segments.indexOf(segment)
    if (index !== -1) segments.splice(index, 1)
    rmSync(segment.path, { force: true })
  }

  /** Writes all records or none. */
  const write = (records: readonly UsageRecord[]) => {
    active ??= begin()
    const texts = records.map(record => JSON.stringify(record))
    const lines = Buffer.from(texts.map(toLine).join(''))
    let written = 0
    try {
      while (written < lines.length) written += system.write(active.descriptor, lines, written)
    } catch (error) {
      // A partial write would merge with the next line.
      if (written > 0 && !truncated(active)) leave()
      throw error
    }
    active.isDirty = true
    syncing.need()
    const { segment } = active
    segment.bytes += lines.length
    segment.count += records.length
    // One by one: a call takes a bounded number of arguments.
    for (const text of texts) segment.texts?.push(text)
    for (const record of records) segment.accounts.add(record.account_id)
    if (segment.bytes >= segmentBytes) leave()
  }

  const append = (records: readonly UsageRecord[]) => {
    onRecord()
    try {
      write(records)
    } catch (error) {
      stranded.push(...records)
      triedAt = performance.now()
      throw new JournalUnwritable(error)
    }
  }

  const writeTogether = () => {
    const records = together?.records ?? []
    together = null
    append(records)
  }

  const sync = () => {
    if (active === null || !active.isDirty) return
    if (isSyncing) return syncing.need()
    const synced = active
    synced.isDirty = false
    isSyncing = true
    system.fsync(synced.descriptor, error => {
      isSyncing = false
      if (error === null) return
      if (active === synced) {
        active = null
        closeSync(synced.descriptor)
      }
      rewrite(synced.segment, error)
    })
  }

  /**
   * After a failed `fsync` the kernel may have dropped the pages and marked the file clean, so the records go to a new
   * file.
   */
  const rewrite = (segment: Segment, cause: Error) => {
    if (!segments.includes(segment)) return
    onDamage(`fsync failed on ${segment.path}: ${cause.message}`)
    for (const record of getUnshipped(segment, '', onDamage)) {
      try {
        write([record])
      } catch {
        stranded.push(record)
      }
    }
    remove(segment)
  }

  const rescue = () => {
    while (stranded.length > 0) {
      const record = stranded[0]
      if (record === undefined) return
      write([record])
      stranded.shift()
      told(record)
    }
  }

  const told = (record: UsageRecord) => {
    waiting.get(record.request_id)?.()
    waiting.delete(record.request_id)
  }

  /** Moves the records that are set aside into a segment. They stay where they are if the disk is full. */
  const readmit = () => {
    if (!existsSync(aside.path)) return
    try {
      write(aside.records())
      // Removed afterwards: a record in both files is shipped twice and stored once.
      if (active !== null) fsyncSync(active.descriptor)
      rmSync(aside.path)
      aside.clear()
    } catch (error) {
      onDamage(`${aside.path} waits for the next start: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  readmit()

  const fill = () => segments.reduce((sum, { bytes }) => sum + bytes, 0) / maximumBytes

  return {
    append: record => append([record]),
    appendTogether(record) {
      together ??= { records: [], written: endOfTurn().then(writeTogether) }
      together.records.push(record)
      onRecord()
      return together.written
    },
    isWritable() {
      if (fill() >= 1) return false
      if (stranded.length === 0) return true
      if (performance.now() - triedAt < retryWritingMs) return false
      triedAt = performance.now()
      try {
        rescue()
        return true
      } catch {
        return false
      }
    },
    async untilDurable(requestId, deadlineMs) {
      // The caller of `appendTogether` receives the failure.
      await together?.written.catch(() => {})
      if (!stranded.some(record => record.request_id === requestId)) return
      await new Promise<void>((done, fail) => {
        const late = setTimeout(() => {
          waiting.delete(requestId)
          fail(new JournalUnwritable('no store saved the record in time'))
        }, deadlineMs)
        waiting.set(requestId, () => {
          clearTimeout(late)
          done()
        })
      })
    },
    take(maximum) {
      if (stranded.length > 0) {
        const records = stranded.slice(0, maximum)
        const release = () => {
          const shipped = new Set(records)
          stranded = stranded.filter(record => !shipped.has(record))
          records.forEach(told)
        }
        return { texts: records.map(record => JSON.stringify(record)), release }
      }
      const segment = segments.find(item => item.shipped < item.count)
      if (segment === undefined) return null
      segment.texts ??= readRecords(segment.path, onDamage).map(record => JSON.stringify(record))
      const texts = segment.texts.slice(segment.shipped, segment.shipped + maximum)
      // Damaged since it was counted: unreadable records cannot be shipped.
      if (texts.length === 0) segment.shipped = segment.count
      const release = () => {
        segment.shipped += texts.length
        if (segment.shipped < segment.count) return
        if (active?.segment !== segment) remove(segment)
        else if (segment.bytes >= worthLeavingBytes) leave()
      }
      return { texts, release }
    },
    unshipped(accountId, from, to = from) {
      // Most of a long backlog is on disk. Only segments with records of the account are read.
      const ofSegments = segments
        .filter(segment => segment.accounts.has(accountId))
        .flatMap(segment => getUnshipped(segment, accountId))
      return [...ofSegments, ...stranded, ...(together?.records ?? []), ...aside.records()].filter(
        record => record.account_id === accountId && isWithin(formatDay(record.at_ms), from, to),
      )
    },
    waiting: () => [...segments.flatMap(segment => getUnshipped(segment)), ...stranded, ...(together?.records ?? [])],
    onRecord(listener) {
      onRecord = listener
    },
    backlog: () =>
      segments.reduce(
        (sum, segment) => sum + segment.count - segment.shipped,
        stranded.length + (together?.records.length ?? 0),
      ),
    setAside: aside.add,
    fill,
    aside: () => aside.records().length,
    async close() {
      void syncing.close()
      await together?.written.catch(() => {})
      await new Promise<void>(done => leave(done))
    },
  }
}

const isWithin = (day: number, from: number, to: number) => from <= day && day <= to

/** Returns the unreleased records of a segment that name `mention`. */
function getUnshipped({ path, texts, shipped }: Segment, mention = '', onDamage = (_: string) => {}): UsageRecord[] {
  if (texts === null) return readRecords(path, onDamage).slice(shipped)
  return texts
    .slice(shipped)
    .filter(text => text.includes(mention))
    .map(toRecord)
}

function truncated(active: Active): boolean {
  try {
    ftruncateSync(active.descriptor, active.segment.bytes)
    return fstatSync(active.descriptor).size === active.segment.bytes
  } catch {
    return false
  }
}
