/** `usage …`: ships the journal's records and reconciles billing. */
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { toUsd } from '../core/usage/money.ts'
import { describeHolder, findHolder, lockDataFolder } from '../database/data-folder.ts'
import type { Database } from '../database/database.ts'
import { openJournal } from '../ledger/journal.ts'
import type { Replacement } from '../ledger/reconcile/tag-sums.ts'
import { type Audit, type AuditScope, audit, type Difference, type UsageSource } from '../ledger/reconcile.ts'
import { createShipper } from '../ledger/shipper.ts'
import { CommandFailure } from './command.ts'
import { showProgress } from './progress.ts'

/** Result of a command: as text, as JSON, and whether it succeeded. */
export type UsageReport = { readonly lines: readonly string[]; readonly json: object; readonly isWell: boolean }

const shippingDeadlineMs = 300_000
/** Earlier than any usage. */
const firstDay = '2020-01-01'

/** Returns the journals of a data folder: its own, and those of the workers that share it. */
export function journalFolders(dataDirectory: string): string[] {
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : []
  const workers = names.filter(name => /^worker-\d+$/.test(name)).sort()
  const folders = [dataDirectory, ...workers.map(name => join(dataDirectory, name))].map(folder =>
    join(folder, 'journal'),
  )
  return folders.filter(folder => existsSync(folder))
}

/** Ships several journal folders one after another. Throws if there is none. */
export async function replayFolders(database: Database, directories: readonly string[]): Promise<UsageReport> {
  const reports: UsageReport[] = []
  for (const directory of directories) reports.push(await replayUsage(database, directory))
  const [only] = reports
  if (only === undefined)
    throw new CommandFailure('No journal in the data folder: nothing to ship. Use --journal for another folder.')
  if (reports.length === 1) return only
  return {
    lines: reports.flatMap(({ lines }, index) => lines.map(line => `${directories[index]}: ${line}`)),
    json: { folders: reports.map(({ json }, index) => ({ folder: directories[index], ...json })) },
    isWell: reports.every(({ isWell }) => isWell),
  }
}

/**
 * Ships unshipped records of a journal folder, including those that the ledger rejected before. Records that the ledger
 * already has change nothing. Throws if there is no such folder, or a running gateway writes to it.
 */
export async function replayUsage(database: Database, directory: string): Promise<UsageReport> {
  if (!existsSync(directory)) throw new CommandFailure(`No journal at ${directory}.`)
  const holder = findHolder(dirname(directory))
  if (holder !== null && holder.pid !== process.pid)
    throw new CommandFailure(`This journal is in use by ${describeHolder(holder)}. Stop that gateway first.`)
  // A folder of this name belongs to a data folder that a gateway may start on.
  const unlock = holder === null && basename(directory) === 'journal' ? lockDataFolder(dirname(directory)) : () => {}
  try {
    return await replay(database, directory)
  } finally {
    unlock()
  }
}

async function replay(database: Database, directory: string): Promise<UsageReport> {
  const damage: string[] = []
  const refusals: string[] = []
  const journal = openJournal({ directory, onDamage: detail => void damage.push(detail) })
  const found = journal.backlog()
  const log = {
    warn: () => {},
    error: (_event: string, fields: object = {}) => void refusals.push(JSON.stringify(fields)),
  }
  const shipper = createShipper({ journal, database, clock: { now: () => Date.now() }, log })
  const progress = showProgress('shipping', () => ({ done: found - journal.backlog(), of: found }))
  try {
    await shipper.drain(shippingDeadlineMs)
  } finally {
    progress.stop()
    await shipper.close()
    await journal.close()
  }
  const left = journal.backlog()
  return {
    lines: [
      `Shipped ${found - left} of ${found} records.`,
      ...(left > 0 ? ['The rest stays in the journal: Postgres timed out. Run the command again.'] : []),
      ...refusals.map(refusal => `rejected by the ledger, saved to refused.log: ${refusal}`),
      ...damage,
    ],
    json: {
      found,
      shipped: found - left - refusals.length,
      left,
      refused: refusals.length,
      damaged_lines: damage.length,
    },
    isWell: left === 0 && refusals.length === 0 && damage.length === 0,
  }
}

/** Compares the ledger with its daily totals and these sources, for all time by default. Days are UTC, `YYYY-MM-DD`. */
export async function reconcileUsage(
  database: Database,
  sources: readonly UsageSource[],
  scope: Partial<AuditScope> = {},
): Promise<UsageReport> {
  const today = new Date().toISOString().slice(0, 10)
  const began = performance.now()
  const seconds = () => Math.round((performance.now() - began) / 1_000)
  const progress = showProgress('comparing, takes some seconds:', () => ({ done: seconds(), of: null }))
  const found = await audit(database, sources, { from: firstDay, to: today, accountId: null, ...scope }).finally(
    progress.stop,
  )
  const { isWhole, ...json } = found
  return { lines: formatAudit(found), json: { ok: isWhole, ...json }, isWell: isWhole }
}

const noRedisNotice =
  'Without Redis, in-process counters cannot be compared. They are initialized from this ledger and its journal at every restart.'

function formatAudit({
  requests,
  billed_microcents,
  counters,
  waiting,
  damaged_lines,
  replaced,
  replacements,
  differences,
  isWhole,
}: Audit): string[] {
  const unwell = `${differences.length} differences.`
  return [
    `ledger: ${requests} requests, ${usd(billed_microcents)}; counters compared: ${counters ?? 'none'}${counters === null ? '' : ' account days'}`,
    ...(counters === null ? [noRedisNotice] : []),
    ...(waiting.requests === 0
      ? []
      : [`unshipped: ${waiting.requests} requests, ${usd(waiting.billed_microcents)} (\`usage replay\` ships them)`]),
    ...(damaged_lines === 0 ? [] : [`${damaged_lines} lines of the journal are unreadable`]),
    ...(replaced.requests === 0
      ? []
      : [
          `replaced: ${replaced.requests} requests, whose checkpoint was settled before their end: ${signed(replaced.tokens)} tokens, ${usd(replaced.billed_microcents)}`,
          ...replacements.map(replacement),
        ]),
    ...differences.map(line),
    isWhole
      ? `${counters === null || counters === 0 ? 'Ledger and daily totals' : 'Ledger, daily totals and counters'} agree.`
      : unwell,
  ]
}

function replacement({ request_id, account_id, day, before, after }: Replacement): string {
  return `${request_id} of ${account_id} ${day}: ${before.status}, ${before.tokens} tokens, ${usd(before.microcents)} became ${after.status}, ${after.tokens} tokens, ${usd(after.microcents)}`
}

function line(difference: Difference): string {
  const { kind, account_id, day } = difference
  switch (kind) {
    case 'rollup':
    case 'tag_rollup': {
      const { key_id, model, ledger, rollup } = difference
      const tag = kind === 'tag_rollup' ? ` tag ${difference.tag}` : ''
      return `daily total of ${account_id} ${day} ${key_id} ${model}${tag}: ${formatDifferences(ledger ?? {}, rollup ?? {}, 'total')}`
    }
    case 'counter':
      return `counter of ${account_id} ${day}: ${formatDifferences(difference.ledger, difference.counter, 'counter')}`
    case 'refused':
      return `not in the ledger: ${difference.request_id} of ${account_id} ${day} ${difference.key_id} ${difference.model}, ${usd(difference.recorded.microcents)}`
    case 'record':
      return `${difference.request_id} of ${account_id} ${day} ${difference.key_id} ${difference.model}: ${formatDifferences(difference.ledger ?? {}, difference.recorded, 'journal')}`
  }
}

/** Lists the differing fields: `billed_microcents 30 in the ledger, 20 in the sum`. */
function formatDifferences(ledger: object, other: object, otherName: string): string {
  const [left, right] = [
    new Map<string, unknown>(Object.entries(ledger)),
    new Map<string, unknown>(Object.entries(other)),
  ]
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter(name => left.get(name) !== right.get(name))
    .map(
      name =>
        `${name} ${left.get(name) ?? 'nothing'} in the ledger, ${right.get(name) ?? 'nothing'} in the ${otherName}`,
    )
    .join('; ')
}

const signed = (count: number) => (count < 0 ? String(count) : `+${count}`)
const usd = (microcents: number) => `$${toUsd(microcents).toFixed(8)}`
