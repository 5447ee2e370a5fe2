/** Journals and checkpoints that earlier processes left: their records go to the journal of this process. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../core/ports.ts'
import { formatDay } from '../core/text/utc-days.ts'
import { findHolder } from '../database/data-folder.ts'
import { type Checkpoints, openCheckpoints } from './checkpoints.ts'
import { type Journal, openJournal } from './journal.ts'

/** Opens the journal of a process. */
export const openOwnJournal = (directory: string, log: Pick<Log, 'error'>): Journal =>
  openJournal({
    directory: join(directory, 'journal'),
    onDamage: detail => log.error('journal_corrupted', { detail }),
  })

/** Opens the checkpoints of a process. The requests that an earlier process left open are settled first. */
export function openSettledCheckpoints(directory: string, journal: Journal, log: Pick<Log, 'error'>): Checkpoints {
  const checkpoints = openCheckpoints(join(directory, 'journal'))
  checkpoints.settleLeft(record => {
    const waiting = journal.unshipped(record.account_id, formatDay(record.at_ms))
    if (waiting.some(other => other.request_id === record.request_id)) return
    try {
      journal.append(record)
    } catch (cause) {
      // On a full disk, records wait in the journal's memory and are shipped from there.
      log.error('checkpoint_settlement_failed', { detail: cause instanceof Error ? cause.message : 'unknown' })
    }
  })
  return checkpoints
}

/**
 * Moves the usage records of earlier workers from their folders into `journal`: a process that decides limits by its
 * own counters must know them. Skips a folder that a running process holds. Never throws.
 */
export function takeOverJournals(dataDirectory: string, journal: Pick<Journal, 'append'>, log: Log): void {
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : []
  for (const name of names)
    if (/^worker-\d+$/.test(name) && findHolder(join(dataDirectory, name)) === null)
      takeOverJournal(join(dataDirectory, name), journal, log)
}

/** Moves the records of one worker's folder. The caller guarantees that no process writes to it. */
export function takeOverJournal(folder: string, journal: Pick<Journal, 'append'>, log: Log): void {
  if (!existsSync(join(folder, 'journal'))) return
  try {
    const left = openOwnJournal(folder, log)
    // After a failure here a record can be in both journals. The ledger accepts each request once, so this is harmless.
    for (let batch = left.take(maximumTaken); batch !== null; batch = left.take(maximumTaken)) {
      for (const record of batch.records) journal.append(record)
      batch.release()
    }
    const checkpoints = openCheckpoints(join(folder, 'journal'))
    checkpoints.settleLeft(record => journal.append(record))
    checkpoints.close()
    void left.close()
  } catch (cause) {
    log.error('journal_not_taken_over', { detail: cause instanceof Error ? cause.message : 'unknown' })
  }
}

const maximumTaken = 500
