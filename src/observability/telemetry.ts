/** Telemetry of requests: metrics, one log line, and sampled traces. Called when a request is settled. */

import type { HealthState } from '../core/chat/attempts.ts'
import { createActiveSet } from '../core/chat/request-abort.ts'
import { intervalTimer } from '../core/jobs/repeating.ts'
import type { Model } from '../core/models/models.ts'
import type { Clock, Log } from '../core/ports.ts'
import { readTraceParent, type TraceParent } from '../core/text/traceparent.ts'
import { toUsd } from '../core/usage/money.ts'
import type { ShadowVerdict } from '../core/usage/shadow.ts'
import type { GatewayError } from '../core/validation/errors.ts'
import type { Progress } from '../request/progress.ts'
import type { SettledRequest } from '../request/record.ts'
import type { ModerationStats } from '../text/moderation/layers/moderation.ts'
import { type Exporter, type ExporterOptions, startExporter } from './exporter.ts'
import { createHistogram, type Family, type Labels, type Sample } from './instruments.ts'
import { createMetrics, type Surface } from './metrics.ts'
import { createTracer } from './traces.ts'

type Telemetry = {
  /** Called when the request gets its reservation. */
  admitted(progress: Progress): void
  /** Called once for every admitted request, whichever side ended it. */
  settled(request: SettledRequest): void
  /** Called for every request that shadow evaluation has sampled. */
  compared(result: ShadowVerdict | 'skipped'): void
  /** Called when an error is sent to a client. */
  failed(surface: Surface, error: Pick<GatewayError, 'code' | 'layer'>): void
  /** Returns the trace that a request belongs to; null = none, or tracing is off. */
  findTrace(headers: Headers): TraceParent | null
  families(): readonly Family[]
  close(): Promise<void>
}

type ObserveOptions = {
  readonly state: GaugeSources
  readonly log: Pick<Log, 'debug' | 'warn'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** Null = no export and no traces. */
  readonly otlp:
    | (Pick<ExporterOptions, 'endpoint' | 'headers' | 'fetch' | 'metricsEveryMs'> & { readonly sampleRatio: number })
    | null
  readonly worker: number | null
  readonly random: () => number
  readonly randomBytes: (count: number) => Uint8Array
}

/** Starts telemetry. `close` stops it and exports what is left. */
export function createTelemetryObserver({
  state,
  log,
  clock,
  otlp,
  worker,
  random,
  randomBytes,
}: ObserveOptions): Telemetry {
  const metrics = createMetrics(() => state.models)
  const lag = watchLoopLag(clock.monotonic)
  const open = createActiveSet<Progress>()
  const own = () => [...metrics.families(), ...gauges(state, open), lag.family()]

  const tracer =
    otlp === null ? null : createTracer({ ratio: otlp.sampleRatio, random, randomBytes, monotonic: clock.monotonic })
  const exporter: Exporter | null =
    otlp === null || tracer === null
      ? null
      : startExporter({
          ...otlp,
          resource: {
            'service.name': 'gateway-ai',
            'service.version': state.version,
            'service.instance.id': Buffer.from(randomBytes(16)).toString('hex'),
            ...(worker === null ? {} : { 'gateway.worker': String(worker) }),
          },
          now: clock.now,
          tracer,
          families: () => [...own(), ...exporterFamilies()],
          log,
        })
  const exporterFamilies = () => exporter?.families() ?? []

  return {
    admitted: open.add,
    settled(request) {
      open.delete(request.progress)
      metrics.settled(request)
      tracer?.take(request)
      log.debug('request_settled', getLine(request))
    },
    compared: metrics.compared,
    failed: metrics.failed,
    findTrace: headers => (tracer === null ? null : readTraceParent(headers.get('traceparent'))),
    families: () => [...own(), ...exporterFamilies()],
    async close() {
      lag.close()
      await exporter?.close()
    },
  }
}

/** Returns the log fields of a request: its outcome and its usage. */
function getLine({ record, progress }: SettledRequest) {
  const { via } = progress.attempts.at(-1) ?? {}
  return {
    request_id: record.request_id,
    account_id: record.account_id,
    provider: record.provider,
    model: record.model,
    ...(via && { via }),
    status: record.status,
    code: record.error_code,
    attempts: record.attempts,
    streamed: record.streamed,
    input_tokens: record.input_tokens,
    output_tokens: record.output_tokens,
    billed_microcents: record.billed_microcents,
    latency_ms: record.latency_ms,
    first_token_ms: record.first_token_ms,
  }
}

/** Gauges, read at the time of the scrape. */

/** Sources of the gauges. */
type GaugeSources = {
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
function watchLoopLag(monotonic: () => number): LoopLag {
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
