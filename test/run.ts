/**
 * The test command: installs requirements if permitted, runs every test file once, and sums up the runner's reports.
 * Its last line is `N passed, N failed`. Arguments select the files whose paths contain one of them, or name a file;
 * without one, all run except `test/faults`. With `CI=true` a skipped test whose requirement could have been installed
 * fails the run.
 */
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, normalize } from 'node:path'
import { dayMs } from '../src/core/text/utc-days.ts'
import { watchLauncher } from '../src/server/launcher.ts'
import { chromiumPath } from './dashboard/chromium.ts'
import { makeBundle } from './harness/bundle.ts'
import { embeddedTemplate } from './harness/data-folder.ts'
import { makeTemplate, sharedPostgres } from './harness/database.ts'
import { keptFiles } from './harness/kept-files.ts'
import { lazyCompilation } from './harness/lazy-compilation.ts'
import { has, statedNeed } from './harness/needs.ts'
import { type PrivatePostgres, startPostgres } from './harness/postgres.ts'
import { type FileResult, readReport } from './runner/junit.ts'
import { getCommand, getCpuSeconds, getEndProcesses, getProcesses } from './runner/leftovers.ts'
import { makeTemporaryFolder, removeTemporaryFolder } from './runner/temporary-folder.ts'

const root = join(import.meta.dir, '..')
const say = (line: string) => process.stdout.write(`${line}\n`)

/** Files that run only if an argument selects them: crashes, outages, processes and clients in all their variants. */
const secondTier = 'test/faults/'

/**
 * Beginnings of the paths that take longest, which start first, so that none runs at the end beside an idle core. Those
 * in `apart` have a process of their own: they start processes, hold memory to a limit, or end a server. All others
 * share processes, since loading the gateway takes longer than most of their tests.
 */
const longest = [
  secondTier,
  'test/cli.test.ts',
  'test/dashboard/',
  'test/server/',
  'test/routes/',
  'test/request/',
  'test/database/',
  'test/ledger/',
  'test/client/',
]
const apart = [
  secondTier,
  'test/cli.test.ts',
  'test/server/',
  'test/database/embedded.test.ts',
  'test/database/postgres.test.ts',
  'test/database/redis.test.ts',
  'test/client/',
  'test/limits/',
  'test/runtime/',
]
/** Files of one process. A file with a browser takes five times as long as others. */
const mostTogether = { browser: 4, usual: 10 } as const
const outside = 'an error outside of a test'
/** Longer than any process takes on a machine with two cores. */
const longestProcessMs = 240_000
/** Usual CPU time of a file, from which the announced duration follows. */
const usualCpuSeconds = { apart: 7, together: 1.2 } as const
const progressEveryMs = 10_000
/** Time to end after a signal. An installation in the middle of a package would leave it broken. */
const graceMs = { usual: 3_000, installing: 60_000 } as const

let step = 'starting'
let isEnding = false
let endedProcesses = 0
let cpuSeconds = 0
/** The running processes of tests, by their files, with their start. */
const running = new Map<readonly string[], number>()
const results: FileResult[] = []

function begin(next: string): void {
  step = next
  say(step)
}

/** Installs packages; resolves at once if there are none, or without permission. */
async function install(packages: readonly string[]): Promise<void> {
  if (packages.length === 0 || process.getuid?.() !== 0 || Bun.which('apt-get') === null) return
  begin(`installing ${packages.join(', ')}`)
  const options = {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdout: 'ignore',
    stderr: 'inherit',
  } as const
  for (const words of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', ...packages],
  ])
    if (!isEnding) await Bun.spawn(['apt-get', ...words], options).exited
}

const isForBrowser = (file: string) => /^test\/(faults\/)?(dashboard|client)\b/.test(file)

const isApart = (file: string) => apart.some(beginning => file.startsWith(beginning))

/** Divides files into processes, in their order of start. */
function divide(files: readonly string[]): readonly (readonly string[])[] {
  const byFolder = Map.groupBy(
    files.filter(file => !isApart(file)),
    file => file.split('/').slice(0, -1).slice(0, 2).join('/'),
  )
  const together = [...byFolder.values()].flatMap(members => {
    const most = members.some(isForBrowser) ? mostTogether.browser : mostTogether.usual
    const parts = Math.ceil(members.length / most)
    return Array.from({ length: parts }, (_, part) => members.filter((_, at) => at % parts === part))
  })
  const getPlace = ([file = '']: readonly string[]) => {
    const place = longest.findIndex(beginning => file.startsWith(beginning))
    return place === -1 ? longest.length : place
  }
  return [...files.filter(isApart).map(file => [file]), ...together].sort(
    (item, other) => getPlace(item) - getPlace(other),
  )
}

const getName = (files: readonly string[]) =>
  files.length === 1 ? String(files[0]) : `${files.length} files of ${files[0]?.split('/').slice(0, 2).join('/')}`

/** Runs files in one process and prints the output of their tests; for failed ones, everything except passed tests. */
async function runProcess(files: readonly string[], environment: NodeJS.ProcessEnv): Promise<readonly FileResult[]> {
  const path = join(temporary, `${Bun.hash(files.join()).toString(36)}.xml`)
  const startedAt = performance.now()
  const name = getName(files)
  const run = Bun.spawn(
    [
      process.execPath,
      'test',
      ...files.map(file => `./${file}`),
      '--timeout=240000',
      '--reporter=junit',
      `--reporter-outfile=${path}`,
    ],
    { cwd: root, stdout: 'pipe', stderr: 'pipe', env: environment },
  )
  running.set(files, startedAt)
  const [out, err] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  const exitCode = await run.exited
  if (isEnding) return []
  running.delete(files)
  endedProcesses++
  const seconds = (performance.now() - startedAt) / 1000
  const results = files.map(file => {
    const found = readReport(path)?.find(result => result.file === file)
    // A file that does not load, or is missing in the report, counts as a failure.
    return found ?? { file, tests: 0, failures: 1, seconds: 0, skipped: [], failed: ['is not in the report'] }
  })
  const failures = results.reduce((sum, result) => sum + result.failures, 0)
  process.stdout.write(quiet(`${out}${err}`, exitCode !== 0))
  const ownCpuSeconds = Number(run.resourceUsage()?.cpuTime.total ?? 0) / 1e6
  cpuSeconds += ownCpuSeconds
  const tests = results.reduce((sum, result) => sum + result.tests, 0)
  say(
    `${exitCode === 0 ? 'ok' : 'FAILED'} ${name}: ${tests} tests, ${seconds.toFixed(1)} s, ${ownCpuSeconds.toFixed(1)} s of CPU`,
  )
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
    ? [...results, { file: name, tests: 1, failures: 1, seconds: 0, skipped: [], failed: [outside] }]
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
function printFailed(): void {
  for (const { file, failed } of results) for (const title of failed) say(`failed: ${file}: ${title}`)
}

function printSlowest(): void {
  const slowest = results.toSorted((result, other) => other.seconds - result.seconds).slice(0, 10)
  say('slowest files:')
  for (const { file, seconds } of slowest) say(`  ${seconds.toFixed(1).padStart(6)} s  ${file}`)
}

/** Prints the skipped tests by requirement. Returns how many fail the run. */
function printSkipped(): number {
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

/** Returns the files that the arguments select. */
function selectedFiles(words: readonly string[]): readonly string[] {
  const named = words.map(normalize).filter(word => existsSync(join(root, word)) && word.endsWith('.ts'))
  const all = [...new Bun.Glob('test/**/*.test.ts').scanSync({ cwd: root })]
  const isSelected = (file: string) =>
    words.length === 0 ? !file.startsWith(secondTier) : words.some(word => file.includes(word))
  return [...new Set([...named, ...all.filter(isSelected)])].sort()
}

function printProgress(processes: number): void {
  const now = performance.now()
  const names = [...running].map(([files, since]) => `${getName(files)} ${Math.round((now - since) / 1000)} s`)
  const failures = results.reduce((sum, result) => sum + result.failures, 0)
  const state =
    names.length === 0
      ? step
      : `${endedProcesses} of ${processes} processes, ${failures} failed; running: ${names.join(', ')}`
  say(`${Math.round(now / 1000)} s: ${state}`)
}

async function runAll(): Promise<number> {
  const files = selectedFiles(process.argv.slice(2))
  const waiting = [...divide(files)]
  const alone = files.filter(isApart).length
  const usualSeconds = alone * usualCpuSeconds.apart + (files.length - alone) * usualCpuSeconds.together
  const lanes = availableParallelism()
  say(
    `${files.length} files in ${waiting.length} processes, about ${Math.ceil(usualSeconds / lanes / 60)} min on ${lanes} idle cores`,
  )
  const processes = waiting.length
  setInterval(() => printProgress(processes), progressEveryMs).unref()

  await install([...(has('postgres') ? [] : ['postgresql']), ...(has('redis') ? [] : ['redis-server'])])
  // Not every distribution has the first one.
  for (const browser of ['chromium-headless-shell', 'chromium'])
    if (files.some(isForBrowser) && chromiumPath() === null) await install([browser])
  if (isEnding) return 1
  begin('creating the databases that tests copy, and the bundle that they start')
  // One server for all files that need a database and no server of their own: each copies the same template.
  const [postgres, bundle] = await Promise.all([
    startShared(),
    makeBundle(join(temporary, 'bundle')),
    embeddedTemplate(),
  ])
  const environment = {
    ...process.env,
    ...bundle,
    ...lazyCompilation,
    // A process of tests runs most code a few times: the compiler's last tier takes more CPU time than it saves.
    BUN_JSC_useFTLJIT: '0',
    BUN_CONFIG_MAX_HTTP_REQUESTS: '8192',
    ...(postgres === null ? {} : { [sharedPostgres]: postgres.url }),
  }
  // More than there are cores, since most of the longest files wait for half of their time.
  await Promise.all(
    Array.from({ length: lanes + 4 }, async () => {
      for (let next = waiting.shift(); next !== undefined && !isEnding; next = waiting.shift()) {
        await withinOneDay()
        results.push(...(await runProcess(next, environment)))
      }
    }),
  )
  if (isEnding) return 1
  const { user, system } = process.cpuUsage()
  cpuSeconds += (user + system) / 1e6 + (postgres === null ? 0 : getCpuSeconds(postgres.pids()[0] ?? 0))
  await postgres?.stop()
  return printResults(await leftProcesses())
}

/** Returns the processes that tests have left, and ends them. An ended one may take a moment to disappear. */
async function leftProcesses(): Promise<readonly string[]> {
  for (let tries = 0; tries < 100 && getProcesses(temporary).length > 0; tries++) await Bun.sleep(100)
  const left = getProcesses(temporary).map(getCommand)
  await getEndProcesses(temporary, graceMs.usual)
  return left
}

async function startShared(): Promise<PrivatePostgres | null> {
  const postgres = await startPostgres({ connections: 300 })
  if (postgres !== null) await makeTemplate(postgres.url)
  return postgres
}

/** Returns the exit code. */
function printResults(left: readonly string[]): number {
  const sum = (count: (result: FileResult) => number) => results.reduce((total, result) => total + count(result), 0)
  const [tests, failures, skipped] = [
    sum(fileResult => fileResult.tests),
    sum(fileResult => fileResult.failures),
    sum(fileResult => fileResult.skipped.length),
  ]
  printSlowest()
  const refusedSkips = printSkipped()
  if (refusedSkips > 0) say(`${refusedSkips} skipped tests state no reason, or need only a package to be installed`)
  for (const command of left) say(`failed: a test has left this process: ${command}`)
  if (tests === 0) say('no test ran')
  printFailed()
  say(`${Math.round(performance.now() / 1000)} s, ${Math.round(cpuSeconds)} s of CPU`)
  const failed = failures + refusedSkips + left.length + (tests === 0 && failures === 0 ? 1 : 0)
  say(`${Math.max(0, tests - failures - skipped)} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

const temporary = makeTemporaryFolder()
process.env[keptFiles] ??= temporary
process.env.TMPDIR = temporary
process.on('exit', () => removeTemporaryFolder(temporary))

/** Ends all processes of the run, which may be in any step, and then the run. */
async function end(reason: string, code: number): Promise<void> {
  if (isEnding) return
  isEnding = true
  say(`${reason}: ending all processes of the run`)
  await getEndProcesses(temporary, step.startsWith('installing') ? graceMs.installing : graceMs.usual)
  process.exit(code)
}
for (const [signal, code] of [
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.on(signal, () => void end(signal, code))
watchLauncher(() => void end('npx has ended', 143))

try {
  const code = await runAll()
  if (!isEnding) process.exit(code)
} catch (cause) {
  // A step whose child was ended fails.
  if (!isEnding) {
    process.stderr.write(`${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}\n`)
    await end('the run cannot continue', 1)
  }
}
