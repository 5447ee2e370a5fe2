/** Shadow evaluation behind whole gateways: verdicts, its cap, constraints, failures, shutdown, and that no text stays. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { createDeps } from '../../src/compose/deps.ts'
import { deleteAccount } from '../../src/console/account/store.ts'
import { endComparison, holdComparison } from '../../src/learning/shadow-comparisons.ts'
import { audit } from '../../src/ledger/reconcile.ts'
import { realDatabase } from '../harness/database.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { startUpstream, type Upstream, type UpstreamAnswer } from '../harness/upstream.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

const plenty = { requests_per_minute: 1e6, concurrent_requests: 1e3, daily_tokens: 1e12, daily_cost_usd: 1e6 }
const words = { prompt: 'quokkaprompt', served: 'quokkaserved', other: 'quokkaother' }

type Row = {
  request_id: string
  verdict: string | null
  microcents: number
  baseline_microcents: number
  model: string
}
type Rates = { low: number; high: number; share: number }
type Report = {
  judge_model: string | null
  total: { compared: number; wins: number; no_verdict: number; matched_or_better: Rates | null; cost_usd: number }
  models: { model: string; baseline_model: string; compared: number }[]
  shadow: object | null
  error: { param: string; message: string }
}

/** How the judge answers; a test changes it. */
let judge: (body: string) => UpstreamAnswer | Promise<UpstreamAnswer>
const prefersServed = (body: string) => {
  // Texts that the model sees are JSON within JSON.
  const first = body.indexOf(words.served) < body.indexOf(words.other)
  return completion(JSON.stringify({ better: first ? 'first' : 'second' }))
}
const completion = (content: string): UpstreamAnswer => ({
  headers: { 'content-type': 'application/json' },
  pieces: [
    JSON.stringify({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 5, completion_tokens: 10, total_tokens: 15 },
    }),
  ],
})

let upstream: Upstream
const gateways: Gateway[] = []

const asked = (model: string) => upstream.ledger().filter(({ body }) => body.includes(`"model":"${model}"`))
const file = (judgeModel: string | null = 'third/umpire') => {
  const model = (id: string, price: number, json_schema = false) => ({
    id,
    pricing: { input_per_mtok: price, output_per_mtok: price },
    quality: price / 100,
    capabilities: { json_schema },
    ...(json_schema && { parameters: { response_format: 'json_schema' } }),
  })
  const at = { base_url: `${upstream.url}/v1`, api_key_env: 'SOME_KEY' }
  return {
    plans: { evaluation: plenty },
    providers: [
      { id: 'first', ...at, policy: { zdr: true }, models: [model('small', 1)] },
      { id: 'second', ...at, models: [model('big', 50)] },
      { id: 'third', ...at, policy: { zdr: true }, models: [model('umpire', 10, true)] },
    ],
    routing: { baseline_model: 'second/big', ...(judgeModel === null ? {} : { judge_model: judgeModel }) },
  }
}
async function open(judgeModel?: string | null, stores: Record<string, string> = {}): Promise<Gateway> {
  const gateway = await startGateway(
    { SOME_KEY: 'k', TRUSTED_PROXIES: '127.0.0.1', ...stores },
    { file: file(judgeModel), embedded: true },
  )
  gateways.push(gateway)
  return gateway
}

/** An account with shadow evaluation on. */
async function member(gateway: Gateway, setting: object | null = { share: 1, monthly_cap_usd: 100 }) {
  const person = await owner(gateway)
  const { key } = await createKeyFor(gateway, person)
  if (setting !== null) {
    const { status } = await patch(gateway, person, { shadow: setting })
    expect(status).toBe(200)
  }
  await gateway.deps.keys.look()
  return { ...person, key }
}
const patch = (gateway: Gateway, { token }: Pick<Person, 'token'>, body: object) =>
  sendRequest<Report>(gateway, 'PATCH', '/api/v1/account', { token, body })
const report = async (gateway: Gateway, { token }: Pick<Person, 'token'>) =>
  (await sendRequest<Report>(gateway, 'GET', '/api/v1/insights/shadow', { token })).body

async function chat({ url }: Pick<Gateway, 'url'>, key: string, fields: object = {}) {
  const response = await fetch(`${url}/api/v1/chat`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: `Say ${words.prompt}.`, strategy: 'cost', max_output_tokens: 40, ...fields }),
  })
  return { status: response.status, id: response.headers.get('x-request-id') ?? '', text: await response.text() }
}
const rows = (gateway: Gateway, accountId: string) =>
  gateway.deps.database.run(
    ({ sql }) =>
      sql<Row[]>`select request_id, verdict, microcents::float8, baseline_microcents::float8, model
        from shadow_comparisons where account_id = ${accountId} order by at`,
  )
const ended = async (gateway: Gateway, accountId: string, count: number) => {
  await eventually(async () => {
    const found = await rows(gateway, accountId)
    return found.length === count && found.every(({ verdict }) => verdict !== null)
  }, 30_000)
  return rows(gateway, accountId)
}
const charged = (gateway: Gateway, accountId: string) =>
  gateway.deps.database.run(
    ({ sql }) =>
      sql<{ microcents: number; learning: number | null }[]>`
        select billed_microcents::float8 as microcents, learning_epoch as learning from usage_records
        where account_id = ${accountId} and key_id = 'shadow'`,
  )
/** The counter of a metric: comparisons with this result. */
const counted = async (gateway: Gateway, verdict: string) => {
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  return Number(new RegExp(`gateway_shadow_comparisons_total\\{verdict="${verdict}"\\} (\\d+)`).exec(text)?.[1] ?? 0)
}

beforeAll(() => {
  upstream = startUpstream(({ body }) => {
    if (body.includes('"model":"umpire"')) return judge(body)
    return completion(body.includes('"model":"big"') ? words.other : words.served)
  })
  judge = prefersServed
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop()
  upstream.stop()
})

describe('shadow evaluation', () => {
  test('cannot be turned on without a judge, and says what to do', async () => {
    const gateway = await open(null)
    const person = await owner(gateway)
    const { status, body } = await patch(gateway, person, { shadow: { share: 1, monthly_cap_usd: 1 } })
    expect([status, body.error.param]).toEqual([400, 'shadow'])
    expect(body.error.message).toContain('`routing.judge_model` in GATEWAY_CONFIG')
    expect((await patch(gateway, person, { shadow: null })).status).toBe(200)
  })

  test('stores a verdict, charges the account under its own key, and keeps no text anywhere', async () => {
    judge = prefersServed
    const gateway = await open()
    const person = await member(gateway)
    const { accountId } = person
    const served = await chat(gateway, person.key)
    expect(served.status).toBe(200)
    expect(served.text).toContain(words.served)
    const [row] = await ended(gateway, accountId, 1)
    expect(row).toMatchObject({ request_id: served.id, verdict: 'win', model: 'first/small' })
    // 15 tokens at 50 USD, and 15 at 10 USD per million.
    expect(row?.baseline_microcents).toBe(75_000)
    expect(row?.microcents).toBe(90_000)
    const [sent] = asked('umpire')
    expect(sent?.body).toContain(words.prompt)
    for (const name of ['small', 'big', 'first/', 'second/']) expect(sent?.body).not.toContain(name)

    await eventually(async () => (await charged(gateway, accountId)).length === 2, 30_000)
    const charges = await charged(gateway, accountId)
    expect(charges.reduce((sum, { microcents }) => sum + microcents, 0)).toBe(90_000)
    expect(charges.map(({ learning }) => learning)).toEqual([null, null])
    const today = new Date().toISOString().slice(0, 10)
    expect(await audit(gateway.deps.database, [], { from: '2020-01-01', to: today, accountId })).toMatchObject({
      isWhole: true,
    })
    const usage = await sendRequest<{ data: { key_id: string; cost_usd: number }[] }>(
      gateway,
      'GET',
      '/api/v1/usage?group_by=key',
      { token: person.token },
    )
    expect(usage.body.data).toContainEqual(expect.objectContaining({ cost_usd: 0.0009 }))

    const logged = async (query: string) =>
      (
        await sendRequest<{ data: { request_id: string; key_id: string }[] }>(gateway, 'GET', `/api/v1/${query}`, {
          token: person.token,
        })
      ).body.data
    expect((await logged('requests')).map(({ key_id }) => key_id).filter(key => key === 'shadow')).toHaveLength(2)
    const own = await logged('requests?key=shadow')
    expect(own.map(({ key_id }) => key_id)).toEqual(['shadow', 'shadow'])
    expect(await logged('usage?group_by=model&key=shadow')).toHaveLength(2)
    const shown = await sendRequest(gateway, 'GET', `/api/v1/requests/${own[0]?.request_id}`, { token: person.token })
    expect([shown.status, shown.body.key_name]).toEqual([200, null])
    const colleague = await addMember(gateway, person, 'member')
    const unseen = await sendRequest<{ data: object[] }>(gateway, 'GET', '/api/v1/requests?key=shadow', colleague)
    expect([unseen.status, unseen.body.data]).toEqual([200, []])

    const found = await report(gateway, person)
    expect(found).toMatchObject({ judge_model: 'third/umpire', total: { compared: 1, wins: 1, cost_usd: 0.0009 } })
    expect(found.models).toMatchObject([{ model: 'first/small', baseline_model: 'second/big', compared: 1 }])
    expect(found.total.matched_or_better?.share).toBe(1)
    expect(found.total.matched_or_better?.low).toBeCloseTo(0.2065, 3)

    const folder = gateway.deps.config.dataDirectory
    await gateway.stop()
    gateways.splice(gateways.indexOf(gateway), 1)
    expect(gateway.logLines.join('\n').length).toBeGreaterThan(500)
    for (const word of Object.values(words)) expect(gateway.logLines.join('\n')).not.toContain(word)
    expect(folder).not.toBe('')
  })

  test('keeps no text in tables and files while it runs', async () => {
    judge = prefersServed
    const gateway = await open()
    const person = await member(gateway)
    await chat(gateway, person.key)
    await ended(gateway, person.accountId, 1)
    await eventually(async () => (await charged(gateway, person.accountId)).length === 2, 30_000)
    const { database, config } = gateway.deps
    const names = await database.run(
      ({ sql }) => sql<{ name: string }[]>`select quote_ident(relname) as name from pg_class
        where relkind in ('r', 'm') and relnamespace = 'public'::regnamespace`,
    )
    const tables = await Promise.all(
      names.map(({ name }) =>
        database.run(({ sql }) => sql<{ row: string }[]>`select t::text as row from ${sql(name)} t`),
      ),
    )
    const files = readdirSync(config.dataDirectory, { recursive: true, encoding: 'utf8' })
      .map(name => join(config.dataDirectory, name))
      .filter(path => statSync(path).isFile())
      .map(path => readFileSync(path, 'latin1'))
    const kept = [...tables.flat().map(({ row }) => row), ...files].join('\n')
    expect(kept).toContain('third/umpire')
    for (const word of Object.values(words)) expect(kept).not.toContain(word)
  })

  test('compares only whole automatic texts of other models', async () => {
    judge = prefersServed
    const gateway = await open()
    const person = await member(gateway)
    const before = asked('big').length
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }]
    for (const fields of [
      { model: 'first/small' },
      { model: 'second/big' },
      { response_format: { type: 'json_object' } },
      { tools },
    ])
      await chat(gateway, person.key, fields)
    const messages = [{ role: 'user', content: words.prompt }]
    await gateway.post(
      '/v1/responses',
      { model: 'gateway-ai', input: words.prompt, store: false, strategy: 'cost' },
      { authorization: `Bearer ${person.key}` },
    )
    await gateway.post(
      '/v1/chat/completions',
      { model: 'gateway-ai', messages, strategy: 'cost', max_tokens: 40 },
      { authorization: `Bearer ${person.key}` },
    )
    const [only] = await ended(gateway, person.accountId, 1)
    expect(only?.verdict).toBe('win')
    // What the client named is served by it, not compared with it.
    expect(asked('big').length - before).toBe(2)
  })

  test('a constraint that excludes the baseline or the judge excludes the comparison', async () => {
    judge = prefersServed
    const gateway = await open()
    const person = await member(gateway)
    const before = [asked('big').length, asked('umpire').length]
    const skipped = await counted(gateway, 'skipped')
    expect((await chat(gateway, person.key, { constraints: { zdr: true } })).status).toBe(200)
    expect((await chat(gateway, person.key, { constraints: { ignore_providers: ['third'] } })).status).toBe(200)
    await eventually(async () => (await counted(gateway, 'skipped')) === skipped + 2, 30_000)
    expect([asked('big').length, asked('umpire').length]).toEqual(before)
    expect(await rows(gateway, person.accountId)).toHaveLength(0)
  })

  test('a judge that fails, lies or hangs is no verdict, and no client notices', async () => {
    const gateway = await open()
    const person = await member(gateway)
    const answers: (() => UpstreamAnswer | Promise<UpstreamAnswer>)[] = [
      () => ({ status: 500, pieces: ['{}'] }),
      () => completion('Both are fine.'),
      () => completion('{"better":"neither"}'),
    ]
    for (const [at, answer] of answers.entries()) {
      judge = answer
      expect((await chat(gateway, person.key)).status).toBe(200)
      const all = await ended(gateway, person.accountId, at + 1)
      expect(all.at(-1)).toMatchObject({ verdict: 'none', baseline_microcents: 75_000 })
    }
    const report1 = await report(gateway, person)
    expect(report1.total).toMatchObject({ compared: 0, no_verdict: 3, matched_or_better: null })

    // Two wait for the judge, eight for them; what comes then is not compared.
    judge = () => new Promise<UpstreamAnswer>(() => {})
    const served = await Promise.all(Array.from({ length: 12 }, () => chat(gateway, person.key)))
    expect(served.map(({ status }) => status)).toEqual(served.map(() => 200))
    await eventually(async () => (await counted(gateway, 'skipped')) === 2, 30_000)
    await eventually(() => asked('umpire').filter(({ outcome }) => outcome === 'open').length === 2, 30_000)

    // The limits hold nothing of them, so that a process that dies leaves nothing.
    const { body } = await sendRequest<{ now: { seats_taken: number } }>(gateway, 'GET', '/api/v1/account', {
      token: person.token,
    })
    expect(body.now.seats_taken).toBe(0)
    // A shutdown ends them: its usage is counted, and nothing stays open.
    await gateway.deps.shadow.close()
    const left = await ended(gateway, person.accountId, 5)
    expect(left.slice(3).map(({ verdict }) => verdict)).toEqual(['none', 'none'])
    await upstream.until(ledger => ledger.every(({ outcome }) => outcome !== 'open'), 30_000)
    expect((await chat(gateway, person.key)).status).toBe(200)
  })

  testNeeding('postgres', 'the cap holds while 20 parallel requests of two processes are compared', async () => {
    const database = needed(await realDatabase())
    const former = await open('third/umpire', {
      DATABASE_URL: database.url,
      JWT_SECRET: 'a secret that is long enough to be',
    })
    const { config } = former.deps
    const second = await createDeps({ ...config, ownDirectory: `${config.ownDirectory}/two` }, { writeLog() {} })
    const app = createApp(second).listen({ port: 0, hostname: '127.0.0.1' })
    const two = { url: `http://127.0.0.1:${app.server?.port}` }
    // A judgement can cost 0.044 USD: two fit at once.
    const person = await member(former, { share: 1, monthly_cap_usd: 0.1 })
    await second.keys.look()
    const gate = Promise.withResolvers<void>()
    judge = async body => {
      await gate.promise
      return prefersServed(body)
    }
    const sent = Array.from({ length: 20 }, (_, at) => chat(at % 2 === 0 ? former : two, person.key))
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(sent.map(() => 200))
    // All others had to end: no other judgement fits beside the two.
    await eventually(async () => {
      const all = await rows(former, person.accountId)
      return all.filter(({ verdict }) => verdict === null).length === 2 && all.length > 4
    }, 30_000)
    const sum = (all: readonly Row[]) => all.reduce((total, { microcents }) => total + microcents, 0)
    expect(sum(await rows(former, person.accountId))).toBeLessThanOrEqual(10_000_000)
    gate.resolve()
    // What the two did not use pays for others that waited. The ledger has what the rows have.
    await eventually(async () => {
      const all = await rows(former, person.accountId)
      const paid = (await charged(former, person.accountId)).reduce((total, row) => total + row.microcents, 0)
      expect(sum(all)).toBeLessThanOrEqual(10_000_000)
      return all.filter(({ verdict }) => verdict === 'win').length > 1 && paid === sum(all)
    }, 30_000)
    await app.server?.stop(true)
    await second.close()
    await former.stop()
    gateways.splice(gateways.indexOf(former), 1)
    await database.drop()
  })

  test('the cap counts what a dead process held, in its month only', async () => {
    const gateway = await open()
    const { accountId } = await member(gateway)
    const { database } = gateway.deps
    const hold = (requestId: string, at: number, microcents: number) =>
      holdComparison(
        database,
        {
          ...{ requestId, accountId, at, queryType: null, level: 'light', model: 'a/b', effort: null },
          ...{ baselineModel: 'c/d', judgeModel: 'e/f', servedMicrocents: 1 },
        },
        microcents,
        100,
      )
    const [may, june] = [Date.UTC(2026, 4, 31, 23, 59), Date.UTC(2026, 5, 1)]
    expect(await hold('dead', may, 60)).toBe(true)
    expect(await hold('late', may, 41)).toBe(false)
    expect(await hold('fits', may, 40)).toBe(true)
    // The same comparison asks again for all that it can cost.
    expect(await hold('fits', may, 41)).toBe(false)
    expect(await hold('fits', may, 39)).toBe(true)
    await endComparison(
      database,
      { requestId: 'fits', accountId },
      { verdict: 'tie', microcents: 3, baselineMicrocents: 2 },
    )
    expect(await hold('more', may, 37)).toBe(true)
    expect(await hold('new', june, 100)).toBe(true)
    expect((await rows(gateway, accountId)).map(({ microcents }) => microcents)).toEqual([60, 3, 37, 100])
  })

  test('runs with the setting only, and its rows end with the account', async () => {
    judge = prefersServed
    const gateway = await open()
    const [off, person] = [await member(gateway, null), await member(gateway)]
    await chat(gateway, off.key)
    await chat(gateway, person.key)
    await ended(gateway, person.accountId, 1)
    expect(await rows(gateway, off.accountId)).toHaveLength(0)
    const { database, newId, clock } = gateway.deps
    expect(await deleteAccount(database, person.accountId, { at: clock.now(), newId })).toBe(true)
    expect(await rows(gateway, person.accountId)).toHaveLength(0)
  })
})
