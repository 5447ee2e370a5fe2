import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import { decodeLine } from '../journal.ts'
import type { UsageSource } from '../reconcile.ts'

/**
 * Reads the journal of one gateway while it runs. Its counters are in its memory, initialized from the ledger and this
 * journal.
 */
export function journalSource(directory: string) {
  return {
    keepsCounters: false,
    async read() {
      const names = existsSync(directory) ? readdirSync(directory) : []
      const segments = names.filter(name => /^\d{12}\.log$/.test(name)).map(name => readLines(join(directory, name)))
      const aside = readLines(join(directory, 'refused.log'))
      return {
        counted: [],
        waiting: segments.flatMap(segment => segment.records),
        refused: aside.records,
        damagedLines: [...segments, aside].reduce((sum, one) => sum + one.damaged, 0),
      }
    },
  } satisfies UsageSource
}

/** Reads a journal file in its current state: its writer may be at the last line, and its shipper may delete it. */
function readLines(path: string): { readonly records: UsageRecord[]; readonly damaged: number } {
  const records: UsageRecord[] = []
  let damaged = 0
  const bytes = readIfThere(path)
  for (let start = 0, end = bytes.indexOf(0x0a); end !== -1; start = end + 1, end = bytes.indexOf(0x0a, start)) {
    const record = decodeLine(bytes.subarray(start, end))
    if (record === null) damaged++
    else records.push(record)
  }
  return { records, damaged }
}

function readIfThere(path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Uint8Array()
    throw error
  }
}
