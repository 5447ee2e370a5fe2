/** A file of records that Postgres rejects. The next start ships them again. */
import { closeSync, existsSync, fsyncSync, openSync, writeSync } from 'node:fs'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { readRecords, toLine } from './record-lines.ts'

/** Opens the file, which need not exist. */
export function openRecordsAside(path: string, onDamage: (detail: string) => void) {
  const getLine = (record: UsageRecord) => toLine(JSON.stringify(record))
  const left = existsSync(path) ? readRecords(path, onDamage) : []
  const known = new Map(left.map(record => [getLine(record), record]))
  return {
    path,
    /** Appends a record that is not there yet, and returns when it is on disk. */
    add(record: UsageRecord) {
      const line = getLine(record)
      if (known.has(line)) return
      const descriptor = openSync(path, 'a', 0o600)
      try {
        const bytes = Buffer.from(line)
        for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written)
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
      known.set(line, record)
    },
    records: () => [...known.values()],
    /** Forgets all records, whose file the caller has deleted. */
    clear: () => known.clear(),
  }
}
