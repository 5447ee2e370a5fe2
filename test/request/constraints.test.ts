/** Constraints under random hosts, callers and faults: no attempt of any kind reaches a receiver that does not meet them. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Caller } from '../../src/core/limits/plans.ts'
import { fullName, type Model } from '../../src/core/models/models.ts'
import {
  type ConstraintsRow,
  noPolicy,
  type PolicyRow,
  toDemand,
  withPolicy,
} from '../../src/core/policy/constraints.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { catalog } from '../../src/models/catalog.ts'
import type { ConfiguredProvider } from '../../src/providers/configured-provider.ts'
import { openai } from '../../src/providers/openai.ts'
import { answer } from '../../src/request/answer.ts'
import { type Format, formats, getFrames } from '../faults/support.ts'
import { EventLog } from '../harness/events.ts'
import { caller, createWorld, plenty } from './world.ts'

const outcomes = ['answers', 'status_503', 'status_429', 'status_401', 'hangs', 'cut_after_content'] as const
type Outcome = (typeof outcomes)[number]

const ids = ['openai', 'anthropic', 'google', 'alpha', 'beta'] as const
type Id = (typeof ids)[number]
const getFormat = (id: string): Format => formats.find(format => format === id) ?? 'openai'

async function play(outcome: Outcome, format: Format, init: RequestInit): Promise<Response> {
  const aborted = new Promise<never>((_, reject) => {
    const stop = () => reject(new DOMException('aborted', 'AbortError'))
    if (init.signal?.aborted) stop()
    init.signal?.addEventListener('abort', stop)
  })
  aborted.catch(() => {})
  const { opening, content, closing } = getFrames(format, ['Some ', 'words'])
  if (outcome === 'hangs') return aborted
  if (outcome.startsWith('status_')) return Response.json({}, { status: Number(outcome.slice(7)) })
  const frames = outcome === 'answers' ? [...opening, ...content, ...closing] : [...opening, ...content.slice(0, 1)]
  return new Response(frames.join(''), { headers: { 'content-type': 'text/event-stream' } })
}

type Guarantees = { readonly zdr?: boolean; readonly no_training?: boolean; readonly region?: string[] }
type Table = Readonly<
  Record<Id, { readonly documented: Guarantees; readonly declared: Guarantees; readonly own: boolean }>
>

const mostly = fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.boolean() })
const anyPolicy: fc.Arbitrary<Guarantees> = fc.record(
  { zdr: mostly, no_training: mostly, region: fc.constantFrom(['eu'], ['eu'], ['us'], ['eu', 'us']) },
  { requiredKeys: [] },
)
const place = fc.record({ documented: anyPolicy, declared: anyPolicy, own: fc.boolean() })
const anyTable: fc.Arbitrary<Table> = fc.record({
  openai: place,
  anthropic: place,
  google: place,
  alpha: place,
  beta: place,
})
/** One constraint each, so that many requests can be served. */
const anyRow: fc.Arbitrary<ConstraintsRow> = fc.oneof(
  fc.constantFrom<ConstraintsRow>({ zdr: true }, { no_training: true }, { region: 'eu' }, { region: ['eu', 'us'] }),
  fc.subarray([...ids], { minLength: 3 }).map(providers => ({ providers })),
  fc.subarray([...ids], { minLength: 1, maxLength: 2 }).map(ignored => ({ ignore_providers: ignored })),
  fc.constant({ zdr: true, no_training: true, region: 'eu' }),
)

const hostedAt: readonly (readonly [model: string, hosts: readonly Id[], policy?: PolicyRow])[] = [
  ['openai/gpt-5.5', ['openai', 'alpha', 'beta']],
  ['anthropic/claude-haiku-4-5', ['anthropic', 'beta'], { zdr: false }],
  ['google/gemini-2.5-flash', ['google', 'alpha']],
  ['openai/gpt-5.4-mini', ['openai']],
]
const models: readonly Model[] = hostedAt.map(([name, hosts, policy]) => {
  const model = catalog.find(other => fullName(other) === name)
  if (model === undefined) throw new Error(`${name} is in the catalog`)
  const { pricing } = model
  return {
    ...model,
    ...(hosts.length < 2 ? {} : { hosts: hosts.map(host => ({ host, upstreamId: `${host}-${model.id}`, pricing })) }),
    ...(policy === undefined ? {} : { policy }),
  }
})

/** Whether a call keeps a row, by the tables only. */
function keeps(
  row: ConstraintsRow,
  id: Id,
  isOwn: boolean,
  model: Model,
  { documented, declared }: Table[Id],
): boolean {
  const base = isOwn ? documented : { ...documented, ...declared }
  const zdr = base.zdr === true && model.policy?.zdr !== false
  const regions = base.region ?? []
  const list = (value: string | string[] | undefined) => (value === undefined ? null : [value].flat())
  const wanted = list(row.region)
  if (row.zdr === true && !zdr) return false
  if (row.no_training === true && base.no_training !== true) return false
  if (wanted !== null && (regions.length === 0 || regions.some(region => !wanted.includes(region)))) return false
  if (list(row.providers)?.includes(id) === false) return false
  return list(row.ignore_providers)?.includes(id) !== true
}

test('constraints: bind every attempt for any hosts, demands, keys and faults', async () => {
  const seen = { calls: 0, unmet: 0, several: 0 }
  await fc.assert(
    fc.asyncProperty(
      anyTable,
      fc.record({ account: anyRow, project: anyRow, key: anyRow, request: anyRow }, { requiredKeys: [] }),
      fc.constantFrom(null, ...models.map(fullName)),
      fc.record({ hedge: fc.boolean(), stream: fc.boolean(), continue: fc.constantFrom('any', 'same_model', 'off') }),
      fc.array(fc.constantFrom(...outcomes), { maxLength: 6 }),
      async (table, rows, name, { hedge, ...options }, script) => {
        const rig = createWorld(() => Promise.reject(new Error('not used')), models, plenty)
        const calls: { readonly id: Id; readonly isOwn: boolean; readonly model: Model }[] = []
        const endpoints = new Map(
          ids.map((id): [string, ConfiguredProvider] => {
            const { documented, declared } = table[id]
            const before = withPolicy(noPolicy, documented)
            const given = rig.deps.endpoints.get(id)
            return [
              id,
              {
                ...{ id, provider: given?.provider ?? openai({ official: false }), simulated: true },
                access: { baseUrl: `http://${id}`, apiKey: 'key' },
                receiver: { names: [id], documented: before, policy: withPolicy(before, declared) },
              },
            ]
          }),
        )
        const owned: Caller = { ...caller }
        for (const [id, endpoint] of endpoints)
          rig.deps.endpoints instanceof Map && rig.deps.endpoints.set(id, endpoint)
        for (const id of formats) if (table[id].own) rig.own(id, true, id)
        const deps = {
          ...rig.deps,
          network: {
            ...rig.deps.network,
            fetch(url: string, init: RequestInit) {
              const id = ids.find(other => other === new URL(url).hostname) ?? 'beta'
              const text = `${url} ${JSON.stringify([...new Headers(init.headers)])}`
              const sent = `${url} ${String(init.body)}`
              const model = models
                .toSorted((left, right) => right.id.length - left.id.length)
                .find(other => sent.includes(other.id))
              if (model === undefined) throw new Error(`no model in ${sent}`)
              calls.push({ id, isOwn: text.includes('own-key'), model })
              return play(script[calls.length - 1] ?? 'answers', getFormat(id), init)
            },
          },
        }
        const demands = (['account', 'project', 'key'] as const)
          .map(by => toDemand(by, rows[by]))
          .filter(demand => demand !== null)
        const of = demands.length === 0 ? owned : { ...owned, demands }
        const headers = new Headers(hedge ? { 'x-gateway-hedge': 'on' } : {})
        const request = readNative(
          {
            prompt: 'Say something.',
            ...options,
            constraints: rows.request ?? null,
            ...(name === null ? {} : { model: name, fallback_max_cost_factor: 1000 }),
          },
          headers,
          100,
        )
        const signal = new AbortController().signal
        const thrown: unknown = await rig.time
          .run(answer(deps, of, request, { id: `req_${Bun.randomUUIDv7()}`, signal, output: new EventLog() }))
          .then(
            () => null,
            (cause: unknown) => cause,
          )
        const all = Object.values(rows)
        for (const { id, isOwn, model } of calls)
          for (const row of all)
            expect([id, isOwn, row, keeps(row, id, isOwn, model, table[id])]).toEqual([id, isOwn, row, true])
        const isPossible = models.some(
          model =>
            (name === null || fullName(model) === name) &&
            (model.hosts?.map(({ host }) => host) ?? [model.provider]).some(host => {
              const id = ids.find(other => other === host) ?? 'beta'
              const ways = formats.some(format => format === id) && table[id].own ? [true, false] : [false]
              return ways.some(isOwn => all.every(row => keeps(row, id, isOwn, model, table[id])))
            }),
        )
        const isUnmet = thrown instanceof GatewayError && thrown.code === 'constraints_unmet'
        expect([isUnmet, calls.length > 0]).toEqual([!isPossible, isPossible])
        seen.calls += calls.length
        seen.unmet += isUnmet ? 1 : 0
        seen.several += calls.length > 1 ? 1 : 0
        const [record] = rig.records
        if (record?.trace?.g !== undefined) expect(record.trace.g[1].length > 0).toBe(calls.length > 0)
      },
    ),
    { numRuns: 400 },
  )
  expect(seen.calls).toBeGreaterThan(300)
  expect(seen.unmet).toBeGreaterThan(20)
  expect(seen.several).toBeGreaterThan(60)
}, 240_000)
