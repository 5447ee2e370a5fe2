/**
 * Checkpoints of open requests on disk: an append-only file of lines like the journal's. A start settles requests that
 * an earlier process left open; a truncated line counts as not written. Requests shorter than 250 ms never appear here.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { decodeLine, toLine } from './record-lines.ts'

export type Checkpoints = {
  /** Writes the latest checkpoint of each open request and the IDs of ended ones in one write. Never throws. */
  write(progress: ReadonlyMap<string, UsageRecord>, over: readonly string[]): void
  /** Calls `settle` with the record of each request that an earlier process left open, then deletes them. */
  settleLeft(settle: (record: UsageRecord) => void): void
  close(): void
}

/** A file of this size is rewritten with only the open requests, and a smaller one if there are none. */
const maximumBytes = 4 << 20
const worthBeginningAnewBytes = 64 << 10

/** Opens the checkpoints in `directory` (created with mode 0700). Throws if that fails. */
export function openCheckpoints(directory: string): Checkpoints {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  chmodSync(directory, 0o700)
  const path = join(directory, 'open-requests')
  const open = readOpen(path)
  let left = [...open.values()]
  let descriptor = openSync(path, 'a', 0o600)
  let bytes = 0

  const restart = () => {
    const lines = [...open.values()].map(record => toLine(JSON.stringify(record)))
    writeFileSync(`${path}.new`, lines.join(''), { mode: 0o600 })
    renameSync(`${path}.new`, path)
    closeSync(descriptor)
    descriptor = openSync(path, 'a', 0o600)
    bytes = 0
  }

  return {
    write(progress, over) {
      let lines = ''
      for (const [requestId, record] of progress) {
        open.set(requestId, record)
        lines += toLine(JSON.stringify(record))
      }
      for (const requestId of over) if (open.delete(requestId)) lines += toLine(JSON.stringify({ over: requestId }))
      if (lines === '') return
      const batch = Buffer.from(lines)
      try {
        for (let written = 0; written < batch.length; ) written += writeSync(descriptor, batch, written)
        bytes += batch.length
        if (bytes > (open.size === 0 ? worthBeginningAnewBytes : maximumBytes)) restart()
      } catch {
        // Only a crash would need them, and the journal reports a full disk itself.
      }
    },
    settleLeft(settle) {
      for (const record of left) {
        settle(record)
        open.delete(record.request_id)
      }
      if (left.length > 0) restart()
      left = []
    },
    close: () => closeSync(descriptor),
  }
}

function readOpen(path: string): Map<string, UsageRecord> {
  const open = new Map<string, UsageRecord>()
  for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) {
    const record = decodeLine(Buffer.from(line))
    if (record !== null) open.set(record.request_id, record)
    // The checksum was valid in our own file; only the ID matters here.
    else for (const [, requestId] of line.matchAll(/^[0-9a-f]{8} \{"over":"([^"]+)"\}$/g)) open.delete(requestId ?? '')
  }
  return open
}
