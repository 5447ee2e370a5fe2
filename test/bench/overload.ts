/**
 * `bun test/bench/overload.ts`: throughput of the gateway at three times its capacity. One gateway on a real Postgres
 * and a real Redis, a mock upstream, and open-loop load, each a separate process. Rounds of unloaded, capacity and
 * overload are interleaved, so that the ratios do not depend on other load. Prints one line per run, then the ratios.
 */
import { command, runCommand } from '../../src/commands/command.ts'
import { cpuSeconds, median } from './load/child.ts'
import { atCapacity, type Measured, measuredRequest, startScript, withMeasured } from './load/measured.ts'
import type { OpenLoad, OpenLoadResult } from './load/open-load.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
async function run({ gateway, key, port }: Measured, name: string, rate: number, seconds: number) {
  const { path, template: body } = measuredRequest
  const options: OpenLoad = { port, path, keys: [key], body, rate, seconds, warmingSeconds: 2, connections: 3000 }
  const before = cpuSeconds(gateway.pid)
  const loading = startScript('load/open-load.ts', JSON.stringify(options))
  const result = JSON.parse((await loading).line) as OpenLoadResult
  const cpu = cpuSeconds(gateway.pid) - before
  const good = result.statuses['200'] ?? { count: 0, p50: Number.NaN, p99: Number.NaN, max: Number.NaN }
  const others = Object.entries(result.statuses).filter(([status]) => status !== '200')
  say(
    `${name.padEnd(10)} ${String(Math.round(rate)).padStart(6)}/s  goodput ${String(result.goodput).padStart(5)}/s  cpu ${(cpu / seconds).toFixed(2)} cores  ` +
      `answered p50 ${good.p50} p99 ${good.p99} max ${good.max} ms  ` +
      others.map(([status, { count, p50, p99 }]) => `${status}: ${count} (p50 ${p50} p99 ${p99} ms)`).join('  ') +
      `  send lag p99 ${result.sendLagP99} ms`,
  )
  return {
    goodput: result.goodput,
    cores: cpu / seconds,
    perCpu: result.goodput / (cpu / seconds),
    p99: good.p99,
    p50: good.p50,
  }
}

const bench = command({
  program: 'bun',
  name: 'test/bench/overload.ts',
  about: 'Measure goodput and times at three times the capacity',
  operands: {},
  options: {
    rounds: { type: 'string', value: 'N', about: '3 unless given' },
    seconds: { type: 'string', value: 'N', about: 'Length of a run; 10 unless given' },
    times: { type: 'string', value: 'X', about: 'Load in capacities; 3 unless given' },
    cpu: { type: 'string', value: 'X', about: 'CPU time of the gateway per second; unlimited unless given' },
    stores: { type: 'string', value: 'KIND', about: '`redis` (and Postgres, unless given), or `postgres`' },
  },
  async run({ options: { rounds = '3', seconds = '10', stores = 'redis', times = '3', cpu } }) {
    // The deadlines of tests would let a request wait longer for its start than in service.
    const options = { hasRedis: stores === 'redis', environment: { MINIMUM_DEADLINE_MS: '0' }, cpu }
    await withMeasured(['upstream.ts'], options, async rig => {
      await measure(rig, { rounds: Number(rounds), seconds: Number(seconds), times: Number(times) })
      const lines = rig.gateway.output().split('\n')
      const last = lines.filter(line => line.startsWith('{')).slice(-3)
      say(last.join('\n').slice(0, 2000))
    })
  },
})

type Plan = { readonly rounds: number; readonly seconds: number; readonly times: number }

async function measure(rig: Measured, { rounds, seconds, times }: Plan): Promise<void> {
  await atCapacity(rig, 8_000)
  const ratios: { goodput: number; perCpu: number; p99: number }[] = []
  for (let round = 0; round < rounds; round++) {
    const { requests, seconds: took } = await atCapacity(rig, 4_000)
    const capacity = requests / took
    const unloaded = await run(rig, 'unloaded', capacity * 0.2, seconds)
    const before = cpuSeconds(rig.gateway.pid)
    const full = await atCapacity(rig, Math.round(capacity * 5))
    const perCpu = full.requests / (cpuSeconds(rig.gateway.pid) - before)
    const rate = full.requests / full.seconds
    say(
      `${'capacity'.padEnd(10)} ${Math.round(rate)}/s, ${Math.round(perCpu)} per CPU second, p50 ${full.p50.toFixed(1)} p99 ${full.p99.toFixed(1)} ms at 32 connections`,
    )
    const over = await run(rig, 'overload', rate * times, seconds)
    // If neighbors leave the gateway less of a core than before, the load is higher than intended.
    say(`${' '.repeat(11)}${((rate * times) / (over.cores * perCpu)).toFixed(1)} times what its CPU time was good for`)
    ratios.push({ goodput: over.goodput / rate, perCpu: over.perCpu / perCpu, p99: over.p99 / unloaded.p99 })
  }
  const of = (name: 'goodput' | 'perCpu' | 'p99') => median(ratios.map(ratio => ratio[name])).toFixed(2)
  say(
    `medians: goodput ${of('goodput')} of the capacity (per CPU second ${of('perCpu')}), p99 ${of('p99')} of the unloaded`,
  )
}

process.exitCode = await runCommand(bench, process.argv.slice(2))
