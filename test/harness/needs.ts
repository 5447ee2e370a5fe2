/**
 * Requirements of tests beyond Bun. A test with an unmet requirement is reported as skipped, with the requirement at
 * the end of its title. `test/run.ts` reads it there and fails in continuous integration if installing a package would
 * have met it.
 */
import { describe, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromiumPath } from '../dashboard/chromium.ts'
import { canStartPostgres } from './postgres.ts'

type Need = {
  /** The missing item if the requirement is not met. */
  readonly what: string
  readonly isMet: () => boolean
}

const isOnPath = (program: string) => () => Bun.which(program) !== null
const hasPythonPackage = (python: string, name: string) => () =>
  Bun.which(python) !== null &&
  Bun.spawnSync([python, '-c', `import ${name}`], { stdout: 'ignore', stderr: 'ignore' }).success

/** The interpreter that has the package `anthropic`. */
export const anthropicPython = process.env.ANTHROPIC_PYTHON ?? 'python3'

function canMount(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  const place = mkdtempSync(join(tmpdir(), 'gateway-mount-'))
  const isMounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', place]).success
  if (isMounted) Bun.spawnSync(['umount', place])
  rmSync(place, { recursive: true, force: true })
  return isMounted
}

function canUnshare(): boolean {
  if (Bun.which('unshare') === null) return false
  return Bun.spawnSync(['unshare', '--pid', '--fork', '--mount-proc', 'true'], { stderr: 'ignore' }).success
}

/** Needs that installing a package meets. */
const installable = {
  postgres: { what: 'Postgres with initdb, and an unprivileged user to run it as', isMet: canStartPostgres },
  redis: { what: 'redis-server', isMet: isOnPath('redis-server') },
  chromium: { what: 'Chromium', isMet: () => chromiumPath() !== null },
  node: { what: 'Node.js', isMet: isOnPath('node') },
  bash: { what: 'bash', isMet: isOnPath('bash') },
  curl: { what: 'curl', isMet: isOnPath('curl') },
  openssl: { what: 'openssl', isMet: isOnPath('openssl') },
  python: { what: 'python3', isMet: isOnPath('python3') },
} as const satisfies Record<string, Need>

/** Requirements that no package meets: another platform, permissions, or data outside of the repository. */
const given = {
  deno: { what: 'Deno', isMet: isOnPath('deno') },
  helm: { what: 'Helm 3', isMet: isOnPath('helm') },
  pythonClient: { what: 'python3 with the package openai', isMet: hasPythonPackage('python3', 'openai') },
  pythonAnthropic: {
    what: 'python3 with the package anthropic',
    isMet: hasPythonPackage(anthropicPython, 'anthropic'),
  },
  nginx: { what: 'nginx', isMet: isOnPath('nginx') },
  pgbouncer: { what: 'PgBouncer', isMet: isOnPath('pgbouncer') },
  linux: { what: 'Linux', isMet: () => process.platform === 'linux' },
  namespaces: { what: 'the right to create PID namespaces', isMet: canUnshare },
  tmpfs: { what: 'the right to mount a tmpfs', isMet: canMount },
  data: {
    what: 'the labelled data of ../shared',
    isMet: () => existsSync(new URL('../../../shared/data', import.meta.url)),
  },
  fixtures: {
    what: 'the recorded provider traffic of ../shared',
    isMet: () => existsSync(new URL('../../../shared/fixtures', import.meta.url)),
  },
  catalog: {
    what: 'the published catalog of ../shared',
    isMet: () => existsSync(new URL('../../../shared/catalog.json', import.meta.url)),
  },
} as const satisfies Record<string, Need>

const all = { ...installable, ...given }
const met = new Map<NeedName, boolean>()

export type NeedName = keyof typeof all

/** Returns true if this machine meets all of `names`. Checks once per process. */
export function has(...names: readonly NeedName[]): boolean {
  return names.every(name => {
    const known = met.get(name) ?? all[name].isMet()
    met.set(name, known)
    return known
  })
}

/** Declares a test that is reported as skipped if the machine lacks one of `names`. */
export function testNeeding(
  names: NeedName | readonly NeedName[],
  title: string,
  body: () => unknown,
  timeoutMs?: number,
) {
  const missing = firstMissing(names)
  if (missing === undefined) test(title, async () => void (await body()), timeoutMs)
  else test.skip(`${title} ${needText(missing)}`, async () => void (await body()), timeoutMs)
}

/** Declares a group of tests that are reported as skipped if the machine lacks one of `names`. */
export function describeNeeding(names: NeedName | readonly NeedName[], title: string, body: () => void): void {
  const missing = firstMissing(names)
  if (missing === undefined) describe(title, body)
  else describe.skip(`${title} ${needText(missing)}`, body)
}

/** Reports tests as skipped that a file declares only if the services for them have started. */
export function reportSkipped(names: NeedName | readonly NeedName[], title: string): void {
  testNeeding(names, title, () => {
    throw new Error('The machine has what these tests need, but it did not start.')
  })
}

/** Returns what a test uses, which is there if the test states its needs. */
export function needed<T>(value: T | null): T {
  if (value === null) throw new Error('This test uses a service that it does not state as a need.')
  return value
}

function firstMissing(names: NeedName | readonly NeedName[]): NeedName | undefined {
  return (typeof names === 'string' ? [names] : names).find(name => !has(name))
}

const needText = (name: NeedName) => `[needs ${all[name].what}]`

/** Returns the requirement in a skipped test's full title; null = none. */
export function statedNeed(title: string): { readonly what: string; readonly isInstallable: boolean } | null {
  const what = /\[needs ([^\]]+)\]/.exec(title)?.[1]
  if (what === undefined) return null
  return { what, isInstallable: Object.values(installable).some(need => need.what === what) }
}
