/** Gauges, read at the time of the scrape. */

import type { Model } from '../core/models/models.ts'
import type { HealthState } from '../core/routing/circuit-breaker.ts'
import { toUsd } from '../core/usage/money.ts'
import type { ModerationStats } from '../moderation/moderation.ts'
import type { Progress } from '../pipeline/progress.ts'
import type { Family, Labels, Sample } from './instruments.ts'

/** Sources of the gauges. */
export type GaugeSources = {
  readonly version: string
  readonly models: readonly Model[]
  readonly healthOf: (model: Model) => HealthState
  readonly isReady: () => boolean
  /** Unshipped usage records, and the age of the oldest one. */
  readonly usage: { backlog(): number; lagMs(): number }
  /** Share of accounts whose limits Redis decides, 0–1; null = no Redis is configured. */
  readonly sharedLimits: () => number | null
  readonly safety: () => ModerationStats
}

const healthFigures = { healthy: 1, degraded: 0.5, unhealthy: 0 } as const satisfies Record<HealthState, number>

/** The gauges of one moment. `open` are the requests that hold a seat. */
export function gauges(state: GaugeSources, open: Iterable<Progress>): readonly Family[] {
  const { seats, tokens, microcents } = reserved(open)
  const shared = state.sharedLimits()
  const { blockedHosts, moderation } = state.safety()
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return [
    gauge('gateway_build_info', 'What runs here; always 1.', 1, { version: state.version, bun: Bun.version }),
    gauge('gateway_ready', 'Whether new work is welcome.', state.isReady() ? 1 : 0),
    {
      name: 'gateway_model_health',
      help: '1 healthy, 0.5 degraded, 0 unhealthy, as this process has heard.',
      kind: 'gauge',
      samples: state.models.map(model => ({
        labels: { provider: model.provider, model: model.id },
        value: healthFigures[state.healthOf(model)],
      })),
    },
    gauge('gateway_requests_in_flight', 'Chat requests that hold a seat.', seats),
    gauge('gateway_reserved_tokens', 'Tokens reserved by requests in flight.', tokens),
    gauge('gateway_reserved_usd', 'US dollars reserved by requests in flight.', toUsd(microcents)),
    gauge('gateway_usage_backlog_records', 'Usage records that are not in the ledger yet.', state.usage.backlog()),
    gauge(
      'gateway_usage_lag_seconds',
      'How long the oldest record that is being shipped to the ledger has waited.',
      state.usage.lagMs() / 1000,
    ),
    ...(shared === null
      ? []
      : [
          gauge(
            'gateway_limits_in_redis_ratio',
            'Share of accounts whose limits Redis decides on; this process alone keeps those of the others.',
            shared,
          ),
        ]),
    gauge('gateway_blocked_hosts', 'Hosts that prompts, pages and answers may not point at.', blockedHosts),
    ...(moderation === null ? [] : [moderationCalls(moderation)]),
    gauge('process_resident_memory_bytes', 'Memory that the process holds.', rss),
    gauge('process_heap_bytes', 'Memory that its objects take.', heapUsed),
    { ...gauge('process_cpu_seconds_total', 'CPU time used.', (user + system) / 1e6), kind: 'counter' },
    gauge('process_start_time_seconds', 'When it began, in seconds since the epoch.', performance.timeOrigin / 1000),
  ]
}

function moderationCalls({ asked, blocked, failed, passedOver }: NonNullable<ModerationStats['moderation']>): Family {
  const outcomes = { passed: asked - blocked - failed, blocked, failed, passed_over: passedOver }
  return {
    name: 'gateway_moderation_calls_total',
    help: 'Times that the external moderation had a prompt to judge; passed_over while it was left alone.',
    kind: 'counter',
    samples: Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome }, value })),
  }
}

function reserved(open: Iterable<Progress>) {
  const sum = { seats: 0, tokens: 0, microcents: 0 }
  for (const { reservation } of open) {
    sum.seats++
    sum.tokens += reservation.reservedTokens
    sum.microcents += reservation.reservedMicrocents
  }
  return sum
}

type Gauge = Extract<Family, { kind: 'counter' | 'gauge' }> & { readonly samples: readonly Sample[] }

function gauge(name: string, help: string, value: number, labels: Labels = {}): Gauge {
  return { name, help, kind: 'gauge', samples: [{ labels, value }] }
}
