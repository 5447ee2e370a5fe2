/** Usage records like those of a busy account: repeatable, spread over days and nights, with the usual failures. */
import { projectTagName } from '../../../src/core/request/tags.ts'
import { dayMs } from '../../../src/core/text/utc-days.ts'
import type { AttemptRecord, UsageRecord } from '../../../src/core/usage/usage-record.ts'

export type LogAccount = {
  readonly accountId: string
  readonly keyIds: readonly string[]
}

export type LogPlan = {
  /** The first account gets `requests` of them, each further one a quarter as many. */
  readonly accounts: readonly LogAccount[]
  readonly requests: number
  /** Epoch milliseconds. */
  readonly from: number
  readonly to: number
}

const models = [
  ['openai', 'gpt-4.1'],
  ['openai', 'gpt-4.1-mini'],
  ['anthropic', 'claude-sonnet-4-5'],
  ['google', 'gemini-2.5-flash'],
  ['openai', 'gpt-5'],
  ['anthropic', 'claude-haiku-4-5'],
  ['google', 'gemini-2.5-pro'],
  ['mistral', 'mistral-large-latest'],
  ['deepseek', 'deepseek-chat'],
  ['mistral', 'mistral-small-latest'],
  ['anthropic', 'claude-opus-4-1'],
  ['deepseek', 'deepseek-reasoner'],
] as const
const dialects = ['chat_completions', 'messages', 'responses', 'native', 'embeddings'] as const
const queryTypes = ['code', 'question', 'creative', 'analysis', 'chat'] as const
const failures = ['upstream_failed', 'upstream_timeout', 'upstream_failed', 'context_length_exceeded'] as const
/** Tags that name the project of a request. */
const projects = [{}, { [projectTagName]: 'prj_a' }, { [projectTagName]: 'prj_b' }] as const
const teams = ['search', 'support', 'growth', 'platform', 'research', 'billing'] as const

/** Returns numbers from 0 to below 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Yields the records of all accounts, oldest first. */
export function* logRecords({ accounts, requests, from, to }: LogPlan): Generator<UsageRecord, void> {
  const random = randomFrom(20)
  const others = accounts.length - 1
  const total = requests + Math.floor(requests / 4) * others
  for (let n = 0; n < total; n++) {
    const account = accounts[n % 5 < 5 - others ? 0 : 5 - (n % 5)] ?? accounts[0]
    if (account === undefined) return
    const days = ((n / total) * (to - from)) / dayMs
    // Busy days and quiet nights: up to three times as many requests per hour.
    const at = from + Math.max(0, days + 0.08 * Math.sin(2 * Math.PI * days)) * dayMs
    yield recordAt(Math.min(to - 1, Math.round(at)), n, account, random)
  }
}

function recordAt(at_ms: number, n: number, { accountId, keyIds }: LogAccount, random: () => number): UsageRecord {
  /** Few values are frequent, the others rare. */
  const pickValue = <const Values extends readonly [unknown, ...unknown[]]>(values: Values): Values[number] =>
    values[Math.floor(random() ** 2 * values.length)] ?? values[0]
  const [provider, model] = pickValue(models)
  const chance = random()
  const status = chance < 0.96 ? 'completed' : chance < 0.985 ? 'failed' : chance < 0.995 ? 'client_closed' : 'blocked'
  const isServed = status === 'completed' || status === 'client_closed'
  const latency_ms = Math.round(250 * Math.exp(2.2 * (random() + random() + random() - 1)))
  const input_tokens = Math.round(200 + 4_000 * random() ** 3)
  const output_tokens = isServed ? Math.round(20 + 900 * random() ** 2) : 0
  const billed_microcents = isServed ? input_tokens * 25 + output_tokens * 100 : 0
  const served: AttemptRecord = [
    `${provider}/${model}`,
    isServed ? 'served' : 'overloaded',
    12,
    Math.round(latency_ms / 3),
  ]
  const second = models[(n + 1) % models.length] ?? models[0]
  const isAuto = random() < 0.6
  return {
    request_id: `req_${n.toString(16).padStart(32, '0')}`,
    account_id: accountId,
    key_id: keyIds[Math.floor(random() ** 2 * keyIds.length)] ?? '',
    at_ms,
    provider: isServed ? provider : '',
    model: isServed ? model : '',
    requested_model: isAuto ? 'gateway-ai' : `${provider}/${model}`,
    ...(isServed ? { upstream_id: `resp_${n.toString(36).padStart(24, '0')}` } : {}),
    routing_mode: isAuto ? 'auto' : 'manual',
    strategy: isAuto ? 'balanced' : null,
    query_type: pickValue(queryTypes),
    streamed: random() < 0.55,
    dialect: pickValue(dialects),
    status,
    error_code: status === 'failed' ? pickValue(failures) : status === 'blocked' ? 'content_blocked' : null,
    finish_reason: isServed ? 'stop' : null,
    input_tokens,
    cached_input_tokens: Math.floor(input_tokens * random() ** 4),
    cache_write_tokens: 0,
    output_tokens,
    reasoning_tokens: Math.floor(output_tokens * random() ** 6),
    estimated: false,
    billed_microcents,
    reserved_microcents: billed_microcents * 2,
    attempts: isServed ? 1 : 2,
    tried: isServed ? [served] : [served, [second.join('/'), 'timeout', 200, 90]],
    latency_ms,
    first_token_ms: isServed ? Math.round(latency_ms / 3) : null,
    metadata: random() < 0.3 ? { user: `u-${Math.floor(random() * 5_000)}`, release: `2026.${n % 9}` } : null,
    ...(random() < 0.5
      ? {
          tags: {
            team: pickValue(teams),
            env: random() < 0.8 ? 'production' : 'staging',
            ...projects[n % projects.length],
          },
        }
      : {}),
    trace: {
      c: [
        [`${provider}/${model}`, 812, 'score', 'healthy', [500, 200, 120, -8, 0]],
        [second.join('/'), 700, 'score', 'healthy', [400, 200, 110, -10, 0]],
      ],
      s: [isServed ? 200 : 503],
      b: [input_tokens * 25, 0, 0, output_tokens * 100],
    },
  }
}
