/**
 * The test command: makes sure that a real Postgres, a real Redis and a real browser can be started, runs every test file,
 * and adds up what the runner itself reported. Its last line is `N passed, N failed`. Words after it choose the files whose
 * paths hold one of them.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromiumPath } from './dashboard/chromium.ts'
import { makeTemplate, sharedPostgres } from './harness/database.ts'
import { startPostgres } from './harness/postgres.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

function postgresIsHere(): boolean {
  if (Bun.which('initdb') !== null) return true
  const root = '/usr/lib/postgresql'
  return existsSync(root) && readdirSync(root).some(release => existsSync(join(root, release, 'bin', 'initdb')))
}

/** The packages' installation; resolves at once where there is nothing to install, or nobody who may. */
async function install(packages: readonly string[]): Promise<void> {
  if (packages.length === 0) return
  if (process.getuid?.() !== 0 || Bun.which('apt-get') === null) {
    say(`not installed and not installable here: ${packages.join(', ')}; tests that need it say so`)
    return
  }
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { env: environment, stdout: 'ignore', stderr: 'inherit' } as const
  await Bun.spawn(['apt-get', 'update', '-qq'], options).exited
  await Bun.spawn(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages], options).exited
}

type Totals = { readonly tests: number; readonly failures: number; readonly skipped: number }

/** Totals as the runner wrote them into its report; null where it wrote none. */
function totals(path: string): Totals | null {
  const head = existsSync(path) ? /<testsuites\b[^>]*>/.exec(readFileSync(path, 'utf8'))?.[0] : undefined
  if (head === undefined) return null
  const count = (name: string) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head)?.[1] ?? 0)
  return { tests: count('tests'), failures: count('failures') + count('errors'), skipped: count('skipped') }
}

/**
 * Every file in a process of its own, one more at a time than there are cores, since many wait for time to pass, and beside
 * them one of those that hardly do anything else; each prints what it said when it is done. Some hold real processes to real deadlines, which a busy neighbour can make them miss: a file
 * that failed is run once more when all others are done, both times are printed, and the second counts. Not of those that
 * race for what an account has left: one too many is one too many, however busy the machine was.
 */
async function runFiles(files: readonly string[], reports: string): Promise<Totals> {
  const sum = { tests: 0, failures: 0, skipped: 0 }
  const count = (result: Totals) => {
    sum.tests += result.tests
    sum.failures += result.failures
    sum.skipped += result.skipped
  }
  const working = files.filter(file => !mostlyWaits(file))
  const waiting = files.filter(mostlyWaits)
  const failed: string[] = []
  const worker = async (next: () => string | undefined) => {
    for (let file = next(); file !== undefined; file = next()) {
      if (needsBrowser(file)) await browser
      const result = await runFile(file, reports)
      if (result.failures > 0 && !racesForMoney(file)) failed.push(file)
      else count(result)
    }
  }
  const lanes = Array.from({ length: availableParallelism() + 1 }, () =>
    worker(() => working.shift() ?? waiting.shift()),
  )
  await Promise.all([...lanes, worker(() => waiting.shift())])
  for (const [index, file] of failed.entries()) {
    const result = await runFile(file, reports)
    say(
      `${file}: that was the second time, alone${index < mostRunAgain ? '' : '; too many failed the first time to let it count'}`,
    )
    count(index < mostRunAgain ? result : { ...result, failures: Math.max(1, result.failures) })
  }
  return sum
}

const racesForMoney = (file: string) => file === 'test/limits/failover/failover.test.ts'
const mostlyWaits = (file: string) => waiters.includes(file)
const needsBrowser = (file: string) => file.startsWith('test/dashboard/')

/** More failures than this are no matter of timing. */
const mostRunAgain = 6

async function runFile(file: string, reports: string): Promise<Totals> {
  const path = join(reports, `${file.replaceAll(/[^a-z0-9]+/gi, '-')}.xml`)
  rmSync(path, { force: true })
  const startedAt = performance.now()
  const run = Bun.spawn(
    [process.execPath, 'test', `./${file}`, '--timeout=20000', '--reporter=junit', `--reporter-outfile=${path}`],
    { cwd: root, stdout: 'pipe', stderr: 'pipe', env: environment },
  )
  const [out, err] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  const exitCode = await run.exited
  const report = totals(path)
  // A file that does not load, or leaves no report, is a failure of its own.
  const failures = exitCode === 0 && report !== null ? report.failures : Math.max(1, report?.failures ?? 0)
  process.stdout.write(failures > 0 ? `${out}${err}` : quiet(`${out}${err}`))
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const cpuSeconds = (Number(run.resourceUsage()?.cpuTime.total ?? 0) / 1e6).toFixed(1)
  say(`${failures > 0 ? 'FAILED' : 'ok'} ${file}: ${report?.tests ?? 0} tests, ${seconds} s, ${cpuSeconds} s of CPU`)
  return { tests: report?.tests ?? 0, failures, skipped: report?.skipped ?? 0 }
}

/** Of a file that passed: what its tests printed (figures, what did not run), without a line for each test. */
function quiet(output: string): string {
  return output
    .split('\n')
    .filter(
      line =>
        line.trim() !== '' &&
        !/^(\(pass\)|bun test|\s*\d+ (pass|fail|expect)|Ran \d|test\/.*:$| \d+ snapshots)/.test(line),
    )
    .map(line => `${line}\n`)
    .join('')
}

const missing = [
  ...(postgresIsHere() ? [] : ['postgresql']),
  ...(Bun.which('redis-server') === null ? ['redis-server'] : []),
]
await install(missing)

/** Those that take longest, which must not be left to run at the end, while a core is idle. */
const longest = [
  'test/server/workers.test.ts',
  'test/limits/failover/failover.test.ts',
  'test/faults/postgres-away.test.ts',
  'test/server/start.test.ts',
  'test/dashboard/',
  'test/cli.test.ts',
  'test/server/start-away.test.ts',
  'test/database/embedded.test.ts',
  'test/routes/usage.test.ts',
  'test/faults/upstream.test.ts',
  'test/check.test.ts',
  'test/routes/',
  'test/database/',
]
/** Those that use a quarter of a core or less. */
const waiters = [
  'test/database/postgres.test.ts',
  'test/routes/billing-stripe.test.ts',
  'test/routes/billing-grace.test.ts',
  'test/routes/billing-cards.test.ts',
  'test/runtime/inbound.test.ts',
  'test/routes/web.test.ts',
  'test/routes/mail.test.ts',
  'test/simulator/simulator.test.ts',
  'test/web/page-fetcher.test.ts',
  'test/clients/openai-failures.test.ts',
  'test/http/limits.test.ts',
  'test/runtime/disconnect.test.ts',
  'test/database/redis.test.ts',
  'test/observability/exporter.test.ts',
  'test/web/search.test.ts',
  'test/routes/insights.test.ts',
  'test/routes/enhance.test.ts',
  'test/database/channel.test.ts',
]
const isWithoutBrowser = chromiumPath() === null

/** Place in the queue. What needs a browser that is still to be fetched comes last. */
function rank(file: string): number {
  if (needsBrowser(file) && isWithoutBrowser) return longest.length + 1
  const place = longest.findIndex(beginning => file.startsWith(beginning))
  return place === -1 ? longest.length : place
}

const root = join(import.meta.dir, '..')
const filters = process.argv.slice(2)
const files = [...new Bun.Glob('test/**/*.test.ts').scanSync({ cwd: root })]
  .filter(file => filters.length === 0 || filters.some(filter => file.includes(filter)))
  .sort((left, right) => rank(left) - rank(right) || (left < right ? -1 : 1))
// Large, and needed by few files: fetched while the others run.
const browser = install(files.some(needsBrowser) && isWithoutBrowser ? ['chromium'] : [])
// One for all files that want a database and no server of their own: each makes itself a copy of the same template.
const postgres = await startPostgres({ connections: 300 })
if (postgres !== null) await makeTemplate(postgres.url)
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.on(signal, () => void (postgres?.stop() ?? Promise.resolve()).finally(() => process.exit(code)))
const environment = {
  ...process.env,
  BUN_CONFIG_MAX_HTTP_REQUESTS: '8192',
  ...(postgres === null ? {} : { [sharedPostgres]: postgres.url }),
}
const reports = mkdtempSync(join(tmpdir(), 'gateway-ai-reports-'))
const { tests, failures, skipped } = await runFiles(files, reports)
rmSync(reports, { recursive: true, force: true })
await postgres?.stop()
if (tests === 0) say('no test ran')
if (skipped > 0) say(`skipped: ${skipped}`)
const failed = tests === 0 ? Math.max(1, failures) : failures
say(`${Math.max(0, tests - failures - skipped)} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
