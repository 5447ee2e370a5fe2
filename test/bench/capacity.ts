/**
 * `bun test/bench/capacity.ts`: the figures of docs/performance.md. One gateway with Redis and Postgres serves JSON, short streams
 * and held streams; the load on all three is read from their own counters, in CPU seconds, commands and bytes, so that
 * neighbors on the machine change it little. Work without requests is measured first and subtracted.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, runCommand } from '../../src/commands/command.ts'
import { openDatabase } from '../../src/database/database.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { cpuSeconds, median, residentMegabytes, startChild, stopChildren } from './load/child.ts'
import type { StreamReaders } from './load/stream-readers.ts'
import { load } from './load.ts'
import { chatBody } from './prompts.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
const idleSeconds = 10
/** The compiler works most during the first requests. */
const warming = 3_000
/** Usage records reach Postgres after the responses. */
const shippedWithinMs = 3_000
const heldSeconds = 20
const heldRate = 5

type Counters = {
  readonly seconds: number
  readonly gatewayCpu: number
  readonly redisCpu: number
  readonly redisCommands: number
  readonly redisBytes: number
  readonly postgresCpu: number
  readonly transactions: number
  readonly walBytes: number
  readonly ledgerBytes: number
}

const bench = command({
  program: 'bun',
  name: 'test/bench/capacity.ts',
  about: 'Measure the load of a request on gateway, Redis and Postgres; some 3 minutes',
  operands: {},
  options: {
    requests: { type: 'string', value: 'N', about: 'Measured JSON requests per round; 4000 unless given' },
    rounds: { type: 'string', value: 'N', about: '3 unless given; the medians are printed' },
    streams: { type: 'string', value: 'N', about: 'Most streams held at once; 800 unless given' },
  },
  async run({ options: { requests = '4000', rounds = '3', streams = '800' } }) {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-capacity-'))
    const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
    if (postgres === null || redis === null) throw new Error('needs Postgres and Redis')
    try {
      await measure({ postgres, redis, folder, count: Number(requests), rounds: Number(rounds), most: Number(streams) })
    } finally {
      await stopChildren()
      await Promise.all([postgres.stop(), redis.stop()])
      rmSync(folder, { recursive: true, force: true })
    }
  },
})

process.exitCode = await runCommand(bench, process.argv.slice(2))

type Target = { readonly pid: number; readonly port: number; readonly key: string }

type Measured = {
  readonly postgres: PrivatePostgres
  readonly redis: PrivateRedis
  readonly folder: string
  readonly count: number
  readonly rounds: number
  readonly most: number
}

async function measure({ postgres, redis, folder, count, rounds, most }: Measured): Promise<void> {
  const script = (name: string, ...words: string[]) => [process.execPath, join(import.meta.dir, name), ...words]
  const upstream = await startChild(script('upstream.ts'))
  const paced = await startChild(script('load/paced-upstream.ts', String(heldRate), String(heldRate * heldSeconds)))
  const start = async (name: string, upstreamPort: string): Promise<Target> => {
    const child = await startChild(script('gateway.ts'), {
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      JWT_SECRET: 'bench'.repeat(8),
      BENCH_ACCOUNT: name,
      GATEWAY_DATA_DIR: join(folder, name),
      PORT: '0',
      OPENAI_API_KEY: 'bench',
      OPENAI_BASE_URL: `http://127.0.0.1:${upstreamPort}/v1`,
      BUN_CONFIG_MAX_HTTP_REQUESTS: '8192',
      LOG_LEVEL: 'error',
    })
    const { port, key }: { port: number; key: string } = JSON.parse(child.line)
    return { pid: child.pid, port, key }
  }
  const first = await start('requests', upstream.line)
  const read = counters(postgres, redis, first.pid)
  const send = (stream: boolean, total: number) =>
    load({
      port: first.port,
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${first.key}` },
      body: () => chatBody({ isNew: true, stream }),
      connections: 32,
      total,
    })
  await send(false, warming)
  await send(true, 300)
  await Bun.sleep(shippedWithinMs)

  const idle = await between(read, () => Bun.sleep(idleSeconds * 1_000))
  say(
    `load average ${readFileSync('/proc/loadavg', 'utf8').split(' ')[0]}; ${count} requests per round, ${rounds} rounds\n`,
  )
  say(
    '| Per second, without requests | Gateway CPU | Redis commands | Redis CPU | Postgres transactions | Postgres CPU |',
  )
  say('| --- | --: | --: | --: | --: | --: |')
  const per = (name: keyof Counters) => idle[name] / idle.seconds
  say(
    `| one gateway | ${ms(per('gatewayCpu'))} ms | ${per('redisCommands').toFixed(0)} | ${ms(per('redisCpu'))} ms | ${per('transactions').toFixed(1)} | ${ms(per('postgresCpu'))} ms |\n`,
  )
  say(
    '| Per request | Gateway CPU | Redis commands | Redis CPU | Redis bytes | Postgres transactions | Postgres CPU | WAL | Tables |',
  )
  say('| --- | --: | --: | --: | --: | --: | --: | --: | --: |')
  for (const [name, stream, total] of [
    ['JSON, 1 KB prompt', false, count],
    ['stream of 20 chunks', true, Math.round(count / 4)],
  ] as const) {
    const results: Counters[] = []
    for (let round = 0; round < rounds; round++) {
      const used = await between(read, async () => {
        const { failures, failure } = await send(stream, total)
        if (failures > 0) throw new Error(`${failures} failed: ${failure}`)
        await Bun.sleep(shippedWithinMs)
      })
      results.push(minus(used, idle, total))
    }
    const of = (field: keyof Counters) => median(results.map(result => result[field]))
    say(
      `| ${name} | ${us(of('gatewayCpu'))} µs | ${of('redisCommands').toFixed(2)} | ${us(of('redisCpu'))} µs | ${of('redisBytes').toFixed(0)} | ${of('transactions').toFixed(3)} | ${us(of('postgresCpu'))} µs | ${of('walBytes').toFixed(0)} B | ${of('ledgerBytes').toFixed(0)} B |`,
    )
  }
  await holdStreams(await start('streams', paced.line), most)
}

/** Prints memory, sockets and CPU of a gateway that holds streams of 5 tokens per second. */
async function holdStreams({ pid, port, key }: Target, most: number): Promise<void> {
  say('\n| Streams held | Admitted | Resident MB | File descriptors | CPU per second | CPU per token |')
  say('| --: | --: | --: | --: | --: | --: |')
  // The same number first: code and buffers that stay are not memory per stream.
  for (const streams of [most / 4, 0, most / 4, most / 2, most]) {
    const tokens = heldRate * heldSeconds
    const readers: StreamReaders = {
      port,
      path: '/v1/chat/completions',
      key,
      body: JSON.stringify({
        model: 'openai/gpt-4.1',
        max_tokens: 8192,
        stream: true,
        stream_mode: 'realtime',
        messages: [{ role: 'user', content: 'Tell a long story about a lighthouse.' }],
      }),
      streams,
      rampMs: 4_000,
      tokens,
      deadlineMs: heldSeconds * 1_000 + 60_000,
    }
    const before = cpuSeconds(pid)
    const scan =
      streams === 0
        ? Bun.sleep(5_000).then(() => null)
        : startChild([process.execPath, join(import.meta.dir, 'load/stream-readers.ts'), JSON.stringify(readers)])
    await Bun.sleep(streams === 0 ? 4_000 : heldSeconds * 900)
    const [memory, files] = [residentMegabytes(pid), readdirSync(`/proc/${pid}/fd`).length]
    const ended = await scan
    const cpu = cpuSeconds(pid) - before
    const admitted: number = ended === null ? 0 : JSON.parse(ended.line).admitted
    const seconds = streams === 0 ? 5 : heldSeconds + 4
    say(
      `| ${streams} | ${admitted} | ${memory.toFixed(0)} | ${files} | ${ms(cpu / seconds)} ms | ${streams === 0 ? '–' : `${us(cpu / (admitted * tokens))} µs`} |`,
    )
  }
}

function ms(seconds: number): string {
  return (seconds * 1e3).toFixed(1)
}

function us(seconds: number): string {
  return (seconds * 1e6).toFixed(0)
}

/** Returns a function that reads all counters. Those of Postgres are on a connection of their own, and cost it two transactions. */
function counters(postgres: PrivatePostgres, redis: PrivateRedis, gateway: number): () => Promise<Counters> {
  const number = (text: string, name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1])
  const database = openDatabase(postgres.url, { connections: 1 })
  return async () => {
    const info = String(await redis.command('INFO', 'everything'))
    const [row] = await database.run(
      ({ sql }) => sql<{ transactions: number; wal: number; tables: number }[]>`
        select pg_stat_get_db_xact_commit(oid)::float8 as transactions, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal,
          (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'usage_records'::regclass)::float8 as tables
        from pg_database where datname = current_database()`,
    )
    return {
      seconds: performance.now() / 1_000,
      gatewayCpu: cpuSeconds(gateway),
      redisCpu: number(info, 'used_cpu_sys') + number(info, 'used_cpu_user'),
      redisCommands: number(info, 'total_commands_processed'),
      redisBytes: number(info, 'total_net_input_bytes') + number(info, 'total_net_output_bytes'),
      postgresCpu: postgres.pids().reduce((sum, pid) => sum + (cpuSeconds(pid) || 0), 0),
      transactions: row?.transactions ?? Number.NaN,
      walBytes: row?.wal ?? Number.NaN,
      ledgerBytes: row?.tables ?? Number.NaN,
    }
  }
}

async function between(read: () => Promise<Counters>, work: () => Promise<unknown>): Promise<Counters> {
  const before = await read()
  await work()
  const after = await read()
  return mapped(after, (value, name) => value - before[name])
}

/** Returns the use per request, without what an idle gateway uses in the same time. */
function minus(used: Counters, idle: Counters, requests: number): Counters {
  return mapped(used, (value, name) => (value - (idle[name] / idle.seconds) * used.seconds) / requests)
}

function mapped(all: Counters, change: (value: number, name: keyof Counters) => number): Counters {
  return {
    seconds: change(all.seconds, 'seconds'),
    gatewayCpu: change(all.gatewayCpu, 'gatewayCpu'),
    redisCpu: change(all.redisCpu, 'redisCpu'),
    redisCommands: change(all.redisCommands, 'redisCommands'),
    redisBytes: change(all.redisBytes, 'redisBytes'),
    postgresCpu: change(all.postgresCpu, 'postgresCpu'),
    transactions: change(all.transactions, 'transactions'),
    walBytes: change(all.walBytes, 'walBytes'),
    ledgerBytes: change(all.ledgerBytes, 'ledgerBytes'),
  }
}
