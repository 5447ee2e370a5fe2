/**
 * A private real Postgres in a temporary folder on its own loopback port: no shared server, and nothing left behind.
 */
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { keptFolder } from './kept-files.ts'

export type PrivatePostgres = {
  readonly url: string
  /** Returns the process IDs of the server and all its children. */
  pids(): number[]
  /** Kills all processes like `kill -9`: no shutdown, no checkpoint. */
  crash(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Returns true if this machine can start a Postgres. */
export function canStartPostgres(): boolean {
  return programsFolder() !== null && (process.getuid?.() !== 0 || unprivilegedUser() !== null)
}

/** Starts a Postgres; null if this machine cannot. Call `stop` in `afterAll`. */
export async function startPostgres({ connections = 200 } = {}): Promise<PrivatePostgres | null> {
  const programs = programsFolder()
  if (programs === null || !canStartPostgres()) return null
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null
  const template = await templateFolder(programs, user)
  const folder = userFolder(join(tmpdir(), 'pg-'), user)
  const data = join(folder, 'data')
  // Copied by root, the files keep their owner.
  const copied = Bun.spawnSync(['cp', '-a', join(template, 'data'), data], { stderr: 'pipe' })
  if (!copied.success) throw new Error(`cp: ${copied.stderr}`)
  const control = (...words: string[]) => run(folder, user, [join(programs, 'pg_ctl'), '-D', data, '-w', ...words])
  const port = freePort()
  const settings = `-c listen_addresses=127.0.0.1 -c port=${port} -c unix_socket_directories='${folder}' -c fsync=off -c full_page_writes=off -c wal_level=minimal -c max_wal_senders=0 -c max_connections=${connections}`
  const start = () => control('-t', '20', '-l', join(folder, 'server.log'), '-o', settings, 'start')
  await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    pids: () => serverPids(data),
    crash: () => control('-m', 'immediate', 'stop'),
    start,
    async stop() {
      await control('-m', 'immediate', 'stop').catch(() => {})
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type User = { readonly uid: number; readonly gid: number }

/**
 * Returns a data directory as created by `initdb`. It is created once per machine, since copying takes a tenth of the
 * time.
 */
async function templateFolder(programs: string, user: User | null): Promise<string> {
  const words = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--wal-segsize=1', '--no-sync']
  const made = Bun.hash([programs, user?.uid, ...words].join(' ')).toString(36)
  const template = join(keptFolder(), `gateway-ai-postgres-${made}`)
  if (existsSync(template)) return template
  const making = userFolder(join(keptFolder(), 'pg-making-'), user)
  await run(making, user, [join(programs, 'initdb'), '-D', join(making, 'data'), ...words])
  try {
    renameSync(making, template)
  } catch {
    // Another test process was faster; its template is equivalent.
    rmSync(making, { recursive: true, force: true })
  }
  return template
}

function userFolder(prefix: string, user: User | null): string {
  const folder = mkdtempSync(prefix)
  chmodSync(folder, 0o755)
  if (user !== null) chownSync(folder, user.uid, user.gid)
  return folder
}

/** Runs a Postgres program to its end as a permitted user. */
async function run(folder: string, user: User | null, command: readonly string[]): Promise<void> {
  const child = Bun.spawn(
    user === null
      ? [...command]
      : ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', ...command],
    {
      cwd: folder,
      // The temporary folder tells to which run of the tests the server belongs.
      env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', TMPDIR: tmpdir() },
      stdin: 'ignore',
      stdout: Bun.file(join(folder, 'out.log')),
      stderr: Bun.file(join(folder, 'error.log')),
    },
  )
  if ((await child.exited) !== 0) throw new Error(`${command[0]}: ${readFileSync(join(folder, 'error.log'), 'utf8')}`)
}

function programsFolder(): string | null {
  const root = '/usr/lib/postgresql'
  const installed = existsSync(root) ? readdirSync(root).map(release => join(root, release, 'bin')) : []
  const onPath = Bun.which('initdb')
  const folders = [...installed, ...(onPath === null ? [] : [join(onPath, '..')])]
  return folders.find(folder => ['initdb', 'pg_ctl', 'postgres'].every(name => existsSync(join(folder, name)))) ?? null
}

function unprivilegedUser(): User | null {
  if (Bun.which('setpriv') === null) return null
  for (const name of ['postgres', 'nobody']) {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find(part => part.startsWith(`${name}:`))
    const [, , uid, gid] = line?.split(':') ?? []
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  return null
}

function serverPids(data: string): number[] {
  const main = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
  const children = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(name => {
      try {
        return readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(main)
      } catch {
        return false
      }
    })
  return [main, ...children.map(Number)]
}
