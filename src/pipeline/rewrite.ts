import type { Deps } from '../composition/deps.ts'
import { abortError, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import { maximumGrowth } from '../core/enhancement/enhance.ts'
import { rewriteInstructions } from '../core/enhancement/prompt-rewrite.ts'
import { completeInternally } from './internal-completion.ts'
import type { RequestContext } from './request-context.ts'

export type RewriteDeps = Pick<Deps, 'clock' | 'network' | 'catalogue' | 'endpoints' | 'config' | 'health' | 'log'>

/** The caller waits for it before the answer has even begun. */
const deadlineMs = 2_500
/** Enough for the longest terse prompt with the longest growth, in whatever script. */
const outputCap = 1_024

/**
 * A prompt as the operator's model would rather put it, seen by itself, without the conversation around it; null where there
 * is no such model, it is resting, or it does not answer in time. One attempt, at the operator's cost: nothing of it is
 * billed. Rejects only when `ending` comes.
 */
export async function rewrite(
  { clock, network, catalogue, endpoints, config, health, log }: RewriteDeps,
  prompt: string,
  tally: Pick<RequestContext, 'requestId' | 'upstreamMs'>,
  ending: RequestAbortSignal,
): Promise<string | null> {
  const { rewriter } = config
  if (rewriter === null) return null
  // Its short deadline says nothing of how the model serves: it has a health of its own.
  const key = `${rewriter}#enhancement`
  if (!health.mayTry(key)) return null
  health.beginAttempt(key)
  const startedAt = clock.monotonic()
  const deadlines = { ...config.deadlines, totalMs: deadlineMs }
  const question = {
    system: rewriteInstructions(maximumGrowth),
    user: prompt,
    outputCap,
    reasoningEffort: 'none',
  } as const
  const text = await completeInternally(
    { clock, network, catalogue, endpoints, deadlines },
    rewriter,
    question,
    ending,
  ).catch(() => null)
  const durationMs = clock.monotonic() - startedAt
  // Others kept it waiting: no time of the gateway's own.
  tally.upstreamMs += durationMs
  if (ending.aborted) throw abortError(ending)
  health.report(key, { outcome: text === null ? 'soft_failure' : 'ok' })
  log.info('prompt_rewritten', {
    request_id: tally.requestId,
    model: rewriter,
    outcome: text === null ? 'failed' : 'answered',
    duration_ms: Math.round(durationMs),
  })
  return text?.trim() ?? null
}
