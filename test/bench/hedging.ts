/**
 * Time to first token with and without hedging, on simulated hosts with a heavy tail: 97% of the first tokens are
 * log-normal around 200 ms, 3% take 10 to 100 times as long (Pareto). Both hosts draw independently. Requests with and
 * without hedging alternate. Usage: `bun test/bench/hedging.ts [requests of each kind]`.
 */
import { systemClock } from '../../src/database/clock.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { startGateway } from '../harness/gateway.ts'
import { getRandom } from '../simulate/simulation.ts'

const count = Number(process.argv[2] ?? 1_500)
const concurrency = 16
const random = getRandom(20_261_123)

/** Milliseconds to the first token. */
function drawFirstMs(): number {
  if (random() < 0.03) return Math.min(20_000, 2_000 * (1 - random()) ** (-1 / 1.2))
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return 200 * Math.exp(0.35 * normal)
}

const simulator = await startSimulator({ clock: systemClock, random })
const pricing = { input_per_mtok: 1, output_per_mtok: 4 }
const server = { base_url: simulator.urls.openai }
const providers = [
  {
    id: 'own',
    ...server,
    api_key_env: 'OWN_KEY',
    models: [{ id: 'shared', pricing, capabilities: { streaming: true } }],
  },
  { id: 'mirror', ...server, api_key_env: 'MIRROR_KEY', hosts: [{ model: 'own/shared' }] },
]
const keys = { OWN_KEY: 'key-own', MIRROR_KEY: 'key-mirror' }
const gateway = await startGateway({ LOG_LEVEL: 'error', ...keys }, { embedded: true, file: { providers } })

type Sample = { readonly firstMs: number; readonly costUsd: number; readonly result: string | null }

async function send(isHedged: boolean): Promise<Sample> {
  const [own, mirror] = [drawFirstMs(), drawFirstMs()].map(Math.round)
  const prompt = `[[sim:only=key-own, first_ms=${own}]] [[sim:only=key-mirror, first_ms=${mirror}]] [[sim:tokens=150]] ${'Describe the mill by the river. '.repeat(30)}`
  const startedAt = performance.now()
  const body = {
    model: 'own/shared',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 400,
    messages: [{ role: 'user', content: prompt }],
  }
  const headers = { 'x-gateway-hedge': isHedged ? 'on' : 'off', 'x-gateway-stream-mode': 'realtime' }
  const response = await gateway.post('/v1/chat/completions', body, headers)
  // The gateway sends the status with the first content.
  const firstMs = performance.now() - startedAt
  const text = await response.text()
  const costUsd = Number(/"cost_usd":([\d.e-]+)/.exec(text)?.[1])
  if (!response.ok || Number.isNaN(costUsd)) throw new Error(`${response.status} ${text.slice(-300)}`)
  return { firstMs, costUsd, result: response.headers.get('x-gateway-hedge') }
}

async function run(requests: number): Promise<{ readonly off: Sample[]; readonly on: Sample[] }> {
  const samples = { off: [] as Sample[], on: [] as Sample[] }
  let sent = 0
  const worker = async () => {
    while (sent < 2 * requests) {
      const isHedged = sent++ % 2 === 1
      samples[isHedged ? 'on' : 'off'].push(await send(isHedged))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return samples
}

// So that the p95 is measured.
await run(50)
const { off, on } = await run(count)
const quantile = (samples: readonly Sample[], share: number) =>
  Math.round(
    samples.map(({ firstMs }) => firstMs).toSorted((value, other) => value - other)[
      Math.floor(share * samples.length)
    ] ?? 0,
  )
for (const [name, samples] of Object.entries({ off, on })) {
  const total = samples.reduce((sum, { costUsd }) => sum + costUsd, 0)
  const results = Object.groupBy(samples, ({ result }) => result ?? 'none')
  process.stdout.write(
    `${name}: p50 ${quantile(samples, 0.5)} ms, p95 ${quantile(samples, 0.95)} ms, p99 ${quantile(samples, 0.99)} ms, ` +
      `cost ${((1e6 * total) / samples.length).toFixed(2)} USD per million requests, ` +
      `${Object.entries(results)
        .map(([result, ones]) => `${result} ${ones?.length}`)
        .join(', ')}\n`,
  )
}
await gateway.stop()
await simulator.stop()
