/**
 * Creates the trace of a sampled request after it has ended, from the times in its progress: nothing is tracked while
 * it runs, and an unsampled request costs one random number. Names follow OpenTelemetry's conventions for generative
 * AI. Contains no prompt, output, account or key, and no client text except the IDs of its `traceparent`.
 */
import { autoModel } from '../core/models/models.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import { toUsd } from '../core/usage/money.ts'
import type { SettledRequest } from '../request/record.ts'

export type Attribute = string | number | boolean | readonly string[]

export type Span = {
  readonly traceId: string
  readonly spanId: string
  /** Null = the trace begins here. */
  readonly parentId: string | null
  readonly name: string
  readonly kind: 'server' | 'client' | 'internal'
  /** Epoch milliseconds, with fractions. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: Readonly<Record<string, Attribute>>
  /** The error code; null = success. */
  readonly error: string | null
}

export type Tracer = {
  /** Stores the request's spans if it is sampled. Drops and counts them if the buffer is full. */
  take(settled: SettledRequest): void
  /** Removes and returns up to `maximum` spans, oldest first. */
  drain(maximum: number): readonly Span[]
  dropped(): number
}

/** Maximum spans waiting for export: about 2,000 requests, 8 MB. */
const maximumWaiting = 16_384

/** `ratio` is the share of requests that are traced unless the client's `traceparent` decides. */
export function createTracer(options: {
  readonly ratio: number
  readonly random: () => number
  readonly randomBytes: (count: number) => Uint8Array
  readonly monotonic: () => number
}): Tracer {
  const { ratio, random, randomBytes, monotonic } = options
  let waiting: Span[] = []
  let dropped = 0
  return {
    take(settled) {
      const { trace } = settled.request
      if (trace === null ? random() >= ratio : !trace.sampled) return
      const spans = getSpans(settled, monotonic(), trace, randomBytes)
      if (waiting.length + spans.length > maximumWaiting) dropped += spans.length
      else waiting.push(...spans)
    },
    drain(maximum) {
      const taken = waiting.slice(0, maximum)
      waiting = waiting.slice(maximum)
      return taken
    },
    dropped: () => dropped,
  }
}

/** Returns the spans of the request, its consecutive steps, and each attempt. */
function getSpans(
  settled: SettledRequest,
  now: number,
  parent: TraceParent | null,
  randomBytes: (count: number) => Uint8Array,
): readonly Span[] {
  const { request, plan, progress, record } = settled
  const operation = getOperation(record)
  const steps = Object.entries(progress.stages).flatMap(([name, at]) => (at === null ? [] : [{ name, startedAt: at }]))
  // All IDs in one call, because each call costs more than a span.
  const drawn = Buffer.from(randomBytes(24 + 8 * (steps.length + progress.attempts.length))).toString('hex')
  const traceId = parent?.traceId ?? drawn.slice(0, 32)
  const rootId = drawn.slice(32, 48)
  let used = 32
  const nextId = () => {
    used += 16
    return drawn.slice(used - 16, used)
  }
  const getEpoch = (monotonic: number) => request.startedAt + monotonic - request.startedMonotonic
  const span = (name: string, from: number, to: number, more: Partial<Span> = {}): Span => ({
    traceId,
    spanId: nextId(),
    parentId: rootId,
    name,
    kind: 'internal',
    startedAt: getEpoch(from),
    endedAt: getEpoch(to),
    attributes: {},
    error: null,
    ...more,
  })

  const asked = plan.mode === 'auto' ? autoModel : plan.first.model.id
  const root = span(`${operation} ${asked}`, request.startedMonotonic, now, {
    parentId: parent?.spanId ?? null,
    kind: 'server',
    error: record.error_code,
    attributes: rootAttributes(settled, asked),
  })
  // An attempt's duration ends at its first content; the one that served continued until the settlement.
  const lastContentAt = progress.stages.settle ?? now
  return [
    root,
    ...steps.map(({ name, startedAt }, index) => span(name, startedAt, steps[index + 1]?.startedAt ?? now)),
    ...progress.attempts.map(({ model: name, outcome, startedAt, durationMs, via }) => {
      const provider = name.slice(0, name.indexOf('/'))
      const model = name.slice(provider.length + 1)
      return span(`attempt ${model}`, startedAt, outcome === 'served' ? lastContentAt : startedAt + durationMs, {
        kind: 'client',
        attributes: {
          ...inference(operation, provider, model),
          'gateway.attempt.outcome': outcome,
          ...(via && { 'gateway.attempt.via': via }),
        },
        error: outcome === 'served' ? null : outcome,
      })
    }),
  ]
}

function rootAttributes({ plan, response, record }: SettledRequest, asked: string): Record<string, Attribute> {
  const answered: Record<string, Attribute> =
    record.model === ''
      ? {}
      : {
          'gen_ai.response.model': record.model,
          'gen_ai.usage.input_tokens': record.input_tokens,
          'gen_ai.usage.output_tokens': record.output_tokens,
          'gen_ai.usage.cache_read.input_tokens': record.cached_input_tokens,
          'gen_ai.usage.cache_creation.input_tokens': record.cache_write_tokens,
          'gen_ai.usage.reasoning.output_tokens': record.reasoning_tokens,
        }
  return {
    ...inference(getOperation(record), record.provider === '' ? plan.first.model.provider : record.provider, asked),
    ...answered,
    ...(record.status === 'completed'
      ? { 'gen_ai.response.finish_reasons': [...(response?.finishes.values() ?? [])] }
      : {}),
    ...(record.first_token_ms === null ? {} : { 'gen_ai.response.time_to_first_chunk': record.first_token_ms / 1000 }),
    ...(plan.choices === 1 ? {} : { 'gen_ai.request.choice.count': plan.choices }),
    'gen_ai.response.id': record.request_id,
    'gateway.status': record.status,
    'gateway.streamed': record.streamed,
    'gateway.routing.mode': record.routing_mode,
    ...(record.strategy === null ? {} : { 'gateway.routing.strategy': record.strategy }),
    ...(record.query_type === null ? {} : { 'gateway.query_type': record.query_type }),
    'gateway.attempts': record.attempts,
    'gateway.cost_usd': toUsd(record.billed_microcents),
    'gateway.usage.estimated': record.estimated,
  }
}

const getOperation = ({ dialect }: SettledRequest['record']) => (dialect === 'embeddings' ? dialect : 'chat')

/** Returns the attributes that the conventions require on every span of a model call. */
function inference(operation: string, provider: string, model: string): Record<string, Attribute> {
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': provider === 'google' ? 'gcp.gemini' : provider,
    'gen_ai.request.model': model,
  }
}
