/** Gauges, read at the time of the scrape. */

import type { HealthState } from '../core/chat/attempts.ts'
import { intervalTimer } from '../core/jobs/repeating.ts'
import type { Model } from '../core/models/models.ts'
import { toUsd } from '../core/usage/money.ts'
import type { Progress } from '../request/progress.ts'
import type { ModerationStats } from '../text/moderation/layers/moderation.ts'
import { createHistogram, type Family, type Labels, type Sample } from './instruments.ts'

/** Sources of the gauges. */
export type GaugeSources = {
  readonly version: string
  readonly models: readonly Pick<Model, 'id' | 'provider'>[]
  readonly getHealth: (model: Pick<Model, 'id' | 'provider'>) => HealthState
  readonly isReady: () => boolean
  /** Unshipped and rejected usage records, the age of the oldest unshipped one, and the used share of the journal. */
  readonly usage: { backlog(): number; aside(): number; lagMs(): number; fill(): number }
  /** Share of accounts whose limits Redis decides, 0–1; null = no Redis is configured. */
  readonly sharedLimits: () => number | null
  readonly moderation: () => ModerationStats
}

const healthFigures = { healthy: 1, degraded: 0.5, unhealthy: 0 } as const satisfies Record<HealthState, number>

/** Returns the current gauges. `open` are the requests in progress. */
export function gauges(state: GaugeSources, open: Iterable<Progress>): readonly Family[] {
  const { reservations, tokens, microcents } = reserved(open)
  const shared = state.sharedLimits()
  const { blockedHosts, moderation } = state.moderation()
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return [
    gauge('gateway_build_info', 'Version and instance; always 1.', 1, { version: state.version, bun: Bun.version }),
    gauge('gateway_ready', '1 if the instance accepts requests.', state.isReady() ? 1 : 0),
    {
      name: 'gateway_model_health',
      help: 'Health of upstreams as seen by this process: 1 healthy, 0.5 degraded, 0 unhealthy.',
      kind: 'gauge',
      samples: state.models.map(model => ({
        labels: { provider: model.provider, model: model.id },
        value: healthFigures[state.getHealth(model)],
      })),
    },
    gauge('gateway_requests_in_flight', 'Chat requests in progress.', reservations),
    gauge('gateway_reserved_tokens', 'Tokens reserved by requests in progress.', tokens),
    gauge('gateway_reserved_usd', 'US dollars reserved by requests in progress.', toUsd(microcents)),
    gauge('gateway_usage_backlog_records', 'Unshipped usage records.', state.usage.backlog()),
    gauge('gateway_usage_set_aside_records', 'Usage records that Postgres rejects.', state.usage.aside()),
    gauge('gateway_usage_lag_seconds', 'Age of the oldest unshipped record in seconds.', state.usage.lagMs() / 1000),
    gauge(
      'gateway_usage_journal_ratio',
      'Used share of USAGE_JOURNAL_MAX_BYTES; at 1, requests get 503.',
      state.usage.fill(),
    ),
    ...(shared === null
      ? []
      : [
          gauge(
            'gateway_limits_in_redis_ratio',
            'Share of accounts whose limits Redis decides; this process decides the others.',
            shared,
          ),
        ]),
    gauge('gateway_blocked_hosts', 'Hosts on the blocklists.', blockedHosts),
    ...(moderation === null ? [] : [moderationCalls(moderation)]),
    gauge('process_resident_memory_bytes', 'Resident memory of the process.', rss),
    gauge('process_heap_bytes', 'Heap memory in use.', heapUsed),
    { ...gauge('process_cpu_seconds_total', 'CPU time used by the process.', (user + system) / 1e6), kind: 'counter' },
    gauge(
      'process_start_time_seconds',
      'Start time of the process in seconds since the epoch.',
      performance.timeOrigin / 1000,
    ),
  ]
}

function moderationCalls({ asked, blocked, failed, passedOver }: NonNullable<ModerationStats['moderation']>): Family {
  const outcomes = { passed: asked - blocked - failed, blocked, failed, skipped: passedOver }
  return {
    name: 'gateway_moderation_calls_total',
    help: 'Prompts for external moderation by result; skipped = during a cooldown.',
    kind: 'counter',
    samples: Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome }, value })),
  }
}

function reserved(open: Iterable<Progress>) {
  const sum = { reservations: 0, tokens: 0, microcents: 0 }
  for (const { reservation } of open) {
    sum.reservations++
    sum.tokens += reservation.reservedTokens
    sum.microcents += reservation.reservedMicrocents
  }
  return sum
}

type Gauge = Extract<Family, { kind: 'counter' | 'gauge' }> & { readonly samples: readonly Sample[] }

function gauge(name: string, help: string, value: number, labels: Labels = {}): Gauge {
  return { name, help, kind: 'gauge', samples: [{ labels, value }] }
}

/** Interval of the measurement. */
const everyMs = 1_000

/** Upper bounds in seconds. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

type LoopLag = { family(): Family; close(): void }

/** Starts measuring how late a timer fires, once per second. Does not keep the process alive. */
export function watchLoopLag(monotonic: () => number): LoopLag {
  const lag = createHistogram({
    name: 'gateway_event_loop_lag_seconds',
    help: 'Delay of a timer of one second: time that every request waits while the event loop is blocked.',
    axes: [],
    bounds,
    showsZeros: true,
  })
  let due = monotonic() + everyMs
  const close = intervalTimer(everyMs, () => {
    const now = monotonic()
    lag.observe(Math.max(0, now - due) / 1000)
    due = now + everyMs
  })
  return { family: lag.family, close }
}
