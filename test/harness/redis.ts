/** A private real Redis in a temporary folder on its own loopback port: no shared server, and nothing left behind. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { freePort } from './free-port.ts'
import { patienceMs } from './patience.ts'

export type PrivateRedis = {
  readonly url: string
  readonly port: number
  readonly tlsPort: number | null
  /** Where it writes its files. */
  readonly folder: string
  /** Sends one command over a separate connection and returns the raw reply. */
  command(...words: string[]): Promise<unknown>
  freeze(): void
  thaw(): void
  /** Kills the process like `kill -9`. Its memory is lost. */
  crash(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

type TlsFiles = { readonly authority: string; readonly certificate: string; readonly key: string }

export type PrivateRedisOptions = {
  readonly cluster?: boolean
  /** Files; it then also listens for TLS on `tlsPort`. */
  readonly tls?: TlsFiles
  /** Required of clients, and sent to a primary. `url` has it. */
  readonly password?: string
}

/** Starts a Redis; null if this machine cannot. Call `stop` in `afterAll`. */
export async function startRedis(options: PrivateRedisOptions = {}): Promise<PrivateRedis | null> {
  const program = Bun.which('redis-server')
  if (program === null) return null
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const port = freePort()
  const { tls, password } = options
  const tlsPort = tls === undefined ? null : freePort()
  const url = `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}127.0.0.1:${port}`
  const settings = [
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--daemonize', 'no'],
    // `DEBUG RELOAD` keeps a server loading for as long as a test needs it.
    ['--enable-debug-command', 'local'],
    tls === undefined
      ? []
      : ['--tls-port', String(tlsPort), ...tlsSettings(tls).flatMap(([name, file]) => [`--${name}`, file])],
    password === undefined ? [] : ['--requirepass', password, '--masterauth', password],
    options.cluster ? ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'] : [],
  ].flat()
  let child: ReturnType<typeof Bun.spawn> | null = null

  const command = async (...words: string[]): Promise<unknown> => {
    const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false, connectTimeout: patienceMs } })
    client.on('error', () => {})
    try {
      await client.connect()
      return await client.sendCommand(words)
    } finally {
      client.destroy()
    }
  }
  const start = async () => {
    child = Bun.spawn([program, ...settings], { cwd: folder, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
    for (let tries = 0; ; tries++) {
      const answer = await command('PING').catch(() => null)
      if (answer === 'PONG') return
      if (tries === 200) throw new Error('redis-server did not start')
      await Bun.sleep(20)
    }
  }
  const crash = async () => {
    child?.kill('SIGKILL')
    await child?.exited
  }
  await start()
  return {
    url,
    port,
    tlsPort,
    folder,
    command,
    freeze: () => child?.kill('SIGSTOP'),
    thaw: () => child?.kill('SIGCONT'),
    crash,
    start,
    async stop() {
      await crash()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const tlsSettings = ({ authority, certificate, key }: TlsFiles) =>
  [
    ['tls-cert-file', certificate],
    ['tls-key-file', key],
    ['tls-ca-cert-file', authority],
    ['tls-auth-clients', 'no'],
  ] as const

type SentinelOptions = {
  /** Required of clients; without a username that of the default user. */
  readonly login?: { readonly username?: string; readonly password: string }
  /** It then accepts only TLS, and connects to the primary with it. */
  readonly tls?: TlsFiles
}

/** Starts a Sentinel with a quorum of one for the failover of a primary, and its URL for `REDIS_URL`. */
export async function startSentinel(
  primary: PrivateRedis,
  name: string,
  { login, tls }: SentinelOptions = {},
): Promise<{ url: string; knowsReplica(): Promise<boolean>; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'sentinel-'))
  const port = freePort()
  const file = join(folder, 'sentinel.conf')
  const { password } = new URL(primary.url)
  const own = [
    ...['down-after-milliseconds 500', 'failover-timeout 2000'],
    ...(password === '' ? [] : [`auth-pass ${JSON.stringify(decodeURIComponent(password))}`]),
  ].map(text => text.replace(' ', ` ${name} `))
  const monitor = `monitor ${name} 127.0.0.1 ${tls === undefined ? primary.port : primary.tlsPort} 1`
  writeFileSync(
    file,
    [
      ...(tls === undefined
        ? [`port ${port}`]
        : [
            'port 0',
            `tls-port ${port}`,
            'tls-replication yes',
            ...tlsSettings(tls).map(tlsSetting => tlsSetting.join(' ')),
          ]),
      'bind 127.0.0.1',
      `dir ${folder}`,
      ...[monitor, ...own].map(text => `sentinel ${text}`),
      ...(login === undefined ? [] : [loginSetting(login)]),
      '',
    ].join('\n'),
  )
  const child = Bun.spawn(['redis-server', file, '--sentinel'], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  try {
    await untilListening(port)
    if (child.exitCode !== null) throw new Error(`the Sentinel exited: another process may have taken port ${port}`)
  } catch (cause) {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
    throw cause
  }
  const at = `127.0.0.1:${port}`
  const ownLogin = login === undefined ? '' : `${login.username ?? ''}:${encodeURIComponent(login.password)}@`
  const query = [
    ...(login?.username === undefined ? [] : [`sentinel_username=${login.username}`]),
    ...(login === undefined ? [] : [`sentinel_password=${encodeURIComponent(login.password)}`]),
  ].join('&')
  return {
    url: `redis${tls === undefined ? '' : 's'}+sentinel://${password === '' ? '' : `:${password}@`}${at}/${name}${query === '' ? '' : `?${query}`}`,
    async knowsReplica() {
      const socket = { reconnectStrategy: false, connectTimeout: patienceMs } as const
      const client = createClient({ url: `redis://${ownLogin}${at}`, RESP: 2, socket })
      client.on('error', () => {})
      try {
        await client.connect()
        const replicas = await client.sendCommand(['SENTINEL', 'REPLICAS', name])
        return Array.isArray(replicas) && replicas.length > 0
      } finally {
        client.destroy()
      }
    },
    async stop() {
      child.kill('SIGKILL')
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilListening(port: number): Promise<void> {
  for (let tries = 0; ; tries++) {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).catch(() => null)
    socket?.end()
    if (socket !== null) return
    if (tries === 500) throw new Error('the Sentinel did not start')
    await Bun.sleep(20)
  }
}

/** A user may do what the gateway needs, and nothing else. */
function loginSetting({ username, password }: NonNullable<SentinelOptions['login']>): string {
  if (username === undefined) return `requirepass ${JSON.stringify(password)}`
  return `user ${username} on ${JSON.stringify(`>${password}`)} -@all +auth +sentinel|get-master-addr-by-name`
}

/** Returns the number of open requests with a checkpoint. */
export async function openCheckpointCount(redis: Pick<PrivateRedis, 'command'>): Promise<number> {
  const script = `local count = 0
    for _, key in ipairs(redis.call('KEYS', '*')) do
      if redis.call('TYPE', key).ok == 'hash' then
        for _, field in ipairs(redis.call('HKEYS', key)) do
          if string.sub(field, 1, 2) == 'p:' then count = count + 1 end
        end
      end
    end
    return count`
  return Number(await redis.command('EVAL', script, '0'))
}

/** Starts three masters that share the slots; null if this machine cannot. */
export async function startRedisCluster(): Promise<readonly PrivateRedis[] | null> {
  const nodes: PrivateRedis[] = []
  for (const [first, last] of [
    [0, 5460],
    [5461, 10_922],
    [10_923, 16_383],
  ]) {
    const node = await startRedis({ cluster: true })
    if (node === null) return null
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last))
    for (const other of nodes) await node.command('CLUSTER', 'MEET', '127.0.0.1', String(other.port))
    nodes.push(node)
  }
  const isWhole = async (node: PrivateRedis) => {
    const info = String(await node.command('CLUSTER', 'INFO'))
    return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')
  }
  for (let tries = 0; !(await Promise.all(nodes.map(isWhole))).every(Boolean); tries++) {
    if (tries === 100) throw new Error('the nodes did not become a cluster')
    await Bun.sleep(50)
  }
  return nodes
}
