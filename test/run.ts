/**
 * The test command: installs requirements if permitted, runs every test file once, and sums up the runner's reports.
 * Its last line is `N passed, N failed`. Arguments select the files whose paths contain one of them. With `CI=true` a
 * skipped test whose requirement could have been installed fails the run.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { dayMs } from '../src/core/text/utc-days.ts'
import { embeddedTemplate } from './harness/data-folder.ts'
import { makeTemplate, sharedPostgres } from './harness/database.ts'
import { keptFiles } from './harness/kept-files.ts'
import { lazyCompilation } from './harness/lazy-compilation.ts'
import { has, statedNeed } from './harness/needs.ts'
import { startPostgres } from './harness/postgres.ts'
import { type FileResult, readReport } from './junit.ts'

const root = join(import.meta.dir, '..')
const say = (line: string) => process.stdout.write(`${line}\n`)

/**
 * Files with a process of their own, longest first, so that none runs at the end beside an idle core: they start
 * processes, hold memory or time to a limit, or end a server. All others share processes, since loading the gateway
 * takes longer than most of their tests.
 */
const apart = [
  'test/limits/failover/failover.test.ts',
  'test/server/workers.test.ts',
  'test/server/start-away.test.ts',
  'test/check.test.ts',
  'test/cli.test.ts',
  'test/dashboard/pages.test.ts',
  'test/dashboard/',
  'test/faults/upstream.test.ts',
  'test/server/',
  'test/routes/usage.test.ts',
  'test/database/embedded.test.ts',
  'test/faults/',
  'test/client/',
  'test/limits/',
  'test/runtime/',
  'test/database/postgres.test.ts',
  'test/database/redis.test.ts',
]
const mostTogether = 10
const outside = 'an error outside of a test'
/** Longer than any process takes on a machine with two cores. */
const longestProcessMs = 150_000

/** Processes of tests, which end with the run. */
const running = new Set<Bun.Subprocess>()

/** Memory as a folder, and the free bytes from which it holds a run: more than ten times its files. */
const memoryFolder = '/dev/shm'
const enoughFreeBytes = 2 ** 32
const temporaryPrefix = 'gateway-ai-run-'

/**
 * Returns a new folder for the run's temporary files, in memory if there is room: creating and dropping a database takes
 * a disk ten times the CPU time.
 */
function temporaryFolder(): string {
  let place = tmpdir()
  try {
    const { bavail, bsize } = statfsSync(memoryFolder)
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find(line => line.split(' ')[1] === memoryFolder)
    // Some tests run programs from their folder.
    if (bavail * bsize >= enoughFreeBytes && mount?.includes('noexec') === false) place = memoryFolder
  } catch {
    // This system has no such folder.
  }
  // A run that was killed left its folder.
  for (const name of readdirSync(place).filter(one => one.startsWith(temporaryPrefix)))
    if (Date.now() - statSync(join(place, name)).mtimeMs > dayMs)
      rmSync(join(place, name), { recursive: true, force: true })
  const folder = mkdtempSync(join(place, temporaryPrefix))
  // A Postgres in it runs as another user.
  chmodSync(folder, 0o755)
  return folder
}

/** Installs packages; resolves at once if there are none, or without permission. */
async function install(packages: readonly string[]): Promise<void> {
  if (packages.length === 0 || process.getuid?.() !== 0 || Bun.which('apt-get') === null) return
  const options = {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdout: 'ignore',
    stderr: 'inherit',
  } as const
  await Bun.spawn(['apt-get', 'update', '-qq'], options).exited
  await Bun.spawn(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages], options).exited
}

/** Divides files into processes, in their order of start. */
function processesOf(files: readonly string[]): readonly (readonly string[])[] {
  const placeOf = (file: string) => apart.findIndex(beginning => file.startsWith(beginning))
  const alone = files.filter(file => placeOf(file) !== -1).sort((one, other) => placeOf(one) - placeOf(other))
  const byFolder = Map.groupBy(
    files.filter(file => placeOf(file) === -1),
    file => file.split('/').slice(0, -1).slice(0, 2).join('/'),
  )
  const together = [...byFolder.values()].flatMap(members => {
    const parts = Math.ceil(members.length / mostTogether)
    return Array.from({ length: parts }, (_, part) => members.filter((_, at) => at % parts === part))
  })
  return [...alone.map(file => [file]), ...together]
}

/** Runs files in one process and prints the output of their tests; for failed ones, everything except passed tests. */
async function runProcess(files: readonly string[]): Promise<readonly FileResult[]> {
  const path = join(temporary, `${Bun.hash(files.join()).toString(36)}.xml`)
  const startedAt = performance.now()
  const run = Bun.spawn(
    [
      process.execPath,
      'test',
      ...files.map(file => `./${file}`),
      '--timeout=60000',
      '--reporter=junit',
      `--reporter-outfile=${path}`,
    ],
    { cwd: root, stdout: 'pipe', stderr: 'pipe', env: environment },
  )
  running.add(run)
  const [out, err] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  const exitCode = await run.exited
  running.delete(run)
  const seconds = (performance.now() - startedAt) / 1000
  const results = files.map(file => {
    const found = readReport(path)?.find(result => result.file === file)
    // A file that does not load, or is missing in the report, counts as a failure.
    return found ?? { file, tests: 0, failures: 1, seconds: 0, skipped: [], failed: ['is not in the report'] }
  })
  const failures = results.reduce((sum, result) => sum + result.failures, 0)
  process.stdout.write(quiet(`${out}${err}`, exitCode !== 0))
  const cpuSeconds = (Number(run.resourceUsage()?.cpuTime.total ?? 0) / 1e6).toFixed(1)
  const tests = results.reduce((sum, result) => sum + result.tests, 0)
  const names = files.length === 1 ? files[0] : `${files.length} files of ${files[0]?.split('/').slice(0, 2).join('/')}`
  say(`${exitCode === 0 ? 'ok' : 'FAILED'} ${names}: ${tests} tests, ${seconds.toFixed(1)} s, ${cpuSeconds} s of CPU`)
  const [only] = results
  if (files.length === 1 && only !== undefined)
    return [
      {
        ...only,
        seconds,
        failures: exitCode === 0 ? 0 : Math.max(1, failures),
        failed: exitCode !== 0 && only.failed.length === 0 ? [outside] : only.failed,
      },
    ]
  // An error between two tests fails the process and belongs to no test.
  return exitCode !== 0 && failures === 0
    ? [...results, { file: names ?? '', tests: 1, failures: 1, seconds: 0, skipped: [], failed: [outside] }]
    : results
}

/** Returns the output without lines for passed and skipped tests and without the runner's totals. */
function quiet(output: string, hasFailed: boolean): string {
  const dropped = /^(\((pass|skip)\)|bun test|\s*\d+ (pass|fail|skip|expect)|Ran \d|\s*\d+ snapshots)/
  return output
    .split('\n')
    .filter(line => line.trim() !== '' && !dropped.test(line) && (hasFailed || !/^test\/.*:$/.test(line)))
    .map(line => `${line}\n`)
    .join('')
}

/**
 * Resolves at once, or after midnight UTC if a process that starts now could run past it: usage, quotas, invoices and
 * partitions belong to days, and a test that asks on two of them finds half.
 */
async function withinOneDay(): Promise<void> {
  const leftMs = dayMs - (Date.now() % dayMs)
  if (leftMs > longestProcessMs) return
  say(`waiting ${Math.ceil(leftMs / 1000)} s for midnight UTC`)
  await Bun.sleep(leftMs + 100)
}

/** Prints the failed tests again: a log that was cut at its beginning still names them. */
function printFailed(results: readonly FileResult[]): void {
  for (const { file, failed } of results) for (const title of failed) say(`failed: ${file}: ${title}`)
}

function printSlowest(results: readonly FileResult[]): void {
  const slowest = results.toSorted((one, other) => other.seconds - one.seconds).slice(0, 10)
  say('slowest files:')
  for (const { file, seconds } of slowest) say(`  ${seconds.toFixed(1).padStart(6)} s  ${file}`)
}

/** Prints the skipped tests by requirement. Returns how many fail the run. */
function printSkipped(results: readonly FileResult[]): number {
  const titles = results.flatMap(({ file, skipped }) =>
    skipped.map(title => ({ file, title, need: statedNeed(title) })),
  )
  for (const [what, group] of Map.groupBy(titles, ({ need }) => need?.what ?? 'states no reason')) {
    say(`skipped: ${group.length} (${what})`)
    for (const { file, title } of group) say(`  ${file}: ${title.replace(/ \[needs [^\]]+\]/, '')}`)
  }
  const isFailure = (need: (typeof titles)[number]['need']) =>
    need === null || (process.env.CI === 'true' && need.isInstallable)
  return titles.filter(({ need }) => isFailure(need)).length
}

const filters = process.argv.slice(2)
const files = [...new Bun.Glob('test/**/*.test.ts').scanSync({ cwd: root })]
  .filter(file => filters.length === 0 || filters.some(filter => file.includes(filter)))
  .sort()
const isForBrowser = (file: string) => file.startsWith('test/dashboard/') || file.startsWith('test/client/')
await install([
  ...(has('postgres') ? [] : ['postgresql']),
  ...(has('redis') ? [] : ['redis-server']),
  ...(has('chromium') || !files.some(isForBrowser) ? [] : ['chromium']),
])

process.env[keptFiles] = tmpdir()
const temporary = temporaryFolder()
process.env.TMPDIR = temporary
process.on('exit', () => rmSync(temporary, { recursive: true, force: true }))

// One server for all files that need a database and no server of their own: each copies the same template.
const [postgres] = await Promise.all([
  startPostgres({ connections: 300 }),
  // Made here, because it takes 7 s of CPU, which the first files would each spend.
  embeddedTemplate(),
])
if (postgres !== null) await makeTemplate(postgres.url)
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.on(signal, () => {
    for (const run of running) run.kill()
    void (postgres?.stop() ?? Promise.resolve()).finally(() => process.exit(code))
  })
const environment = {
  ...process.env,
  ...lazyCompilation,
  // A process of tests runs most code a few times: the compiler's last tier takes more CPU time than it saves.
  BUN_JSC_useFTLJIT: '0',
  BUN_CONFIG_MAX_HTTP_REQUESTS: '8192',
  ...(postgres === null ? {} : { [sharedPostgres]: postgres.url }),
}
const waiting = [...processesOf(files)]
const results: FileResult[] = []
// More than there are cores, since most of the longest files wait for half of their time.
const lanes = Array.from({ length: availableParallelism() + 2 }, async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    await withinOneDay()
    results.push(...(await runProcess(next)))
  }
})
await Promise.all(lanes)
await postgres?.stop()

const sum = (count: (result: FileResult) => number) => results.reduce((total, result) => total + count(result), 0)
const [tests, failures, skipped] = [sum(one => one.tests), sum(one => one.failures), sum(one => one.skipped.length)]
printSlowest(results)
const refusedSkips = printSkipped(results)
if (refusedSkips > 0) say(`${refusedSkips} skipped tests state no reason, or need only a package to be installed`)
if (tests === 0) say('no test ran')
printFailed(results)
const failed = failures + refusedSkips + (tests === 0 && failures === 0 ? 1 : 0)
say(`${Math.max(0, tests - failures - skipped)} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
