/** Conversations that pass between two whole gateways on one Redis. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createDeps, type Deps } from '../../src/compose/deps.ts'
import { SharedMeter } from '../../src/limits/shared.ts'
import { type OwnDatabase, realDatabase } from '../harness/database.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { describeNeeding } from '../harness/needs.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'

setDefaultTimeout(240_000)

const tool = { type: 'function', function: { name: 'run', parameters: { type: 'object', properties: {} } } }
const task = 'Prove why the ledger counts refunds twice after midnight, and fix it without a lock and without downtime.'

/** Messages of an agent after calls of its tool with these results. */
function messagesAfter(name: string, results: readonly string[]): object[] {
  const calls = results.flatMap((content, at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'run', arguments: `{"step":${at}}` } }],
    },
    { role: 'tool', tool_call_id: `c${at}`, content },
  ])
  return [{ role: 'system', content: `You are ${name}, an agent.` }, { role: 'user', content: task }, ...calls]
}
const says = (content: string) => [
  { role: 'assistant', content: 'It still fails.' },
  { role: 'user', content },
]

describeNeeding(['postgres', 'redis'], 'conversations of two instances', () => {
  let database: OwnDatabase
  let redis: PrivateRedis
  let gateway: Gateway
  let second: Deps
  let server: Bun.Server<unknown>

  beforeAll(async () => {
    const [own, cache] = await Promise.all([realDatabase(), startRedis()])
    if (own === null || cache === null) throw new Error('this test needs Postgres and Redis')
    ;[database, redis] = [own, cache]
    gateway = await startGateway({
      DATABASE_URL: own.url,
      REDIS_URL: cache.url,
      JWT_SECRET: 'a secret of the tests, long enough to be taken',
    })
    const { config } = gateway.deps
    second = await createDeps({ ...config, ownDirectory: `${config.ownDirectory}/second` }, { writeLog() {} })
    const app = createApp(second)
    server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: request => app.handle(request) })
  }, 240_000)
  afterAll(async () => {
    await server.stop(true)
    await second.close()
    await gateway.stop()
    await redis.stop()
    await database.drop()
  })

  /** Sends to an instance until it serves. Returns model and effort. */
  async function send(at: 'first' | 'second', messages: readonly object[]): Promise<string> {
    let chosen = ''
    await eventually(async () => {
      const response = await fetch(
        `${at === 'first' ? gateway.url : `http://127.0.0.1:${server.port}`}/v1/chat/completions`,
        {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'gateway-ai', tools: [tool], messages }),
        },
      )
      await response.text()
      chosen = `${response.headers.get('x-gateway-model')} ${response.headers.get('x-gateway-effort')}`
      return response.status === 200
    }, 60_000)
    return chosen
  }
  const model = (chosen: string) => chosen.split(' ')[0]

  test('conversation: keeps model and effort at an instance that has not seen it, in a loop and after it', async () => {
    const error = 'Error: no such table'
    const before = await send('first', messagesAfter('a fixer', []))
    await send('first', messagesAfter('a fixer', [error]))
    await send('first', messagesAfter('a fixer', [error, error]))
    const again = [...messagesAfter('a fixer', [error, error]), ...says('try it again')]
    const raised = await send('first', again)
    expect([model(raised), raised === before]).toEqual([model(before), false])
    const call = { id: 'd', type: 'function', function: { name: 'run', arguments: '{"step":9}' } }
    const loop = [
      ...again,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'd', content: 'done' },
    ]
    expect(await send('second', loop)).toBe(raised)
    // An instance that knows nothing of it takes thanks for a light request.
    const thanks = [...loop, ...says('thanks')]
    expect(model(await send('first', thanks))).toBe(model(before))
    expect(model(await send('second', [...messagesAfter('another fixer', []), ...says('thanks')]))).not.toBe(
      model(before),
    )
  })

  test('conversation: goes on from the memory of each instance while Redis is away, and after it has lost everything', async () => {
    const before = await send('first', messagesAfter('a builder', []))
    const thanks = [...messagesAfter('a builder', ['ok']), ...says('thanks')]
    expect(model(await send('second', thanks))).toBe(model(before))
    // Each instance has its allowance for the time without Redis.
    for (const { meter } of [gateway.deps, second]) if (meter instanceof SharedMeter) await meter.renew()
    await redis.crash()
    expect(model(await send('second', thanks))).toBe(model(before))
    expect(model(await send('first', thanks))).toBe(model(before))
    await redis.start()
    await eventually(() => gateway.deps.sharedLimits() === 1 && second.sharedLimits() === 1, 60_000)
    expect(model(await send('first', thanks))).toBe(model(before))
    await redis.command('FLUSHALL')
    await eventually(() => gateway.deps.sharedLimits() === 1 && second.sharedLimits() === 1, 60_000)
    expect(model(await send('second', thanks))).toBe(model(before))
    expect(await send('first', messagesAfter('a builder', []))).toBe(before)
  })

  test('conversation: leaves names, counters and digests in Redis, no text', async () => {
    await send('first', [...messagesAfter('a keeper of secrets', ['the word is plover']), ...says('and plover again')])
    const [key] = (await redis.command('KEYS', '*:notes')) as string[]
    const notes = JSON.stringify(await redis.command('HGETALL', key ?? ''))
    expect(notes).toContain('"state')
    expect(notes).not.toMatch(/plover|secrets|refunds|step/)
    expect(Number(await redis.command('PTTL', key ?? ''))).toBeGreaterThan(3_600_000)
  })
})
