import type { Database } from '../../src/database/database.ts'
import { type NeedName, needed, testNeeding } from '../harness/needs.ts'

/** Declares tests that run on one database: the embedded one, or a real Postgres, which the machine may lack. */
export function getOnDatabase(name: string, open: () => Database | null, timeoutMs: number) {
  const needs: readonly NeedName[] = name.startsWith('embedded') ? [] : ['postgres']
  return (title: string, body: (database: Database) => Promise<void>, ownTimeoutMs = timeoutMs) =>
    testNeeding(needs, title, () => body(needed(open())), ownTimeoutMs)
}
