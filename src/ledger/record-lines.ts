/** Lines of usage records in files: `<crc-32 in 8 hex> <json>`, so that truncated ones are detectable. */
import { readFileSync } from 'node:fs'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { type UsageRecord, usageRecordSchema } from '../core/usage/usage-record.ts'

const newline = 0x0a

/** Returns the line of a JSON text. */
export function toLine(text: string): string {
  return `${checksum(text)} ${text}\n`
}

/** Returns the record of a text of our own. */
export const toRecord = (text: string): UsageRecord => JSON.parse(text)

const checksum = (text: string | Uint8Array) => Bun.hash.crc32(text).toString(16).padStart(8, '0')

const isRecord = TypeCompiler.Compile(usageRecordSchema)

/** Returns the record of a line; null if it is incomplete or not a record. */
export function decodeLine(line: Uint8Array): UsageRecord | null {
  const text = line.subarray(9)
  if (line[8] !== 0x20 || Buffer.from(line.subarray(0, 8)).toString('latin1') !== checksum(text)) return null
  try {
    const value: unknown = JSON.parse(Buffer.from(text).toString('utf8'))
    return isRecord.Check(value) ? value : null
  } catch {
    return null
  }
}

/**
 * Returns the complete records of a file. Calls `onDamage` for each line that is not a record, except for a truncated end,
 * where its writer may be.
 */
export function readRecords(path: string, onDamage: (detail: string) => void): UsageRecord[] {
  const bytes = readFileSync(path)
  const records: UsageRecord[] = []
  for (let start = 0, end = bytes.indexOf(newline); end !== -1; start = end + 1, end = bytes.indexOf(newline, start)) {
    const record = decodeLine(bytes.subarray(start, end))
    if (record !== null) records.push(record)
    else onDamage(`unreadable line at byte ${start} of ${path}`)
  }
  return records
}
