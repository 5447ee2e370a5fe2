/** A request for embeddings in the real pipeline: when it is refused, and what its upstream calls draw from the quota of a key. */
import { expect, test } from 'bun:test'
import { type EmbeddingModel, publishedEmbeddingModels } from '../../src/core/models/embedding-models.ts'
import { buildCatalog, fullName } from '../../src/core/models/models.ts'
import { readEmbeddingsRequest } from '../../src/dialects/embeddings/routes.ts'
import { KeyPool } from '../../src/providers/keys/key-pool.ts'
import { answer } from '../../src/request/answer.ts'
import { planEmbeddings } from '../../src/request/plan-embeddings.ts'
import { EventLog } from '../harness/events.ts'
import { caller, createWorld, plenty, startedAt } from './world.ts'

const published = publishedEmbeddingModels.find(({ id }) => id === 'text-embedding-3-small')
if (published === undefined) throw new Error('the catalog has changed: choose another model')
/** One input per call. */
const model: EmbeddingModel = {
  ...published,
  embedding: { ...published.embedding, batch: { inputs: 1, tokens: 8_192 } },
}
const name = fullName(model)

const vectors = (tokens: number) =>
  Response.json({
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: Array(1_536).fill(0.5) }],
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  })

/** A world whose OpenAI has these keys, each with a quota of a million tokens per minute. */
function world(play: (key: string, input: string) => Response, keyNames: readonly string[] = ['k1']) {
  const read = async (_: unknown, { headers, body }: RequestInit) => {
    const key = new Headers(headers).get('authorization')?.replace('Bearer ', '') ?? ''
    return play(key, JSON.parse(String(body)).input[0])
  }
  const { deps, records, time } = createWorld(read, [], plenty)
  const endpoint = deps.endpoints.get('openai')
  if (endpoint === undefined) throw new Error('no endpoint')
  const keys = new KeyPool(
    {
      keys: keyNames.map(key => ({
        name: key,
        access: { baseUrl: 'http://openai', apiKey: key },
        account: key,
        weight: 1,
        models: null,
      })),
      quotas: new Map(keyNames.map(key => [key, { requests: null, tokens: 1_000_000 }])),
    },
    time.clock,
  )
  const endpoints = new Map([['openai', { ...endpoint, keys }]])
  return { deps: { ...deps, embeddingCatalog: buildCatalog([model]), endpoints }, keys, records }
}

const asking = (input: unknown) => readEmbeddingsRequest({ model: name, input }, new Headers()).request

async function run({ deps }: ReturnType<typeof world>, input: readonly string[]) {
  try {
    const id = `req_${Bun.randomUUIDv7()}`
    const { signal } = new AbortController()
    // Only the end matters.
    await answer(deps, caller, asking(input), { id, signal, output: new EventLog() })
    return null
  } catch (thrown) {
    return thrown
  }
}

const long = 'word '.repeat(600)

test('planEmbeddings: refuses an account that must pay before it decodes the inputs', async () => {
  const { deps } = world(() => vectors(1))
  const decoded: unknown[] = []
  const tokenizer = {
    decode: async (lists: readonly (readonly number[])[]) => {
      decoded.push(lists)
      return lists.map(() => 'a')
    },
  }
  const request = asking([[32, 8_415]])
  const { embedding } = request
  if (embedding === undefined) throw new Error('no inputs')
  const plan = (refusedFrom: number) =>
    planEmbeddings({ ...deps, tokenizer }, { ...caller, refusedFrom }, request, embedding)
  await expect(plan(startedAt - 1)).rejects.toMatchObject({ code: 'payment_required' })
  expect(decoded).toEqual([])
  await plan(startedAt + 1)
  expect(decoded.length).toBe(1)
})

test('embeddings: keep the tokens of answered calls in the quota of the key when a later call fails', async () => {
  // Four calls run at the same time: the fifth begins after one of them was answered.
  const rig = world((_, input) => (input === 'last' ? Response.json({}, { status: 400 }) : vectors(600)))
  expect(await run(rig, [long, long, long, long, 'last'])).toMatchObject({ code: 'invalid_request' })
  expect(rig.keys.claim({ model: name, tokens: 1_000_000, except: new Set() })).toMatchObject({ reason: 'at_limit' })
  const refused = world(() => Response.json({}, { status: 400 }))
  expect(await run(refused, [long])).toMatchObject({ code: 'invalid_request' })
  expect(refused.keys.claim({ model: name, tokens: 1_000_000, except: new Set() }).key).not.toBeNull()
})

test('embeddings: claim a key per call, and repeat only the call whose key has failed', async () => {
  const calls: { readonly key: string; readonly input: string }[] = []
  const play = (key: string, input: string) => {
    calls.push({ key, input: input.slice(0, 1) })
    const isFirst = calls.filter(call => call.input === 'b').length === 1
    return input.startsWith('b') && isFirst ? Response.json({}, { status: 429 }) : vectors(600)
  }
  const rig = world(play, ['k1', 'k2', 'k3'])
  expect(
    await run(
      rig,
      [...'abcdef'].map(letter => `${letter} ${long}`),
    ),
  ).toBeNull()
  expect(calls.map(({ input }) => input).sort()).toEqual(['a', 'b', 'b', 'c', 'd', 'e', 'f'])
  const [refused, repeated] = calls.filter(({ input }) => input === 'b')
  expect(repeated?.key).not.toBe(refused?.key ?? '')
  expect(new Set(calls.map(({ key }) => key)).size).toBe(3)
  expect(rig.records.map(({ input_tokens }) => input_tokens)).toEqual([3_600])
})

test('embeddings: repeat a call with another key although the first key fails for all', async () => {
  const calls = new Map<string, number>()
  const play = (key: string) => {
    calls.set(key, (calls.get(key) ?? 0) + 1)
    return key === 'k1' ? Response.json({}, { status: 401 }) : vectors(600)
  }
  const rig = world(play, ['k1', 'k2'])
  expect(await run(rig, [`a ${long}`, `b ${long}`, `c ${long}`])).toBeNull()
  expect(calls.get('k2')).toBe(3)
  expect(rig.keys.status().keys.filter(({ state }) => state === 'rejected')).toHaveLength(1)
})

test('embeddings: fail with the refusal when every key refuses, within the bound of keys', async () => {
  let calls = 0
  const rig = world(() => {
    calls += 1
    return Response.json({}, { status: 429 })
  }, ['k1', 'k2'])
  expect(await run(rig, [`a ${long}`, `b ${long}`])).toMatchObject({ code: 'upstream_rate_limited' })
  expect(calls).toBeLessThanOrEqual(4)
})

test('embeddings: fail when a response has neither vectors nor a failure', async () => {
  const headers = { 'content-type': 'text/event-stream' }
  const rig = world(() => new Response(': ping\n\n', { headers }))
  expect(await run(rig, ['a'])).toMatchObject({ code: 'upstream_failed' })
})
