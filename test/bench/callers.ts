/**
 * `bun test/bench/callers.ts`: clients that wait for each response, at one gateway process above its capacity: clients that
 * pause for a second after a rejection, clients after an overload, a burst after an overload and a pause, and clients that
 * repeat a rejected request at once beside open streams. Prints one line per case.
 */
import { command, runCommand } from '../../src/commands/command.ts'
import { type Asked, startCallers } from '../faults/kept-callers.ts'
import { atCapacity, type Measured, measuredRequest, startScript, withMeasured } from './load/measured.ts'
import { getTimes } from './load/open-load.ts'
import type { StreamReaders, StreamsResult } from './load/stream-readers.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
const streams = 50
const tokensPerSecond = 20
/** After the last case, streams that the gateway delays have time to end. */
const deadlineMs = 60_000

const bench = command({
  program: 'bun',
  name: 'test/bench/callers.ts',
  about: 'Measure clients that wait for each response, above the capacity',
  operands: {},
  options: {
    seconds: { type: 'string', value: 'N', about: 'Length of a case; 15 unless given' },
    callers: { type: 'string', value: 'N', about: 'Clients that pause after a rejection; 128 unless given' },
    impatient: { type: 'string', value: 'N', about: 'Clients that repeat at once; 2000 unless given' },
    cpu: { type: 'string', value: 'X', about: 'CPU time of the gateway per second; unlimited unless given' },
  },
  async run({ options: { seconds = '15', callers = '128', impatient = '2000', cpu } }) {
    const tokens = String(tokensPerSecond * (Number(seconds) + 4))
    // The deadlines of tests would let a request wait longer for its start than in service.
    const options = { hasRedis: true, environment: { MINIMUM_DEADLINE_MS: '0' }, cpu }
    await withMeasured(['load/paced-upstream.ts', String(tokensPerSecond), tokens], options, rig =>
      measure(rig, { seconds: Number(seconds), callers: Number(callers), impatient: Number(impatient) }),
    )
  },
})

type Plan = { readonly seconds: number; readonly callers: number; readonly impatient: number }

async function measure(rig: Measured, { seconds, callers, impatient }: Plan): Promise<void> {
  await atCapacity(rig, 8_000)
  const { requests, seconds: took } = await atCapacity(rig, 4_000)
  const capacity = requests / took
  say(`capacity ${Math.round(capacity)}/s at 32 connections`)
  const goodput = ({ answered }: Asked) => `goodput ${((answered / seconds / capacity) * 100).toFixed(0)}% of it`

  const patient = await during(seconds, rig, callers, status => (status === '200' ? 0 : 1_000))
  say(`${callers} that pause for 1 s after a rejection: ${goodput(patient)}, ${describe(patient)}`)

  await during(5, rig, impatient, () => 0)
  const after = await during(seconds, rig, callers, () => 0)
  say(`${callers} that repeat at once, right after an overload: ${goodput(after)}, ${describe(after)}`)

  await during(5, rig, impatient, () => 0)
  await Bun.sleep(10_000)
  const burst = await during(0, rig, 32, () => 0)
  say(`32 at once, 10 s after an overload: ${describe(burst)}`)

  const alone = await readStreams(rig, seconds)
  say(`${streams} streams alone: ${describeStreams(alone)}`)
  const beside = readStreams(rig, seconds)
  await Bun.sleep(2_000)
  const repeating = await during(seconds, rig, impatient, () => 0)
  say(`${impatient} that repeat a rejected request at once: ${goodput(repeating)}, ${describe(repeating)}`)
  say(`${streams} streams beside them: ${describeStreams(await beside)}`)
}

/** Runs clients for some seconds; in none each sends one request. */
async function during(
  seconds: number,
  { gateway, key }: Measured,
  callers: number,
  pauseMs: (status: string | null) => number,
): Promise<Asked> {
  const { path, body } = measuredRequest
  const running = startCallers({ url: gateway.url, key, callers, pauseMs, path, body })
  if (seconds > 0) await Bun.sleep(seconds * 1_000)
  return running.stop()
}

async function readStreams({ port, key }: Measured, seconds: number): Promise<StreamsResult> {
  const readers: StreamReaders = {
    port,
    path: measuredRequest.path,
    key,
    body: JSON.stringify({
      model: 'openai/gpt-4.1',
      max_tokens: 8192,
      stream: true,
      stream_mode: 'realtime',
      messages: [{ role: 'user', content: 'Tell a long story about a lighthouse.' }],
    }),
    streams,
    rampMs: 500,
    tokens: tokensPerSecond * (seconds + 4),
    deadlineMs,
  }
  const { line } = await startScript('load/stream-readers.ts', JSON.stringify(readers))
  return JSON.parse(line) as StreamsResult
}

function describe({ times, failed, answered }: Asked): string {
  const total = Object.values(failed).reduce((sum, count) => sum + count, answered)
  const of = Object.entries(times).map(([status, values]) => {
    const { count, p50, p99, max } = getTimes([...values])
    const least = Math.round(Math.min(...values))
    return `${status}: ${count} (${((count / total) * 100).toFixed(1)}%; least ${least}, p50 ${p50}, p99 ${p99}, max ${max} ms)`
  })
  const broken = Object.entries(failed).filter(([status]) => !(status in times))
  return `${of.join(', ')}${broken.map(([reason, count]) => `, ${reason}: ${count}`).join('')}`
}

function describeStreams({ admitted, complete, outOfOrder, gapP99, stalls, ownLagMs }: StreamsResult): string {
  return `${admitted} admitted, ${complete} complete, ${outOfOrder} tokens lost, p99 of a gap ${gapP99} ms, longest ${stalls.max} ms (readers late by ${ownLagMs} ms)`
}

process.exitCode = await runCommand(bench, process.argv.slice(2))
