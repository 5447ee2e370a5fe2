/** `usage …`: ships the journal's records and reconciles billing. */
import { resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { readConfig, readStoreConfig } from '../config/config.ts'
import { createLimitKeys } from '../core/limits/redis.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { toUsd } from '../core/usage/money.ts'
import type { UsageSource } from '../ledger/reconcile.ts'
import {
  CommandFailure,
  choice,
  columns,
  command,
  json,
  print,
  printJson,
  printTable,
  readNamedFile,
  UsageError,
} from './command.ts'
import { withAccount, withDatabase } from './open-database.ts'
import type { UsageReport } from './usage-reports.ts'

// These two need more modules than all other commands together, so they are loaded on use.
const auditing = async () => ({
  ...(await import('./usage-reports.ts')),
  ...(await import('../ledger/reconcile/sources.ts')),
  ...(await import('./open-database.ts')),
})
const dataDirectory = () => resolve(readStoreConfig().dataDirectory)

const replay = command({
  name: 'usage replay',
  about: 'Ship unshipped journal records to the ledger (idempotent)',
  operands: {},
  options: {
    journal: { type: 'string', value: 'FOLDER', about: 'default: those of GATEWAY_DATA_DIR and its workers' },
    json,
  },
  async run({ options }) {
    const { journalFolders, replayFolders } = await auditing()
    const directories = options.journal === undefined ? journalFolders(dataDirectory()) : [resolve(options.journal)]
    tell(await withDatabase(database => replayFolders(database, directories)), options.json)
  },
})

const reconcile = command({
  name: 'usage reconcile',
  about: 'Check that ledger, daily totals and counters agree (exit code 1 if not)',
  operands: {},
  options: {
    from: { type: 'string', value: 'YYYY-MM-DD', about: 'first UTC day; default: all' },
    to: { type: 'string', value: 'YYYY-MM-DD', about: 'last UTC day; default: today' },
    account: { type: 'string', value: 'ID', about: 'only this account' },
    json,
  },
  async run({ options }) {
    const scope = {
      ...(options.from === undefined ? {} : { from: day('--from', options.from) }),
      ...(options.to === undefined ? {} : { to: day('--to', options.to) }),
      ...(options.account === undefined ? {} : { accountId: options.account }),
    }
    const { journalFolders, journalSource, reconcileUsage, redisSource, withRedis } = await auditing()
    const { redisUrls, serviceDeadlines } = readConfig()
    const journals: UsageSource[] = journalFolders(dataDirectory()).map(journalSource)
    const compare = (sources: readonly UsageSource[]) =>
      withDatabase(database => reconcileUsage(database, sources, scope))
    const report =
      redisUrls.length === 0
        ? await compare(journals)
        : await withRedis(redisUrls, serviceDeadlines, redis =>
            compare([...journals, redisSource(redis, createLimitKeys(redisUrls))]),
          )
    tell(report, options.json)
  },
})

const check = command({
  name: 'usage check',
  about: 'Price documented usage reports of all providers (exit code 1 if one differs)',
  operands: {},
  options: { json },
  async run({ options }) {
    tell(checkUsage(await import('./usage-check.ts')), options.json)
  },
})

const compare = command({
  name: 'usage compare',
  about: "Compare the ledger with a provider's usage or cost export (exit code 1 on difference)",
  operands: { file: '<file>' },
  options: {
    provider: { type: 'string', value: 'ID', about: 'the provider in the ledger; default: by the form of the export' },
    key: { type: 'string', value: 'NAME', about: "only the export's lines of this key of the provider" },
    json,
  },
  async run({ operands, options }) {
    const { compareUsage } = await import('./usage-compare.ts')
    const text = unzipped(readNamedFile(operands.file), operands.file).toString('utf8')
    const { provider, key = null } = options
    const chosen = { providers: provider === undefined ? null : [provider], key }
    tell(await withDatabase(database => compareUsage(database, text, chosen)), options.json)
  },
})

const savingGroups = ['month', 'day', 'key', 'tag', 'project', 'model', 'member'] as const
const utcDay = (at: number) => new Date(at).toISOString().slice(0, 10)

const savings = command({
  name: 'usage savings',
  about: 'Sum what routing and caching saved for an account, of the last 365 days by month unless told otherwise',
  operands: { email: '<email>' },
  options: {
    by: { type: 'string', value: savingGroups.join('|'), about: 'default: month' },
    from: { type: 'string', value: 'YYYY-MM-DD', about: 'first UTC day' },
    to: { type: 'string', value: 'YYYY-MM-DD', about: 'last UTC day; default: today' },
    json,
  },
  async run({ operands, options }) {
    const groupBy = choice('--by', options.by ?? 'month', savingGroups)
    const to = options.to === undefined ? utcDay(Date.now()) : day('--to', options.to)
    const from = options.from === undefined ? utcDay(Date.parse(to) - 364 * dayMs) : day('--from', options.from)
    const { readUsage } = await import('../ledger/usage-totals.ts')
    await withAccount(operands.email, async (database, { account }) => {
      const scope = { accountId: account.id, userId: null }
      const { groups, total } = await readUsage(database, scope, { from, to, groupBy, splitBy: null })
      const rows = [...groups, { ...total, unit: 'total', name: null }].map(row => ({
        unit: row.unit,
        name: row.name,
        requests: row.requests,
        cost_usd: toUsd(row.billed_microcents),
        routing_saved_usd: toUsd(row.routing_saved_microcents),
        cache_saved_usd: toUsd(row.cache_saved_microcents),
      }))
      if (options.json) return printJson({ data: rows.slice(0, -1), total: rows.at(-1) })
      printTable([
        [groupBy.toUpperCase(), 'REQUESTS', 'USD', 'SAVED BY ROUTING', 'SAVED BY CACHING'],
        ...rows.map(row => [
          row.name ?? row.unit,
          ...[row.requests, row.cost_usd, row.routing_saved_usd, row.cache_saved_usd].map(String),
        ]),
      ])
    })
  },
})

export const usageCommands = [replay, reconcile, check, compare, savings]

function tell(report: UsageReport, asJson = false): void {
  if (asJson) printJson(report.json)
  else print(...report.lines)
  if (!report.isWell) throw new CommandFailure('Check failed; see above.')
}

/** Checks all cases: a line for each group, and what differs. */
function checkUsage({ usageGroups, usageSources, usageProblems }: typeof import('./usage-check.ts')): UsageReport {
  const results = usageGroups.map(group => {
    const failures = group.cases.flatMap(given => {
      const problems = usageProblems(group, given)
      const { page = '', date = '' } = usageSources[given.source ?? group.source] ?? {}
      return problems.length === 0 ? [] : [{ name: given.name, source: `${page}, ${date}`, problems }]
    })
    return { group: group.name, passed: group.cases.length - failures.length, failed: failures.length, failures }
  })
  const rows = results.map(({ group, passed, failed }) => [group, String(passed), String(failed)])
  return {
    json: results,
    lines: [
      ...columns([['GROUP', 'PASSED', 'FAILED'], ...rows]),
      ...results.flatMap(({ group, failures }) =>
        failures.flatMap(({ name, source, problems }) => [
          `${group}: ${name} (${source})`,
          ...problems.map(problem => `  ${problem}`),
        ]),
      ),
    ],
    isWell: results.every(({ failed }) => failed === 0),
  }
}

/** AWS writes its reports with gzip. */
function unzipped(bytes: Buffer, path: string): Buffer {
  if (!bytes.subarray(0, 2).equals(gzipMark)) return bytes
  try {
    return gunzipSync(bytes)
  } catch {
    throw new CommandFailure(`${path} is no whole gzip file.`)
  }
}

const gzipMark = Buffer.from([0x1f, 0x8b])

function day(name: string, value: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value))) return value
  throw new UsageError(`${name} must be a UTC day: YYYY-MM-DD.`)
}
