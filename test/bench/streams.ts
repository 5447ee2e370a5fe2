/**
 * `bun test/bench/streams.ts`: many concurrent event streams through one gateway process, or several with `--workers`.
 * Upstream and readers are one process each. Prints the readers' results and the gateway's CPU and memory.
 */
import { command, runCommand } from '../../src/commands/command.ts'
import { cpuSeconds, getFamily, residentMegabytes } from './load/child.ts'
import { startScript, withMeasured } from './load/measured.ts'
import type { StreamReaders } from './load/stream-readers.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

const bench = command({
  program: 'bun',
  name: 'test/bench/streams.ts',
  about: 'Measure many paced event streams at once',
  operands: {},
  options: {
    streams: { type: 'string', value: 'N', about: '1000 unless given' },
    rate: { type: 'string', value: 'N', about: 'Tokens per second of each; 50 unless given' },
    seconds: { type: 'string', value: 'N', about: 'Length of each; 60 unless given' },
    ramp: { type: 'string', value: 'MS', about: 'Time over which they begin; 2000 unless given' },
    workers: { type: 'string', value: 'N', about: 'Gateway processes; 1 unless given' },
    redis: { type: 'boolean', about: 'Limits in Redis; always so with several workers' },
  },
  async run({ options }) {
    const { streams = '1000', rate = '50', seconds = '60', ramp = '2000', workers = '1', redis: withRedis } = options
    const tokens = Number(rate) * Number(seconds)
    const hasRedis = withRedis === true || workers !== '1'
    const environment = workers === '1' ? {} : { WORKERS: workers }
    const script = ['load/paced-upstream.ts', rate, String(tokens)] as const
    await withMeasured(script, { hasRedis, environment }, async ({ gateway, key, port, upstreamPort }) => {
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
        streams: Number(streams),
        rampMs: Number(ramp),
        tokens,
        deadlineMs: Number(seconds) * 1000 + 30_000,
      }
      const pids = [gateway.pid, ...getFamily(gateway.pid)]
      const used = () => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
      const before = used()
      const began = performance.now()
      const scan = startScript('load/stream-readers.ts', JSON.stringify(readers))
      let most = 0
      const watch = setInterval(() => {
        most = Math.max(most, ...pids.map(residentMegabytes))
      }, 500)
      const { line } = await scan
      clearInterval(watch)
      const took = (performance.now() - began) / 1000
      const cpu = used() - before
      const late = await (await fetch(`http://127.0.0.1:${upstreamPort}/`)).text()
      say(line)
      say(
        `gateway: ${cpu.toFixed(1)} CPU seconds in ${took.toFixed(1)} s = ${(cpu / took).toFixed(2)} cores, ` +
          `${((cpu / (Number(streams) * tokens)) * 1e6).toFixed(1)} µs a token, at most ${most.toFixed(0)} MB a process; upstream late by ${late} ms at most`,
      )
      const told = gateway
        .output()
        .split('\n')
        .filter(part => part.includes('"level":"error"') || part.includes('"level":"warn"'))
      say(`${told.length} lines of warnings and errors${told.length > 0 ? `, the last: ${told.at(-1)}` : ''}`)
    })
  },
})

process.exitCode = await runCommand(bench, process.argv.slice(2))
