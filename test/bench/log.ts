/**
 * `bun run bench:log`: times of every dashboard page's API calls over a log of 1,000,000 requests, with a real Postgres
 * and with the embedded one. Fills both through the shipper, which is timed too. Prints p50 and maximum per call.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { choice, command, runCommand, UsageError } from '../../src/commands/command.ts'
import { createDeps } from '../../src/compose/deps.ts'
import { readConfig } from '../../src/config/config.ts'
import { createPasswords } from '../../src/console/auth/password-hashing.ts'
import { dayMs } from '../../src/core/text/utc-days.ts'
import { migrate } from '../../src/database/database.ts'
import { cheapHashing } from '../harness/gateway.ts'
import { startPostgres } from '../harness/postgres.ts'
import { median } from './load/child.ts'
import { type LogCall, logCalls, type ServedRequest } from './log/calls.ts'
import { fillLog, isFilled, logOwner } from './log/fill.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
/** Longer than any call may take; a call that reaches it fails. */
const deadlineMs = 60_000
const slowMs = 1_000

type Figure = { readonly call: LogCall; readonly p50: number; readonly most: number; readonly status: number }

const bench = command({
  program: 'bun run',
  name: 'bench:log',
  about: 'Time the API calls of all dashboard pages over a large log; some 20 minutes',
  operands: {},
  options: {
    stores: { type: 'string', value: 'KIND', about: 'embedded or external; both unless given' },
    requests: { type: 'string', value: 'N', about: 'Requests of the account; 1000000 unless given' },
    times: { type: 'string', value: 'N', about: 'Repetitions of each call; 3 unless given' },
    only: { type: 'string', value: 'TEXT', about: 'Only calls whose name contains this' },
    data: { type: 'string', value: 'FOLDER', about: 'Folder of the embedded database, kept for a further run' },
    database: { type: 'string', value: 'URL', about: 'A database to fill, kept for a further run' },
  },
  async run({ options: { stores, requests = '1000000', times = '3', only = '', data, database } }) {
    if (!/^\d{1,8}$/.test(requests) || !/^[1-9]\d?$/.test(times))
      throw new UsageError('--requests and --times are numbers.')
    const kind = stores === undefined ? null : choice('--stores', stores, ['embedded', 'external'])
    const plan = { requests: Number(requests), times: Number(times), only }
    if (kind !== 'embedded') await measureExternal(plan, database)
    if (kind !== 'external') await measureEmbedded(plan, data)
  },
})

process.exitCode = await runCommand(bench, process.argv.slice(2))

type Plan = { readonly requests: number; readonly times: number; readonly only: string }

async function measureExternal(plan: Plan, url: string | undefined): Promise<void> {
  const server = url === undefined ? await startPostgres() : null
  const address = url ?? server?.url
  if (address === undefined) throw new Error('a real Postgres is needed')
  const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-log-'))
  try {
    await measure('Postgres', { GATEWAY_DATA_DIR: folder, DATABASE_URL: address }, plan)
  } finally {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureEmbedded(plan: Plan, kept: string | undefined): Promise<void> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'gateway-ai-log-'))
  try {
    await measure('embedded', { GATEWAY_DATA_DIR: folder }, plan)
  } finally {
    if (kept === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

/** Fills the store unless an earlier run did, and times all calls against a gateway in this process. */
async function measure(store: string, environment: Readonly<Record<string, string>>, plan: Plan): Promise<void> {
  const passwords = createPasswords(cheapHashing)
  const config = readConfig({ PORT: '0', LOG_LEVEL: 'warn', JWT_SECRET: 'bench'.repeat(8), ...environment })
  const deps = await createDeps(config, { writeLog: say, passwords })
  const app = createApp(deps).listen({ port: 0, hostname: '127.0.0.1' })
  try {
    await migrate(deps.database)
    if (!(await isFilled(deps.database))) {
      const passwordHash = await passwords.hash(logOwner.password, null)
      const onProgress = (line: string) => say(`${store}: ${line}`)
      const seconds = await fillLog(deps.database, { ...plan, passwordHash, until: Date.now(), onProgress })
      say(
        `${store}: shipped in ${Math.round(seconds)} s, ${Math.round((seconds * 1e6) / (plan.requests * 1.25))} µs per request`,
      )
    }
    const url = `http://127.0.0.1:${app.server?.port}`
    let token = await signIn(url)
    const calls = logCalls(Date.now(), await findServed(url, token))
    const figures: Figure[] = []
    for (const [n, call] of calls.filter(({ name, page }) => `${name} ${page}`.includes(plan.only)).entries()) {
      // A token expires after 15 minutes.
      if (n % 50 === 0) token = await signIn(url)
      figures.push(await timed(url, token, call, plan.times))
    }
    printFigures(store, figures)
  } finally {
    await app.server?.stop(true)
    await deps.close()
  }
}

async function signIn(url: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(logOwner),
  })
  const { token } = (await response.json()) as { readonly token?: string }
  if (token === undefined) throw new Error(`sign-in failed with ${response.status}`)
  return token
}

/** Returns the IDs of a request in the middle of the log that a provider served. */
async function findServed(url: string, token: string): Promise<ServedRequest> {
  const query = new URLSearchParams({
    status: 'completed',
    limit: '1',
    to: new Date(Date.now() - 15 * dayMs).toISOString(),
  })
  const response = await fetch(`${url}/api/v1/requests?${query}`, { headers: { authorization: `Bearer ${token}` } })
  const { data } = (await response.json()) as { readonly data?: readonly ServedRequest[] }
  const [found] = data ?? []
  if (found === undefined) throw new Error(`the log has no served request: ${response.status}`)
  return found
}

type Page = { readonly data?: readonly unknown[]; readonly next_cursor?: string | null }

async function timed(url: string, token: string, call: LogCall, times: number): Promise<Figure> {
  const figures: number[] = []
  let status = 0
  const get = (path: string) =>
    fetch(url + path, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(deadlineMs) })
  for (let round = 0; round < times; round++) {
    let path = call.path
    let began = performance.now()
    let rows = 0
    for (let pages = 1; ; pages++) {
      if (call.untilRows === undefined) began = performance.now()
      const response = await get(path)
      status = response.status
      if (call.isStream && status === 429) {
        // The gateway does not know yet that the export before it was canceled.
        round--
        await Bun.sleep(100)
        break
      }
      if (call.isStream) {
        const reader = response.body?.getReader()
        await reader?.read()
        figures.push(performance.now() - began)
        await reader?.cancel()
        break
      }
      const { data, next_cursor: cursor } = (await response.json()) as Page
      rows += data?.length ?? 0
      const isLast = call.untilRows === undefined ? pages >= (call.pages ?? 1) : rows >= call.untilRows || pages >= 20
      if (isLast || cursor == null) break
      path = `${call.path}${call.path.includes('?') ? '&' : '?'}cursor=${cursor}`
    }
    if (!call.isStream) figures.push(performance.now() - began)
  }
  return { call, p50: median(figures), most: Math.max(...figures), status }
}

function printFigures(store: string, figures: readonly Figure[]): void {
  for (const { call, p50, most, status } of figures)
    say(
      `${store.padEnd(9)} ${call.page.padEnd(10)} ${call.name.padEnd(48)} p50 ${p50.toFixed(0).padStart(6)} max ${most.toFixed(0).padStart(6)} ms${status < 400 ? '' : `  ${status}`}`,
    )
  const slow = figures.filter(({ most }) => most > slowMs)
  say(
    `${store}: ${figures.length} calls, ${slow.length} over ${slowMs} ms, slowest ${Math.max(...figures.map(({ most }) => most)).toFixed(0)} ms`,
  )
}
