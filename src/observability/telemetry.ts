/** Telemetry of requests: metrics, one log line, and sampled traces. Called when a request is settled. */

import { createActiveSet } from '../core/chat/request-abort.ts'
import type { Clock, Log } from '../core/ports.ts'
import { readTraceParent, type TraceParent } from '../core/text/traceparent.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { GatewayError } from '../core/validation/errors.ts'
import type { Progress } from '../request/progress.ts'
import type { SettledRequest } from '../request/settle.ts'
import { type Exporter, type ExporterOptions, startExporter } from './exporter.ts'
import { type GaugeSources, gauges, watchLoopLag } from './gauges.ts'
import type { Family } from './instruments.ts'
import { createMetrics, type Surface } from './metrics.ts'
import { createTracer } from './traces.ts'

type Telemetry = {
  /** Called when the request gets its reservation. */
  admitted(progress: Progress): void
  /** Called once for every admitted request, whichever side ended it. */
  settled(request: SettledRequest): void
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
      log.debug('request_settled', getLine(request.record, request.progress))
    },
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
function getLine(record: UsageRecord, { attempts }: Pick<Progress, 'attempts'>) {
  const { via } = attempts.at(-1) ?? {}
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
