/** The compared paths of the benchmark, each a separate process, and their CPU use. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startPostgres } from '../harness/postgres.ts'
import { startRedis } from '../harness/redis.ts'
import { startChild, stopChildren } from './load/child.ts'
import type { BenchDialect } from './prompts.ts'

export type Path = {
  readonly name: string
  readonly port: number
  /** Process ID of its main process. */
  readonly pid: number
  readonly headers: Readonly<Record<string, string>>
  /** The API form of its requests; absent = chat completions. */
  readonly dialect?: BenchDialect
  /** Part of the requests that it receives, for a path that would take minutes; absent = all. */
  readonly share?: number
  /** CPU seconds of its Redis so far; absent without one. */
  readonly redisSeconds?: () => Promise<number>
}

/** Starts paths with their files under `folder`. `stop` ends all of them. */
export function createPaths(folder: string) {
  const others: Bun.Subprocess[] = []
  const stores: { stop(): Promise<void> }[] = []
  const startScript = (root: string, name: string, ...words: string[]) =>
    startChild([process.execPath, join(root, 'test/bench', name), ...words], {}, root)

  return {
    async upstream(root: string): Promise<Path> {
      const run = await startScript(root, 'upstream.ts')
      return { name: 'straight', port: Number(run.line), pid: run.pid, headers: {} }
    },

    async bunProxy(root: string, upstreamPort: number): Promise<Path> {
      const run = await startScript(root, 'proxy.ts', String(upstreamPort))
      return { name: 'bun proxy', port: Number(run.line), pid: run.pid, headers: {} }
    },

    /** Returns null if nginx is not installed. */
    async nginx(upstreamPort: number): Promise<Path | null> {
      if (Bun.which('nginx') === null) return null
      const port = 20_000 + Math.floor(Math.random() * 20_000)
      const file = join(folder, 'nginx.conf')
      writeFileSync(file, nginxConfiguration(folder, port, upstreamPort))
      const child = Bun.spawn(['nginx', '-c', file], { stdout: 'ignore', stderr: 'ignore' })
      others.push(child)
      await Bun.sleep(500)
      const workers = Bun.spawnSync(['pgrep', '-P', String(child.pid)]).stdout.toString()
      return { name: 'nginx', port, pid: Number(workers.trim().split('\n')[0]) || child.pid, headers: {} }
    },

    /**
     * Starts the other gateways that are installed in a folder (see `docs/performance.md`), with nothing on: no key, limit
     * or log. Returns the names of the absent ones.
     */
    async peers(
      installed: string,
      upstreamPort: number,
    ): Promise<{ readonly paths: Path[]; readonly absent: string[] }> {
      const paths: Path[] = []
      const absent: string[] = []
      for (const { name, file, command, headers } of peers(installed, folder, upstreamPort)) {
        if (!existsSync(file)) {
          absent.push(name)
          continue
        }
        const port = 20_000 + Math.floor(Math.random() * 20_000)
        const child = Bun.spawn(command(port), { stdout: 'ignore', stderr: 'ignore', env: process.env })
        others.push(child)
        await listening(port)
        paths.push({ name, port, pid: child.pid, headers, share: 0.05 })
      }
      return { paths, absent }
    },

    /** Starts the gateway of the repository at `root`. Null if its external stores cannot be started here. */
    async gateway(name: string, root: string, upstreamPort: number, isExternal: boolean): Promise<Path | null> {
      const postgres = isExternal ? await startPostgres() : null
      if (postgres !== null) stores.push(postgres)
      const redis = isExternal && postgres !== null ? await startRedis() : null
      if (redis !== null) stores.push(redis)
      if (isExternal && (postgres === null || redis === null)) return null
      const external =
        postgres === null || redis === null
          ? {}
          : { DATABASE_URL: postgres.url, REDIS_URL: redis.url, JWT_SECRET: 'bench'.repeat(8) }
      const command = [process.execPath, join(root, 'test/bench/gateway.ts')]
      const profile = process.env.BENCH_PROFILE
      if (profile !== undefined) command.splice(1, 0, '--cpu-prof', '--cpu-prof-dir', profile, '--cpu-prof-name', name)
      const environment = {
        ...external,
        GATEWAY_DATA_DIR: join(folder, name.replaceAll(/[^a-z0-9]/g, '-')),
        PORT: '0',
        OPENAI_API_KEY: 'bench',
        OPENAI_BASE_URL: `http://127.0.0.1:${upstreamPort}/v1`,
        BUN_CONFIG_MAX_HTTP_REQUESTS: '8192',
        LOG_LEVEL: 'error',
      }
      const run = await startChild(command, environment, root)
      const { port, key }: { port: number; key: string } = JSON.parse(run.line)
      const path = { name, port, pid: run.pid, headers: { authorization: `Bearer ${key}` } }
      if (redis === null) return path
      return { ...path, redisSeconds: async () => usedCpu(String(await redis.command('INFO', 'cpu'))) }
    },

    async stop(): Promise<void> {
      for (const child of others) child.kill()
      await Promise.all([stopChildren('SIGTERM'), ...others.map(child => child.exited)])
      for (const store of stores) await store.stop()
    },
  }
}

type Peer = {
  readonly name: string
  /** Is there if the peer is installed. */
  readonly file: string
  readonly command: (port: number) => string[]
  readonly headers: Readonly<Record<string, string>>
}

function peers(installed: string, folder: string, upstreamPort: number): readonly Peer[] {
  const upstream = `http://127.0.0.1:${upstreamPort}/v1`
  const portkey = join(installed, 'node_modules/@portkey-ai/gateway/build/start-server.js')
  const litellm = join(installed, 'venv/bin/litellm')
  const configuration = join(folder, 'litellm.yaml')
  const model = `{ model: openai/gpt-4.1, api_base: '${upstream}', api_key: bench }`
  writeFileSync(
    configuration,
    `model_list: [{ model_name: openai/gpt-4.1, litellm_params: ${model} }]
general_settings: { dangerously_permit_weak_or_unset_master_key: true }
`,
  )
  const portkeyHeaders = {
    authorization: 'Bearer bench',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': upstream,
  }
  return [
    {
      name: 'Portkey on Bun',
      file: portkey,
      command: port => [process.execPath, portkey, `--port=${port}`, '--headless'],
      headers: portkeyHeaders,
    },
    {
      name: 'Portkey on Node',
      file: portkey,
      command: port => ['node', portkey, `--port=${port}`, '--headless'],
      headers: portkeyHeaders,
    },
    {
      name: 'LiteLLM',
      file: litellm,
      command: port => [litellm, '--config', configuration, '--host', '127.0.0.1', '--port', String(port)],
      headers: {},
    },
  ]
}

/** Resolves when something listens on a loopback port; throws after two minutes. */
async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 240; tries++) {
    const isOpen = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: { data() {}, open: socket => void socket.end() },
    })
      .then(() => true)
      .catch(() => false)
    if (isOpen) return
    await Bun.sleep(500)
  }
  throw new Error(`nothing listens on port ${port}`)
}

/** Parses the result of `INFO cpu`. */
function usedCpu(info: string): number {
  const part = (name: string) => Number(new RegExp(`^used_cpu_${name}:([\\d.]+)`, 'm').exec(info)?.[1])
  return part('sys') + part('user')
}

function nginxConfiguration(folder: string, port: number, upstreamPort: number): string {
  return `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream mock { server 127.0.0.1:${upstreamPort}; keepalive 64; }
  server { listen 127.0.0.1:${port}; keepalive_requests 10000000;
    location / { proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }`
}
