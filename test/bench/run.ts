/**
 * `bun run bench`: what the gateway adds, beside the least that any proxy adds. Every path is measured in the same run,
 * interleaved (A B C A B C …), so that the ratios hold whatever the machine is doing; absolute times do not travel.
 * Prints medians and writes `test/bench/results.json`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, UsageError } from '../../src/commands/command.ts'
import { showProgress } from '../../src/commands/progress.ts'
import { runCommand } from '../../src/commands/run-command.ts'
import { startPostgres } from '../harness/postgres.ts'
import { load } from './load.ts'

const here = import.meta.dir
let folder = ''
const children: Bun.Subprocess[] = []
const say = (line: string) => process.stdout.write(`${line}\n`)

const singleRequests = 1500
const manyRequests = 6000
/** Until then the compiler is at work, on the longest path most: what a process costs that has run for a minute is asked here. */
const warmingRequests = 40_000
const manyConnections = 32

type Path = {
  readonly name: string
  readonly port: number
  readonly pid: number | null
  readonly headers: Record<string, string>
}

async function start(
  command: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ pid: number; line: string }> {
  const child = Bun.spawn([...command], { stdout: 'pipe', stderr: 'inherit', env: { ...process.env, ...environment } })
  children.push(child)
  const reader = child.stdout.getReader()
  let text = ''
  while (!text.includes('\n')) {
    const piece = await reader.read()
    if (piece.done) throw new Error(`${command.join(' ')} ended before it was ready`)
    text += new TextDecoder().decode(piece.value)
  }
  void drain(reader)
  return { pid: child.pid, line: text.split('\n')[0] ?? '' }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

async function gateway(upstreamPort: string, databaseUrl: string | null): Promise<Path> {
  const environment = {
    ...(databaseUrl === null ? {} : { DATABASE_URL: databaseUrl, JWT_SECRET: 'bench'.repeat(8) }),
    GATEWAY_DATA_DIR: join(folder, 'gateway'),
    PORT: '0',
    OPENAI_API_KEY: 'bench',
    OPENAI_BASE_URL: `http://127.0.0.1:${upstreamPort}/v1`,
    BUN_CONFIG_MAX_HTTP_REQUESTS: '8192',
    LOG_LEVEL: 'error',
  }
  const run = await start([process.execPath, join(here, 'gateway.ts')], environment)
  const { port, key } = JSON.parse(run.line) as { port: number; key: string }
  return { name: 'gateway-ai', port, pid: run.pid, headers: { authorization: `Bearer ${key}` } }
}

async function nginx(upstreamPort: string): Promise<Path | null> {
  if (Bun.which('nginx') === null) return null
  const port = 20_000 + Math.floor(Math.random() * 20_000)
  const configPath = join(folder, 'nginx.conf')
  writeFileSync(
    configPath,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream mock { server 127.0.0.1:${upstreamPort}; keepalive 64; }
  server { listen 127.0.0.1:${port}; keepalive_requests 10000000;
    location / { proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }`,
  )
  const child = Bun.spawn(['nginx', '-c', configPath], { stdout: 'ignore', stderr: 'ignore' })
  children.push(child)
  await Bun.sleep(500)
  const worker = Bun.spawnSync(['pgrep', '-P', String(child.pid)])
    .stdout.toString()
    .trim()
    .split('\n')[0]
  return { name: 'nginx', port, pid: Number(worker) || child.pid, headers: {} }
}

/** User and system time of a process so far, in seconds (Linux; NaN elsewhere). */
function cpuSeconds(pid: number | null): number {
  if (pid === null) return Number.NaN
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return Number.NaN
  }
}

const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const prompt = 'Say in a few plain sentences what a gateway in front of several model providers is good for. '
  .repeat(9)
  .slice(0, 800)
const bodyOf = (stream: boolean) =>
  JSON.stringify({
    model: 'openai/gpt-4.1',
    max_tokens: 512,
    messages: [
      { role: 'system', content: 'You answer briefly and to the point.' },
      { role: 'user', content: prompt },
    ],
    ...(stream ? { stream: true, stream_mode: 'realtime' } : {}),
  })

type Row = { p50: number[]; p99: number[]; firstByte: number[]; rate: number[]; cpu: number[] }

async function measure(paths: readonly Path[], rounds: number, stream: boolean): Promise<Map<string, Row>> {
  const rows = new Map<string, Row>(
    paths.map(({ name }) => [name, { p50: [], p99: [], firstByte: [], rate: [], cpu: [] }]),
  )
  const body = bodyOf(stream)
  let done = 0
  const progress = showProgress(stream ? 'event streams' : 'JSON', () => ({ done, of: (rounds + 1) * paths.length }))
  for (let round = -1; round < rounds; round += 1)
    for (const { name, port, pid, headers } of paths) {
      const row = rows.get(name)
      const options = { port, path: '/v1/chat/completions', headers, body }
      const single = await load({ ...options, connections: 1, total: singleRequests })
      const before = cpuSeconds(pid)
      const total = round < 0 ? warmingRequests : manyRequests
      const many = await load({ ...options, connections: manyConnections, total })
      const cpu = ((cpuSeconds(pid) - before) / many.requests) * 1e6
      done++
      if (single.failures + many.failures > 0)
        throw new Error(`${name}: ${single.failures + many.failures} requests failed`)
      // The first round warms up and is thrown away.
      if (round < 0 || row === undefined) continue
      row.p50.push(single.p50)
      row.p99.push(single.p99)
      row.firstByte.push(single.firstByteP50)
      row.rate.push(many.requests / many.seconds)
      row.cpu.push(cpu)
    }
  progress.stop()
  return rows
}

function report(title: string, rounds: number, rows: Map<string, Row>): object {
  const base = rows.get('straight')
  const proxy = rows.get('bun proxy')
  say(`\n${title}: medians of ${rounds} rounds; one caller for times, ${manyConnections} callers for rate and CPU`)
  say('path          p50 ms  added p50  first byte   p99 ms  requests/s  CPU µs/request  CPU ÷ bun proxy')
  const out: Record<string, object> = {}
  for (const [name, row] of rows) {
    const figures = {
      p50_ms: median(row.p50),
      added_p50_ms: median(row.p50) - median(base?.p50 ?? []),
      first_byte_p50_ms: median(row.firstByte),
      p99_ms: median(row.p99),
      requests_per_second: Math.round(median(row.rate)),
      cpu_us_per_request: median(row.cpu),
      cpu_ratio_to_bun_proxy: median(row.cpu) / median(proxy?.cpu ?? []),
    }
    out[name] = figures
    say(
      [
        name.padEnd(12),
        figures.p50_ms.toFixed(3).padStart(7),
        figures.added_p50_ms.toFixed(3).padStart(10),
        figures.first_byte_p50_ms.toFixed(3).padStart(11),
        figures.p99_ms.toFixed(3).padStart(8),
        String(figures.requests_per_second).padStart(11),
        figures.cpu_us_per_request.toFixed(1).padStart(15),
        figures.cpu_ratio_to_bun_proxy.toFixed(2).padStart(16),
      ].join(' '),
    )
  }
  return out
}

const bench = command({
  program: 'bun run',
  name: 'bench',
  about:
    'Measure what the gateway adds to a request, and write test/bench/results.json; some minutes, best alone on a machine',
  operands: {},
  options: { rounds: { type: 'string', value: 'N', about: '5 unless given' } },
  async run({ options: { rounds = '5' } }) {
    if (!/^[1-9]\d?$/.test(rounds)) throw new UsageError('--rounds must be a whole number from 1 to 99.')
    await measureAll(Number(rounds))
  },
})

process.exitCode = await runCommand(bench, process.argv.slice(2))

async function measureAll(rounds: number): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'gateway-ai-bench-'))
  const postgres = await startPostgres()
  try {
    const upstream = await start([process.execPath, join(here, 'upstream.ts')])
    const proxy = await start([process.execPath, join(here, 'proxy.ts'), upstream.line])
    if (postgres === null)
      say('no Postgres can be started here: the embedded one shares the process, and its CPU is counted')
    const ours = await gateway(upstream.line, postgres?.url ?? null)
    const front = await nginx(upstream.line)
    if (front === null) say('nginx is not installed: its row is left out')
    const paths: Path[] = [
      { name: 'straight', port: Number(upstream.line), pid: upstream.pid, headers: {} },
      { name: 'bun proxy', port: Number(proxy.line), pid: proxy.pid, headers: {} },
      ...(front === null ? [] : [front]),
      ours,
    ]
    const json = report('JSON', rounds, await measure(paths, rounds, false))
    const events = report('Event stream (42 frames)', rounds, await measure(paths, rounds, true))
    const results = {
      at: new Date().toISOString(),
      bun: Bun.version,
      cpu: cpus()[0]?.model ?? '',
      cores: cpus().length,
      rounds,
      json,
      events,
    }
    writeFileSync(join(here, 'results.json'), `${JSON.stringify(results, null, 2)}\n`)
  } finally {
    for (const child of children) child.kill()
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
