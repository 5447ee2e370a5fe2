import { abortError, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { Log } from '../core/ports.ts'
import type { Deadlines, ServiceDeadlines } from '../core/request/deadlines.ts'
import type { HealthOutcome } from '../models/circuit-breaker.ts'
import { maximumGrowth } from '../text/enhancement/enhance.ts'
import { rewriteInstructions } from '../text/enhancement/prompt-rewrite.ts'
import { type CompleteDeps, completeInternally } from './internal-completion.ts'

export type RewriteDeps = Omit<CompleteDeps, 'deadlines'> & {
  /** `rewriter`: the operator's model for rewrites, `provider/model`; null = none. */
  readonly config: {
    readonly rewriter: string | null
    readonly deadlines: Deadlines
    readonly serviceDeadlines: Pick<ServiceDeadlines, 'rewriteMs'>
  }
  readonly health: {
    mayTry(key: string): boolean
    beginAttempt(key: string): boolean
    endProbe(key: string): void
    report(key: string, report: { readonly outcome: HealthOutcome }): void
  }
  readonly log: Pick<Log, 'info'>
}

/** A rewritten prompt, or null, and the milliseconds that the request waited for it. */
type Rewrite = { readonly text: string | null; readonly waitedMs: number }

/** Enough for the longest short prompt with the longest addition, in any script. */
const outputCap = 1_024

/**
 * Rewrites a prompt by the operator's model, without the conversation around it. `text` is null if there is no such
 * model, it is unhealthy, or it times out. One attempt at the operator's cost: the account is not billed. Rejects only
 * when `signal` aborts.
 */
export async function rewrite(
  { clock, network, catalogue, endpoints, config, health, log }: RewriteDeps,
  prompt: string,
  requestId: string,
  signal: RequestAbortSignal,
): Promise<Rewrite> {
  const { rewriter } = config
  // Its deadline is short and would distort the model's health for chat requests, so it has its own health key.
  const key = `${rewriter}#enhancement`
  if (rewriter === null || !health.mayTry(key)) return { text: null, waitedMs: 0 }
  const isProbe = health.beginAttempt(key)
  const startedAt = clock.monotonic()
  // The client waits for the rewrite before its own output can begin.
  const deadlines = { ...config.deadlines, totalMs: config.serviceDeadlines.rewriteMs }
  const question = {
    system: rewriteInstructions(maximumGrowth),
    user: prompt,
    outputCap,
    reasoningEffort: 'none',
  } as const
  const completion = { clock, network, catalogue, endpoints, deadlines }
  const text = await completeInternally(completion, rewriter, question, signal).catch(() => null)
  const waitedMs = clock.monotonic() - startedAt
  if (signal.aborted) {
    if (isProbe) health.endProbe(key)
    throw abortError(signal)
  }
  health.report(key, { outcome: text === null ? 'soft_failure' : 'ok' })
  log.info('prompt_rewritten', {
    request_id: requestId,
    model: rewriter,
    outcome: text === null ? 'failed' : 'answered',
    duration_ms: Math.round(waitedMs),
  })
  return { text: text?.trim() ?? null, waitedMs }
}
