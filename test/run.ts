/**
 * The test command: makes sure that a real Postgres can be started, runs every test, checks types and style, and prints
 * what the runner itself reported. Its last line is `N passed, N failed`.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const say = (line: string) => process.stdout.write(`${line}\n`)

function postgresIsHere(): boolean {
  if (Bun.which('initdb') !== null) return true
  const root = '/usr/lib/postgresql'
  return existsSync(root) && readdirSync(root).some(release => existsSync(join(root, release, 'bin', 'initdb')))
}

function install(packages: readonly string[]): void {
  if (process.getuid?.() !== 0 || Bun.which('apt-get') === null) {
    say(`not installed and not installable here: ${packages.join(', ')}; tests that need it say so`)
    return
  }
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { env: environment, stdout: 'ignore', stderr: 'inherit' } as const
  Bun.spawnSync(['apt-get', 'update', '-qq'], options)
  Bun.spawnSync(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages], options)
}

/** Totals as the runner wrote them into its report; null where it wrote none. */
function totals(report: string): { tests: number; failures: number; skipped: number } | null {
  const head = /<testsuites\b[^>]*>/.exec(report)?.[0]
  if (head === undefined) return null
  const count = (name: string) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head)?.[1] ?? 0)
  return { tests: count('tests'), failures: count('failures') + count('errors'), skipped: count('skipped') }
}

if (!postgresIsHere()) install(['postgresql'])

const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-test-'))
const reportPath = join(folder, 'report.xml')
const filters = process.argv.slice(2)
const run = Bun.spawnSync(
  [process.execPath, 'test', '--timeout=20000', '--reporter=junit', `--reporter-outfile=${reportPath}`, ...filters],
  { stdout: 'inherit', stderr: 'inherit', env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '8192' } },
)
const report = existsSync(reportPath) ? totals(readFileSync(reportPath, 'utf8')) : null
rmSync(folder, { recursive: true, force: true })

if (report === null || report.tests === 0) {
  say('the runner left no report: no test ran')
  process.exit(1)
}
// A runner that failed without a failed test (a file that does not load) is a failure all the same.
const failed = run.exitCode === 0 ? report.failures : Math.max(1, report.failures)
if (report.skipped > 0) say(`skipped: ${report.skipped}`)
say(`${report.tests - report.failures - report.skipped} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
