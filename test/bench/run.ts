/**
 * `bun run bench`: CPU and time that the gateway adds, beside nginx and a plain Bun proxy. Every path is measured in
 * the same run, interleaved (A B C A B C …): ratios are comparable under any load, absolute times are not. Writes
 * `test/bench/results.json`. With `--against COMMIT` it compares this tree with that commit, and writes nothing.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { choice, command, runCommand, UsageError } from '../../src/commands/command.ts'
import { showProgress } from '../../src/commands/progress.ts'
import { checkOut } from './against.ts'
import { cpuSeconds } from './load/child.ts'
import { load } from './load.ts'
import { createPaths, type Path } from './paths.ts'
import { type BenchDialect, benchDialects, chatBody } from './prompts.ts'

const root = resolve(import.meta.dir, '../..')
const say = (line: string) => process.stdout.write(`${line}\n`)

const connections = 32
/** A gateway ships usage records after the requests; this CPU time belongs to them. */
const shippedWithinMs = 700
const workloads = [
  { name: 'JSON, new prompts', isNew: true, stream: false },
  { name: 'JSON, the same prompt', isNew: false, stream: false },
  { name: 'streams of 20 chunks 2 ms apart, new prompts', isNew: true, stream: true },
] as const
type Workload = (typeof workloads)[number]

/** Requests per round and path. The compiler is active for the first `warming` requests, most on the longest path. */
const sizes = {
  full: { rounds: 7, warming: 20_000, single: 800, many: 5_000, singleStreams: 60, streams: 1_200 },
  quick: { rounds: 5, warming: 6_000, single: 100, many: 1_500, singleStreams: 10, streams: 400 },
  // Short rounds: a neighbor's work then meets every form alike.
  dialects: { rounds: 25, warming: 4_000, single: 100, many: 500, singleStreams: 8, streams: 100 },
} as const
type RunSize = Readonly<Record<keyof typeof sizes.full, number>>

type Row = {
  p50: number[]
  p99: number[]
  /** With ten callers. */
  ten: number[]
  first: number[]
  rate: number[]
  cpu: number[]
  redis: number[]
}
type Rows = ReadonlyMap<string, Row>

const bench = command({
  program: 'bun run',
  name: 'bench',
  about: 'Measure CPU and time of a request beside a bare proxy, and write test/bench/results.json; some 15 minutes',
  operands: {},
  options: {
    against: { type: 'string', value: 'COMMIT', about: 'compare this tree with that commit; writes no file' },
    dialects: { type: 'boolean', about: 'compare the API forms over embedded stores; writes no file' },
    quick: { type: 'boolean', about: 'some 2 minutes: fewer requests, without nginx and repeated prompts' },
    peers: {
      type: 'string',
      value: 'FOLDER',
      about: 'also measure the other gateways that are installed there; writes no file',
    },
    warming: { type: 'string', value: 'N', about: 'requests per path before the first round' },
    stores: { type: 'string', value: 'KIND', about: 'embedded or external; both unless given' },
    rounds: {
      type: 'string',
      value: 'N',
      about: `${sizes.full.rounds} unless given, ${sizes.quick.rounds} with --quick`,
    },
  },
  async run({ options: { against, dialects = false, quick = false, stores, rounds, peers, warming } }) {
    if (rounds !== undefined && !/^[1-9]\d?$/.test(rounds))
      throw new UsageError('--rounds must be a whole number from 1 to 99.')
    const kind = stores === undefined ? null : choice('--stores', stores, ['embedded', 'external'])
    if (warming !== undefined && !/^[1-9]\d{0,5}$/.test(warming))
      throw new UsageError('--warming must be a whole number from 1 to 999999.')
    const usual = quick ? sizes.quick : sizes.full
    const size = { ...usual, warming: Number(warming ?? usual.warming) }
    if (dialects) {
      const short = { ...sizes.dialects, rounds: quick ? 9 : sizes.dialects.rounds }
      return measureDialects({ ...short, rounds: Number(rounds ?? short.rounds) })
    }
    const compared = { commit: against ?? null, peers: peers ?? null, kind }
    await measureAll(compared, quick, { ...size, rounds: Number(rounds ?? size.rounds) })
  },
})

process.exitCode = await runCommand(bench, process.argv.slice(2))

/** Measures every API form against chat completions, in one gateway. */
async function measureDialects(size: RunSize): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-bench-'))
  const paths = createPaths(folder)
  try {
    const upstream = await paths.upstream(root)
    const proxy = await paths.bunProxy(root, upstream.port)
    const ours = await paths.gateway('embedded', root, upstream.port, false)
    if (ours === null) throw new Error('the gateway with embedded stores could not be started')
    const forms = (Object.keys(benchDialects) as BenchDialect[]).map(dialect => ({ ...ours, name: dialect, dialect }))
    for (const workload of workloads.filter(({ isNew }) => isNew)) {
      const rows = await measure([upstream, proxy, ...forms], workload, size, workload === workloads[0])
      report(workload.name, size.rounds, rows)
      const base = rows.get('chat completions')
      const straight = rows.get('straight')?.p50 ?? []
      const added = (row: Row) => row.p50.map((time, round) => time - (straight[round] ?? Number.NaN))
      if (base === undefined) continue
      for (const [name, row] of rows)
        if (forms.some(form => form.name === name))
          say(
            `${name} ÷ chat completions: CPU ${ratio(row.cpu, base.cpu).toFixed(3)}, added p50 ${ratio(added(row), added(base)).toFixed(3)}`,
          )
    }
  } finally {
    await paths.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What a run measures beside the proxy. */
type Compared = {
  /** Null = no other commit. */
  readonly commit: string | null
  /** Folder of the installed peers; null = none. */
  readonly peers: string | null
  /** Null = both kinds of stores. */
  readonly kind: 'embedded' | 'external' | null
}

async function measureAll({ commit, peers, kind }: Compared, isQuick: boolean, size: RunSize): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-bench-'))
  const otherRoot = join(folder, 'against')
  const paths = createPaths(folder)
  let removeOther = () => {}
  try {
    if (commit !== null) removeOther = checkOut(root, commit, otherRoot)
    const upstream = await paths.upstream(root)
    const all: Path[] = [upstream, await paths.bunProxy(root, upstream.port)]
    const front = (isQuick && peers === null) || commit !== null ? null : await paths.nginx(upstream.port)
    if (front !== null) all.push(front)
    if (peers !== null) {
      const others = await paths.peers(peers, upstream.port)
      all.push(...others.paths)
      for (const name of others.absent) say(`${name} is not installed in ${peers}: its row is left out`)
    }
    for (const stores of ['embedded', 'external'] as const) {
      if (kind !== null && kind !== stores) continue
      for (const [label, where] of [
        ['', root],
        [` at ${commit}`, otherRoot],
      ] as const) {
        if (where === otherRoot && commit === null) continue
        const ours = await paths.gateway(`${stores}${label}`, where, upstream.port, stores === 'external')
        if (ours === null) say('Postgres and Redis are not installed: the rows with external stores are left out')
        else all.push(ours)
      }
    }
    const wanted = workloads.filter(({ isNew }) => isNew || (!isQuick && commit === null))
    const results: Record<string, object> = {}
    for (const workload of wanted) {
      const rows = await measure(all, workload, size, workload === wanted[0])
      results[workload.name] = report(workload.name, size.rounds, rows)
      if (commit !== null) compare(rows, ` at ${commit}`)
    }
    if (commit === null && peers === null && !isQuick && kind === null)
      writeFileSync(
        join(import.meta.dir, 'results.json'),
        `${JSON.stringify({ at: new Date().toISOString(), commit: getHead(), ...machine(), rounds: size.rounds, results }, null, 2)}\n`,
      )
  } finally {
    await paths.stop()
    removeOther()
    rmSync(folder, { recursive: true, force: true })
  }
}

function getHead(): string {
  return Bun.spawnSync(['git', '-C', root, 'describe', '--always', '--dirty']).stdout.toString().trim()
}

function machine() {
  return { bun: Bun.version, cpu: cpus()[0]?.model ?? '', cores: cpus().length }
}

/** The first round is a warm-up and discarded. Every second round uses the reverse order. */
async function measure(
  paths: readonly Path[],
  { name, isNew, stream }: Workload,
  size: RunSize,
  isFirst: boolean,
): Promise<Rows> {
  const rows = new Map<string, Row>(
    paths.map(path => [path.name, { p50: [], p99: [], ten: [], first: [], rate: [], cpu: [], redis: [] }]),
  )
  const of = (size.rounds + 1) * paths.length
  let done = 0
  const progress = showProgress(name, () => ({ done, of }))
  for (let round = 0; round <= size.rounds; round++)
    for (const { name: path, port, pid, headers, redisSeconds, dialect = 'chat completions', share = 1 } of round %
      2 ===
    0
      ? paths
      : paths.toReversed()) {
      const body = () => chatBody({ isNew, stream }, dialect)
      const options = { port, path: benchDialects[dialect], headers, body }
      const alone = Math.ceil((stream ? size.singleStreams : size.single) * share)
      const single = await load({ ...options, connections: 1, total: alone })
      const ten = await load({ ...options, connections: 10, total: alone * 4 })
      const [before, redisBefore] = [cpuSeconds(pid), await redisSeconds?.()]
      const measured = stream ? size.streams : size.many
      const total = round > 0 ? measured : isFirst ? size.warming : measured * 2
      const many = await load({ ...options, connections, total: Math.ceil(total * share) })
      await Bun.sleep(shippedWithinMs)
      const [after, redisAfter] = [cpuSeconds(pid), await redisSeconds?.()]
      done++
      const failures = single.failures + ten.failures + many.failures
      const failure = single.failure ?? ten.failure ?? many.failure
      if (failures > 0) {
        const told = `${path}: ${failures} requests failed, the first with ${failure?.split('\r\n', 1)[0]}`
        if (share === 1) throw new Error(told)
        say(`${told}: its row is left out`)
        rows.delete(path)
      }
      const row = rows.get(path)
      if (round === 0 || row === undefined) continue
      row.p50.push(single.p50)
      row.p99.push(single.p99)
      row.ten.push(ten.p50)
      row.first.push(single.firstByteP50)
      row.rate.push(many.requests / many.seconds)
      row.cpu.push(((after - before) / many.requests) * 1e6)
      if (redisBefore !== undefined && redisAfter !== undefined)
        row.redis.push(((redisAfter - redisBefore) / many.requests) * 1e6)
    }
  progress.stop()
  return rows
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** Returns the median of the ratios by round: both values of a round had the same conditions. */
function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((value, round) => value / (to[round] ?? Number.NaN)))
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000
}

function report(title: string, rounds: number, rows: Rows): object {
  const [base, proxy] = [rows.get('straight'), rows.get('bun proxy')]
  const width = Math.max(...[...rows.keys()].map(name => name.length))
  say(
    `\n${title}: medians of ${rounds} rounds; one caller for times, ten for p50 of 10, ${connections} for rate and CPU`,
  )
  say(
    `${'path'.padEnd(width)}  p50 ms  added p50  first byte   p99 ms  p50 of 10  requests/s   CPU µs  ÷ bun proxy  Redis µs`,
  )
  const out: Record<string, object> = {}
  for (const [name, row] of rows) {
    const figures = {
      p50_ms: rounded(median(row.p50)),
      added_p50_ms: rounded(median(row.p50) - median(base?.p50 ?? [])),
      first_byte_p50_ms: rounded(median(row.first)),
      p99_ms: rounded(median(row.p99)),
      p50_of_10_ms: rounded(median(row.ten)),
      requests_per_second: Math.round(median(row.rate)),
      cpu_us_per_request: rounded(median(row.cpu)),
      cpu_ratio_to_bun_proxy: rounded(ratio(row.cpu, proxy?.cpu ?? [])),
      redis_us_per_request: row.redis.length === 0 ? null : rounded(median(row.redis)),
    }
    out[name] = figures
    say(
      [
        name.padEnd(width),
        figures.p50_ms.toFixed(3).padStart(7),
        figures.added_p50_ms.toFixed(3).padStart(10),
        figures.first_byte_p50_ms.toFixed(3).padStart(11),
        figures.p99_ms.toFixed(3).padStart(8),
        figures.p50_of_10_ms.toFixed(3).padStart(10),
        String(figures.requests_per_second).padStart(11),
        figures.cpu_us_per_request.toFixed(1).padStart(8),
        figures.cpu_ratio_to_bun_proxy.toFixed(2).padStart(12),
        (figures.redis_us_per_request?.toFixed(1) ?? '–').padStart(9),
      ].join(' '),
    )
  }
  return out
}

/** Compares this tree's results with those of the other commit. */
function compare(rows: Rows, label: string): void {
  for (const [name, row] of rows) {
    const other = rows.get(`${name}${label}`)
    if (other === undefined) continue
    const figures = [
      ['CPU', row.cpu, other.cpu],
      ['p50', row.p50, other.p50],
      ['first byte', row.first, other.first],
      ['requests/s', row.rate, other.rate],
      ...(row.redis.length === 0 ? [] : [['Redis', row.redis, other.redis] as const]),
    ] as const
    say(
      `${name}: this tree ÷${label}: ${figures.map(([what, a, b]) => `${what} ${ratio(a, b).toFixed(3)}`).join(', ')}`,
    )
  }
}
