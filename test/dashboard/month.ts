/** A gateway after a month of requests: three APIs, three users and failures, on simulated providers and a moved clock. */
import { systemClock } from '../../src/database/clock.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, signIn } from '../harness/users.ts'
import { firstOwner } from './browser.ts'

const hourMs = 3_600_000
/** A request of last month is among them on each day of a month. */
const daysOfMonth = 34
/** Requests of a third of a day, from Sunday on. */
const perWeekday = [4, 11, 13, 12, 14, 11, 5]
const models = [
  'gateway-ai',
  'anthropic/claude-haiku-5-5',
  'gateway-ai',
  'openai/gpt-5.4-mini',
  'google/gemini-2.5-flash',
]
const topics = ['Explain prompt caches', 'Write a SQL query for late orders', 'Translate “good morning” into French']
const ways = [
  { path: '/v1/messages', cap: 'max_tokens' },
  { path: '/v1/chat/completions', cap: 'max_completion_tokens' },
  { path: '/v1/responses', cap: 'max_output_tokens' },
] as const
const limits = { requestsPerMinute: 6_000, concurrentRequests: 100, dailyTokens: 2e7, dailyCostMicrocents: 2e9 }

export type Month = { readonly gateway: Gateway; stop(): Promise<void> }

/** Starts a gateway and sends it about 1,000 requests over 34 days. */
export async function startMonth(): Promise<Month> {
  const simulator = await startSimulator({ clock: systemClock, random: Math.random })
  let backMs = daysOfMonth * 24 * hourMs
  const now = () => Date.now() - backMs
  const { openai, anthropic, google } = simulator.urls
  const gateway = await startGateway(
    {
      OPENAI_API_KEY: 'key-openai',
      OPENAI_BASE_URL: openai,
      ANTHROPIC_API_KEY: 'key-anthropic',
      ANTHROPIC_BASE_URL: anthropic,
      GEMINI_API_KEY: 'key-google',
      GEMINI_BASE_URL: google,
      STORED_PROVIDER_KEYS: 'anywhere',
    },
    { clock: { ...systemClock, now }, limits },
  )
  const owner = await signIn(gateway, firstOwner(gateway))
  if (owner === null) throw new Error('the first owner signs in')
  const members = [await addMember(gateway, owner, 'admin'), await addMember(gateway, owner, 'member')]
  const keys = [gateway.key]
  for (const member of members) keys.push((await createKeyFor(gateway, member, `key of ${member.role}`)).key)
  let sent = 0
  const send = async (isFailing: boolean) => {
    const at = sent++
    const { path, cap } = ways[at % 3] ?? ways[0]
    const directive = isFailing ? '[[sim:status=503]] ' : at % 5 === 0 ? '[[sim:cached=40]] ' : ''
    const content = `${directive}${topics[at % topics.length]}, draft ${at}.`
    const asked =
      path === '/v1/responses' ? { input: content, store: false } : { messages: [{ role: 'user', content }] }
    const body = { model: models[at % models.length], [cap]: 60 + (at % 4) * 80, stream: at % 4 === 1, ...asked }
    const tags = at % 2 === 0 ? { 'x-gateway-tags': `team=${at % 6 === 0 ? 'ads' : 'search'}` } : {}
    // The second member sends more than the others.
    const key = keys[at % 7 === 0 ? 0 : at % 7 < 3 ? 1 : 2]
    await (await gateway.post(path, body, { authorization: `Bearer ${key}`, ...tags })).text()
  }
  for (; backMs > 0; backMs -= 8 * hourMs) {
    const time = new Date(now())
    const isMorning = time.getUTCHours() < 8
    // A failed request on each day.
    await Promise.all(Array.from({ length: perWeekday[time.getUTCDay()] ?? 0 }, (_, at) => send(isMorning && at === 0)))
  }
  backMs = 0
  for (let last = 0; last < 12; last++) await send(false)
  await gateway.post('/api/v1/chat', { prompt: 'Hi', temperature: 9 })
  await gateway.deps.rejections.flush()
  const metrics = async () => (await fetch(`${gateway.url}/metrics`)).text()
  await eventually(async () => /^gateway_usage_backlog_records(\{.*\})? 0$/m.test(await metrics()))
  return {
    gateway,
    async stop() {
      await gateway.stop()
      await simulator.stop()
    },
  }
}
