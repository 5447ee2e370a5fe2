/** A private real Postgres in a temporary folder, on a loopback port of its own: never a shared server, nothing left behind. */
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type PrivatePostgres = {
  readonly url: string
  /** Process ids of the server and of all its children. */
  pids(): number[]
  /** As `kill -9` of all of them would: no shutdown, no checkpoint. */
  crash(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Starts one; null (and a printed line) where this machine cannot. `stop` it in `afterAll`. */
export async function startPostgres(): Promise<PrivatePostgres | null> {
  const programs = programsFolder()
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null
  if (programs === null || (process.getuid?.() === 0 && user === null)) {
    process.stdout.write('real Postgres did not run: initdb and an unprivileged user to run it as are needed\n')
    return null
  }
  const folder = mkdtempSync(join(tmpdir(), 'pg-'))
  chmodSync(folder, 0o755)
  if (user !== null) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const run = async (program: string, args: readonly string[]) => {
    const command = [join(programs, program), ...args]
    const child = Bun.spawn(
      user === null ? command : ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', ...command],
      {
        cwd: folder,
        env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' },
        stdin: 'ignore',
        stdout: Bun.file(join(folder, 'out.log')),
        stderr: Bun.file(join(folder, 'error.log')),
      },
    )
    if ((await child.exited) !== 0) throw new Error(`${program}: ${readFileSync(join(folder, 'error.log'), 'utf8')}`)
  }
  const port = freePort()
  const settings = `-c listen_addresses=127.0.0.1 -c port=${port} -c unix_socket_directories='${folder}' -c fsync=off -c max_connections=50`
  const start = () =>
    run('pg_ctl', ['-D', data, '-w', '-t', '20', '-l', join(folder, 'server.log'), '-o', settings, 'start'])
  await run('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'])
  await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    pids: () => serverPids(data),
    crash: () => run('pg_ctl', ['-D', data, '-m', 'immediate', '-w', 'stop']),
    start,
    async stop() {
      await run('pg_ctl', ['-D', data, '-m', 'immediate', '-w', 'stop']).catch(() => {})
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function programsFolder(): string | null {
  const root = '/usr/lib/postgresql'
  const installed = existsSync(root) ? readdirSync(root).map(release => join(root, release, 'bin')) : []
  const onPath = Bun.which('initdb')
  const folders = [...installed, ...(onPath === null ? [] : [join(onPath, '..')])]
  return folders.find(folder => ['initdb', 'pg_ctl', 'postgres'].every(name => existsSync(join(folder, name)))) ?? null
}

function unprivilegedUser(): { readonly uid: number; readonly gid: number } | null {
  if (Bun.which('setpriv') === null) return null
  for (const name of ['postgres', 'nobody']) {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find(one => one.startsWith(`${name}:`))
    const [, , uid, gid] = line?.split(':') ?? []
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  return null
}

function freePort(): number {
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  probe.stop(true)
  return probe.port
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
