/** Journals and checkpoints that earlier processes left: their records go to the journal of this process. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../core/ports.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { findHolder } from '../database/data-folder.ts'
import { type Checkpoints, openCheckpoints } from './checkpoints.ts'
import { type Journal, openJournal } from './journal.ts'
import { toRecord } from './record-lines.ts'

type Folders = {
  readonly dataDirectory: string
  readonly ownDirectory: string
  readonly worker: number | null
  /** Number of gateway processes on the data folder. */
  readonly processes: number
  readonly journalMaximumBytes: number
}

/** The records of this process on disk. */
type OwnRecords = {
  readonly journal: Journal
  readonly checkpoints: Checkpoints
  /** Records of earlier processes, which may not have reported all of them to the limits. */
  readonly unreported: readonly UsageRecord[]
}

/**
 * Opens journal and checkpoints of this process. Requests that an earlier process left open are settled, and records in
 * folders that no process uses any more are moved here.
 */
export function openOwnRecords(folders: Folders, log: Log): OwnRecords {
  const journal = openOwnJournal(folders.ownDirectory, log, folders.journalMaximumBytes)
  const waiting = journal.waiting()
  const unreported = [...waiting]
  const checkpoints = openCheckpoints(join(folders.ownDirectory, 'journal'))
  const known = new Set(waiting.map(record => record.request_id))
  checkpoints.settleLeft(record => {
    if (known.has(record.request_id)) return
    unreported.push(record)
    keep(journal, record, log)
  })
  for (const folder of abandonedFolders(folders))
    for (const record of takeOverJournal(folder, journal, log)) unreported.push(record)
  return { journal, checkpoints, unreported }
}

/** Opens the journal of a process. */
const openOwnJournal = (directory: string, log: Pick<Log, 'error'>, maximumBytes?: number): Journal =>
  openJournal({
    directory: join(directory, 'journal'),
    ...(maximumBytes === undefined ? {} : { maximumBytes }),
    onDamage: detail => log.error('journal_corrupted', { detail }),
  })

/** On a full disk, the record waits in the journal's memory and is shipped from there. */
function keep(journal: Pick<Journal, 'append'>, record: UsageRecord, log: Pick<Log, 'error'>): void {
  try {
    journal.append(record)
  } catch (cause) {
    log.error('checkpoint_settlement_failed', { detail: cause instanceof Error ? cause.message : 'unknown' })
  }
}

/** Returns the folders of a data folder that no process uses. Of several workers, the first one looks. */
function abandonedFolders({ dataDirectory, ownDirectory, worker, processes }: Folders): string[] {
  if ((worker ?? 1) !== 1) return []
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : []
  const ofWorkers = names.filter(name => /^worker-\d+$/.test(name))
  const unused = worker === null ? ofWorkers : ofWorkers.filter(name => Number(name.slice(7)) > processes)
  const left = unused.map(name => join(dataDirectory, name)).filter(folder => findHolder(folder) === null)
  // The parent of workers holds the folder, and has no journal while they have their own.
  return dataDirectory === ownDirectory ? left : [dataDirectory, ...left]
}

/**
 * Moves the records of one folder into `journal` and returns them. The caller guarantees that no process
 * writes to it. Never throws.
 */
function takeOverJournal(folder: string, journal: Pick<Journal, 'append'>, log: Log): UsageRecord[] {
  if (!existsSync(join(folder, 'journal'))) return []
  try {
    const left = openOwnJournal(folder, log)
    const taken = left.waiting()
    // After a failure here a record can be in both journals. The ledger accepts each request once, so this is harmless.
    for (let batch = left.take(maximumTaken); batch !== null; batch = left.take(maximumTaken)) {
      for (const text of batch.texts) journal.append(toRecord(text))
      batch.release()
    }
    const checkpoints = openCheckpoints(join(folder, 'journal'))
    const known = new Set(taken.map(({ request_id }) => request_id))
    checkpoints.settleLeft(record => {
      // Its final record was written just before the process died.
      if (known.has(record.request_id)) return
      taken.push(record)
      journal.append(record)
    })
    checkpoints.close()
    void left.close()
    return taken
  } catch (cause) {
    log.error('journal_not_taken_over', { detail: cause instanceof Error ? cause.message : 'unknown' })
    return []
  }
}

const maximumTaken = 500
