/**
 * Faults of the providers that embed texts. Each family has one verdict per fault, the same as for a chat request, and a failed
 * request costs nothing.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { encodeVector } from '../../src/core/chat/embeddings.ts'
import type { Break, Framing } from '../../src/simulator/reply.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { leapingClock } from '../harness/moved-clock.ts'
import { silence, startUpstream, type Upstream, type UpstreamAnswer } from '../harness/upstream.ts'

setDefaultTimeout(240_000)

const families = ['openai', 'google', 'compatible'] as const
type Family = (typeof families)[number]

const models: Readonly<Record<Family, { readonly embeds: string; readonly chats: string; readonly length: number }>> = {
  openai: { embeds: 'openai/text-embedding-3-small', chats: 'openai/gpt-4.1', length: 2 },
  google: { embeds: 'google/gemini-embedding-001', chats: 'google/gemini-3.5-flash-lite', length: 128 },
  compatible: { embeds: 'local/embeds', chats: 'local/chats', length: 4 },
}

const canary = 'sk-canary-2b8e41'
const json = { 'content-type': 'application/json' } as const

let upstream: Upstream
let gateway: Gateway
const { clock, leap } = leapingClock()
let script: (body: string) => UpstreamAnswer
let calls = 0

beforeAll(async () => {
  upstream = startUpstream(({ body }) => {
    calls += 1
    return script(body)
  })
  const local = {
    id: 'local',
    base_url: `${upstream.url}/v1`,
    models: [
      {
        id: 'chats',
        context_window: 8_192,
        max_output_tokens: 1_024,
        pricing: { input_per_mtok: 1, output_per_mtok: 1 },
      },
    ],
    embedding_models: [{ id: 'embeds', input_per_mtok: 1, dimensions: 4 }],
  }
  const environment = {
    OPENAI_API_KEY: 'key',
    OPENAI_BASE_URL: `${upstream.url}/v1`,
    GEMINI_API_KEY: 'key',
    GEMINI_BASE_URL: upstream.url,
  }
  gateway = await startGateway(environment, { clock, file: { providers: [local] } })
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

type Verdict = readonly [status: number, code: string | null]
type ErrorBody = { readonly error?: { readonly code: string } }

async function getVerdict(answer: Response): Promise<Verdict> {
  const text = await answer.text()
  expect(text).not.toContain(canary)
  const { error }: ErrorBody = JSON.parse(text)
  return [answer.status, error?.code ?? null]
}

const embed = (family: Family, input = 'A cat sat on a mat.') => {
  const { embeds, length } = models[family]
  return gateway.post('/v1/embeddings', {
    model: embeds,
    input,
    ...(family === 'compatible' ? {} : { dimensions: length }),
  })
}

const chat = (family: Family) =>
  gateway.post('/v1/chat/completions', {
    model: models[family].chats,
    messages: [{ role: 'user', content: 'A cat sat on a mat.' }],
    max_tokens: 64,
    fallback: false,
  })

/** An error in the form of a family. */
function refusal(family: Family, status: number, message: string, code: string | null = null): UpstreamAnswer {
  const text = `${message} ${canary}`
  const error =
    family === 'google'
      ? { code: status, message: text, status: 'INVALID_ARGUMENT' }
      : { message: text, type: 'invalid_request_error', param: null, code }
  return { status, headers: json, pieces: [JSON.stringify({ error })] }
}

/** A response with one vector. */
function vectors(family: Family): string {
  const vector = Array.from({ length: models[family].length }, (_, at) => (at + 1) / 4)
  switch (family) {
    case 'google':
      return JSON.stringify({ embedding: { values: vector } })
    default: {
      const embedding = family === 'openai' ? encodeVector(vector) : vector
      const usage = { prompt_tokens: 7, total_tokens: 7 }
      return JSON.stringify({ object: 'list', data: [{ object: 'embedding', index: 0, embedding }], model: 'm', usage })
    }
  }
}

const overflow: Readonly<Record<Family, UpstreamAnswer>> = {
  openai: refusal('openai', 400, 'This model’s maximum context length is 8192 tokens.', 'context_length_exceeded'),
  google: refusal('google', 400, 'The input token count exceeds the maximum number of tokens allowed.'),
  compatible: refusal(
    'compatible',
    400,
    "This model's maximum context length is 512 tokens, however you requested 900.",
  ),
}

const faults: readonly (readonly [string, (family: Family) => UpstreamAnswer, Verdict])[] = [
  ...[500, 502, 503].map(
    status => [`${status}`, () => ({ status, pieces: [canary] }), [502, 'upstream_failed']] as const,
  ),
  ...[401, 403].map(
    status => [`${status}`, (family: Family) => refusal(family, status, 'bad key'), [502, 'upstream_failed']] as const,
  ),
  ['404, no such model', family => refusal(family, 404, 'no such model'), [502, 'upstream_failed']],
  [
    '429 with a wait',
    family => ({ ...refusal(family, 429, 'slow down'), headers: { ...json, 'retry-after': '7' } }),
    [429, 'upstream_rate_limited'],
  ],
  ['529', family => refusal(family, 529, 'overloaded'), [503, 'no_model_available']],
  ['400', family => refusal(family, 400, 'wrong'), [400, 'invalid_request']],
  ['422', family => refusal(family, 422, 'wrong'), [400, 'invalid_request']],
  ['413', family => refusal(family, 413, 'too large'), [413, 'body_too_large']],
  ['an input that is too long', family => overflow[family], [400, 'context_length_exceeded']],
  ['bytes that are not HTTP', () => ({ framing: 'none', pieces: [`${canary}\r\n\r\n`] }), [502, 'upstream_failed']],
  ['JSON that is none', () => ({ headers: json, pieces: [`{"data":[{"${canary}`] }), [502, 'upstream_failed']],
  ['an empty body', () => ({ headers: json }), [502, 'upstream_failed']],
  [
    'an error with status 200',
    () => ({ headers: json, pieces: [JSON.stringify({ error: { message: canary } })] }),
    [502, 'upstream_failed'],
  ],
  [
    'a page',
    () => ({ headers: { 'content-type': 'text/html' }, pieces: [`<p>${canary}</p>`] }),
    [502, 'upstream_failed'],
  ],
  ['a redirect', () => ({ status: 302, headers: { location: 'http://127.0.0.1:9/' } }), [502, 'upstream_failed']],
]

test.each<readonly [string, UpstreamAnswer]>([
  ['a response', silence],
  ['the rest of a body', { headers: json, pieces: ['{"data":[{"'], cutAt: 9, end: 'hang' }],
])('embeddings and chat: time out alike without %s', async (_name, answer) => {
  script = () => answer
  const verdicts = families.flatMap(family => [embed(family).then(getVerdict), chat(family).then(getVerdict)])
  await upstream.until(ledger => ledger.filter(({ outcome }) => outcome === 'open').length === verdicts.length)
  leap(60_000)
  expect(await Promise.all(verdicts)).toEqual(verdicts.map(() => [504, 'upstream_timeout']))
})

describe.each([...families])('%s', family => {
  test.each(faults)('%s: has the verdict of a chat request', async (name, answer, verdict) => {
    script = () => answer(family)
    const before = calls
    const embedding = await embed(family)
    if (name === '429 with a wait') expect(embedding.headers.get('retry-after')).toBe('7')
    expect(await getVerdict(embedding)).toEqual(verdict)
    expect(calls - before).toBe(1)
    expect(await getVerdict(await chat(family))).toEqual(verdict)
  })

  test('a body truncated at any byte is never a success', async () => {
    const body = vectors(family)
    const framings: readonly Framing[] = ['length', 'chunked', 'close']
    const ends: readonly Break[] = ['fin', 'rst']
    const step = Math.max(1, Math.floor(body.length / 60))
    script = asked => {
      const [, framing = 0, end = 0, at = 0] = (/cut (\d) (\d) (\d+)/.exec(asked) ?? []).map(Number)
      return {
        headers: json,
        framing: framings[framing] ?? 'length',
        pieces: [body],
        cutAt: at,
        end: ends[end] ?? 'fin',
      }
    }
    const cuts = framings.flatMap((_, framing) =>
      ends.flatMap((__, end) =>
        Array.from({ length: Math.ceil(body.length / step) }, (___, at) => `cut ${framing} ${end} ${at * step}`),
      ),
    )
    const wrong: unknown[] = []
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let cut = cuts.pop(); cut !== undefined; cut = cuts.pop()) {
          const [status, code] = await getVerdict(await embed(family, cut))
          if (status !== 502 || code !== 'upstream_failed') wrong.push([cut, status, code])
        }
      }),
    )
    expect(wrong).toEqual([])
    script = () => ({ headers: json, pieces: [body] })
    expect((await embed(family)).status).toBe(200)
  })
})

test('embeddings: cost nothing and hold no reservation after a failure', () => {
  const limits = {
    requestsPerMinute: 1,
    concurrentRequests: 10,
    dailyTokens: 1_000_000,
    dailyCostMicrocents: 1_000_000,
  }
  const quotaStatus = gateway.deps.meter.quotaStatus(gateway.accountId, limits)
  expect(quotaStatus?.reservations.remaining).toBe(10)
  // The last embedding of each family succeeded, for at most 10 tokens.
  expect(1_000_000 - (quotaStatus?.tokens.remaining ?? 0)).toBeLessThanOrEqual(10 * families.length)
  expect(gateway.logLines.filter(line => line.includes(canary))).toEqual([])
})
