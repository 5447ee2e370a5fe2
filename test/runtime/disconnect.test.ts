/**
 * Client disconnects: the upstream call is aborted, the reservation released, and received output billed. Real sockets.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { desc, eq } from 'drizzle-orm'
import { plans } from '../../src/core/limits/plans.ts'
import { type UsageRow, usageRecords } from '../../src/database/tables.ts'
import { breakNow } from '../../src/simulator/reply.ts'
import { newAccount } from '../harness/account.ts'
import { countedNetwork } from '../harness/counted-network.ts'
import { eventually, untilFound } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { openRaw, rawText } from '../harness/raw.ts'
import { jsonAnswer, silence, startUpstream, type Upstream } from '../harness/upstream.ts'

// Starting a gateway takes seconds when other tests run at the same time.
setDefaultTimeout(240_000)

const words = ['Once', ' upon', ' a', ' time.']
const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'gpt-5.5', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`

const { network, arrived } = countedNetwork()
let upstream: Upstream
let gateway: Gateway
const figures: number[] = []
beforeAll(async () => {
  upstream = startUpstream(({ body }) => {
    if (body.includes('refuse')) return jsonAnswer({ error: { message: 'no', type: 'server_error' } }, 500)
    if (body.includes('no answer')) return silence
    const pieces = body.includes('headers only') ? [] : words.map(chunk)
    return {
      headers: { 'content-type': 'text/event-stream' },
      framing: 'chunked',
      pieces: [...pieces, breakNow('hang')],
    }
  })
  gateway = await startGateway({ OPENAI_API_KEY: 'x', OPENAI_BASE_URL: `${upstream.url}/v1` }, { network })
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
  const sorted = figures.toSorted((left, right) => left - right)
  const show = (at: number) => sorted[Math.floor((sorted.length - 1) * at)]?.toFixed(1)
  process.stdout.write(`upstream gone after the caller left: median ${show(0.5)} ms, most ${show(1)} ms\n`)
})

/** Waits for the newest row of an account. */
async function getRow(accountId: string): Promise<UsageRow> {
  const newest = () =>
    gateway.deps.database.run(({ orm }) =>
      orm
        .select()
        .from(usageRecords)
        .where(eq(usageRecords.accountId, accountId))
        .orderBy(desc(usageRecords.at))
        .limit(1),
    )
  return untilFound(async () => (await newest())[0])
}

const deliveries = { JSON: {}, realtime: { stream_mode: 'realtime' }, buffered: { stream: true } }
const moments = { 'before any answer': 'no answer', 'before the first content': 'headers only', 'after it': 'hang' }

const endings = {
  FIN: (socket: import('node:net').Socket) => socket.destroy(),
  RST: (socket: import('node:net').Socket) => socket.resetAndDestroy(),
  'half-close': (socket: import('node:net').Socket) => socket.end(),
}

for (const [ending, leave] of Object.entries(endings))
  describe(`client disconnect by ${ending}`, () => {
    for (const [delivery, fields] of Object.entries(deliveries))
      for (const [moment, prompt] of Object.entries(moments))
        for (const path of ['/v1/chat/completions', '/api/v1/chat'])
          test(`${moment}, ${delivery}, ${path}`, async () => {
            const account = await newAccount(gateway)
            const [before, arrivedBefore] = [upstream.ledger().length, { ...arrived }]
            const lines = gateway.logLines.length
            const body = JSON.stringify({ model: 'gpt-5.5', prompt, ...fields })
            const headers = {
              host: 'localhost',
              authorization: `Bearer ${account.key}`,
              'content-type': 'application/json',
              'content-length': String(body.length),
            }
            const { socket, received } = await openRaw(gateway.port, rawText(`POST ${path}`, headers, body))
            await upstream.until(
              ledger =>
                ledger.length > before &&
                (ledger.at(-1)?.bytesSent ?? 0) > (prompt === 'hang' ? 500 : prompt === 'headers only' ? 50 : -1),
            )
            if (prompt !== 'no answer') await eventually(() => arrived.responses > arrivedBefore.responses)
            if (prompt === 'hang' && delivery !== 'JSON') await eventually(() => received().includes('Once'))
            else if (prompt === 'hang')
              await eventually(() => arrived.bytes - arrivedBefore.bytes >= words.map(chunk).join('').length)
            await oneTurn()
            const left = performance.now()
            leave(socket)
            await upstream.until(ledger => ledger.at(-1)?.outcome === 'aborted')
            const took = (upstream.ledger().at(-1)?.abortedAt ?? Number.POSITIVE_INFINITY) - left
            figures.push(took)

            const row = await getRow(account.id)
            expect([row.status, row.errorCode, row.finishReason]).toEqual(['client_closed', null, null])
            const limits = plans.usage
            expect(gateway.deps.meter.quotaStatus(account.id, limits)?.reservations.remaining).toBe(
              limits.concurrentRequests,
            )
            if (prompt === 'hang') {
              expect([row.outputTokens > 0, row.inputTokens > 0, row.estimated]).toEqual([true, true, true])
              expect(row.billedMicrocents).toBeGreaterThan(0)
            } else expect([row.outputTokens, row.inputTokens, row.billedMicrocents]).toEqual([0, 0, 0])
            expect(row.billedMicrocents).toBeLessThanOrEqual(row.reservedMicrocents)
            expect(received()).not.toContain('[DONE]')
            expect(received()).not.toContain('"done"')
            expect(gateway.logLines.slice(lines).filter(line => /"level":"(warn|error)"/.test(line))).toEqual([])
            expect(gateway.deps.health.list().filter(({ state }) => state !== 'healthy')).toEqual([])
            socket.destroy()
          })
  })

test('upstream connections: close after errors, disconnects and abandoned streams', async () => {
  for (let count = 0; count < 5; count++)
    await (await gateway.post('/api/v1/chat', { model: 'gpt-5.5', prompt: 'refuse' })).text()
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      const abort = new AbortController()
      const answer = await gateway.post(
        '/api/v1/chat',
        { model: 'gpt-5.5', prompt: 'hang', stream: true },
        {},
        abort.signal,
      )
      const reader = answer.body?.getReader()
      await reader?.read()
      abort.abort()
      await reader?.closed.catch(() => undefined)
    }),
  )
  await upstream.until(ledger => ledger.every(({ outcome }) => outcome !== 'open'))
  expect(upstream.ledger().filter(({ outcome }) => outcome === 'open')).toEqual([])
})
