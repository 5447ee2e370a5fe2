/**
 * `bun test/bench/moderation.ts`: effect of a moderation endpoint on the time to first token. Two gateways with one
 * provider that answers after 500 ms, one of them with an endpoint that takes 200 ms; called alternately, so that
 * machine load affects both. Then the effect of a block that arrives after the provider's first token.
 */
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { jsonAnswer, startUpstream } from '../harness/upstream.ts'

const rounds = Number(process.env.BENCH_ROUNDS ?? 25)
const providerMs = 500
const endpointMs = 200
const allowedMs = 5
const say = (line: string) => process.stdout.write(`${line}\n`)
const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

let answersAfterMs = providerMs
const judgesAfterMs = endpointMs
let isFlagged = false

const frame = (delta: object, reason: string | null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm1', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`
const whole = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
}
const provider = startUpstream(({ body }) =>
  body.includes('"stream":true')
    ? {
        headDelayMs: answersAfterMs,
        headers: { 'content-type': 'text/event-stream' },
        framing: 'chunked',
        pieces: [
          frame({ content: 'Hello' }, null),
          frame({ content: ' there.' }, null),
          frame({}, 'stop'),
          'data: [DONE]\n\n',
        ],
        // A block arrives while it is still running.
        ...(isFlagged ? { cutAt: 200, end: 'hang' as const } : {}),
      }
    : { ...jsonAnswer(whole), headDelayMs: answersAfterMs },
)
const endpoint = startUpstream(() => ({
  ...jsonAnswer({ results: [{ flagged: isFlagged, categories: { violence: isFlagged } }] }),
  headDelayMs: judgesAfterMs,
}))

function start(moderation: object): Promise<Gateway> {
  const pricing = { input_per_mtok: 1, output_per_mtok: 1 }
  const model = { id: 'm1', context_window: 32_000, max_output_tokens: 1_000, pricing }
  const file = { providers: [{ id: 'ours', base_url: provider.url, models: [model] }], safety: moderation }
  return startGateway({ LOG_LEVEL: 'error' }, { file })
}

const forms = {
  realtime: { stream: true, stream_mode: 'realtime' },
  buffered: { stream: true, stream_mode: 'buffered' },
  JSON: {},
} as const

const send = (gateway: Gateway, more: object) =>
  gateway.post('/api/v1/chat', { prompt: 'Tell me about the sea.', model: 'ours/m1', ...more })

/** Returns the milliseconds until the first byte of the response's body. */
async function firstByteMs(gateway: Gateway, more: object): Promise<number> {
  const startedAt = performance.now()
  const reader = (await send(gateway, more)).body?.getReader()
  await reader?.read()
  const took = performance.now() - startedAt
  while (!(await reader?.read())?.done);
  return took
}

const [without, beside] = [
  await start({}),
  await start({ moderation: { url: `${endpoint.url}/v1/moderations`, timeout_ms: 2_000 } }),
]
try {
  say(`first byte of the answer, medians of ${rounds} rounds; provider ${providerMs} ms, endpoint ${endpointMs} ms`)
  for (const [form, more] of Object.entries(forms)) {
    const times = { without: [] as number[], beside: [] as number[] }
    for (let round = -2; round < rounds; round++) {
      const value = await firstByteMs(without, more)
      const other = await firstByteMs(beside, more)
      if (round < 0) continue
      times.without.push(value)
      times.beside.push(other)
    }
    const added = median(times.beside.map((time, at) => time - (times.without[at] ?? 0)))
    say(
      `${form.padEnd(9)} ${median(times.without).toFixed(1)} ms without, ${median(times.beside).toFixed(1)} ms with it: ${added.toFixed(1)} ms added`,
    )
    if (added > allowedMs) process.exitCode = 1
  }

  isFlagged = true
  answersAfterMs = 50
  for (const [form, more] of Object.entries(forms)) {
    const [asked, spent] = [provider.ledger().length, await getSpent(beside)]
    const response = await send(beside, more)
    const text = await response.text()
    await provider.until(ledger => ledger.slice(asked).every(({ outcome }) => outcome !== 'open'))
    const ended = provider.ledger().at(-1)?.outcome
    const billed = (await getSpent(beside)) - spent
    say(
      `refused after the provider’s first token, ${form}: ${response.status}, ${text.includes('Hello') ? 'SHOWN' : 'nothing shown'}, provider’s call ${ended}, ${billed} micro-cents billed`,
    )
    if (response.status !== 400 || text.includes('Hello') || billed !== 0) process.exitCode = 1
  }
} finally {
  await without.stop()
  await beside.stop()
  provider.stop()
  endpoint.stop()
}

async function getSpent({ deps, accountId }: Gateway): Promise<number> {
  return (await deps.spent(accountId, Math.floor(deps.clock.now() / 86_400_000))).microcents
}
