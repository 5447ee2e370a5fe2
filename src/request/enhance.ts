import type { ChatRequest } from '../core/chat/chat.ts'
import type { ResponseSummary } from '../core/chat/chat-events.ts'
import { abortError, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { Log } from '../core/ports.ts'
import type { Deadlines, ServiceDeadlines } from '../core/request/deadlines.ts'
import type { HealthTracker } from '../models/health-tracker.ts'
import type { PromptAnalyzer, RequestAnalysis } from '../text/analysis/prompt-analysis.ts'
import { type EnhancementPlan, planEnhancement, replaceUserText } from '../text/enhancement/enhancement-plan.ts'
import { isValidRewrite, rewriteInstructions } from '../text/enhancement/prompt-rewrite.ts'
import { estimateInputTokens } from '../text/tokens/tokens.ts'
import { type CompleteDeps, completeInternally } from './internal-completion.ts'
import type { ModeratedRequest } from './moderate.ts'
import type { Route } from './routing/route.ts'

declare const enhanced: unique symbol

/** A moderated request with its final prompt. Web content is added later and never rewritten. */
export type Enhanced = {
  readonly [enhanced]: true
  readonly request: ChatRequest
  /** Result of the enhancement; null = not requested. */
  readonly enhancement: ResponseSummary['progress']['enhancement']
  /** Milliseconds that the request waited for the rewrite. */
  readonly waitedMs: number
}

export type EnhanceDeps = RewriteDeps & {
  readonly read: PromptAnalyzer
  /** Whether a rewritten prompt may be sent. */
  readonly web: { readonly screen: (text: string) => boolean }
}

/** A request as received, and the enhancement for which its reservation was sized. */
type EnhancementInput = {
  readonly requestId: string
  readonly request: ChatRequest
  readonly plan: Pick<Route, 'analysis' | 'inputTokens' | 'web'>
  /** Null = not requested. */
  readonly enhancement: EnhancementPlan | null
}

/** Plans the enhancement from the client's own text, before the reservation. Null = not requested. */
export function planRequestEnhancement(
  { config }: { readonly config: Pick<RewriteDeps['config'], 'rewriter'> },
  request: ChatRequest,
  analysis: RequestAnalysis,
): EnhancementPlan | null {
  // Read for each request that wants to be enhanced.
  const { language } = analysis
  return language === undefined ? null : planEnhancement(request, { ...analysis, language }, config.rewriter !== null)
}

/**
 * Applies the enhancement if the client requested it: by rules, or by a model's rewrite that keeps the same rules.
 * Rejects only when the request ends.
 */
export function enhance(
  deps: EnhanceDeps,
  screened: ModeratedRequest,
  input: EnhancementInput,
): Enhanced | Promise<Enhanced> {
  const { enhancement } = input
  if (enhancement === null) return { request: screened.request, enhancement: null, waitedMs: 0 } as Enhanced
  // The plan of a masked request still contains the secrets, so it is made again.
  const isMasked = screened.request !== input.request
  const plan = isMasked ? planRequestEnhancement(deps, screened.request, input.plan.analysis) : enhancement
  return plan === null
    ? ({ request: screened.request, enhancement: null, waitedMs: 0 } as Enhanced)
    : enhanceBy(deps, plan, screened, input)
}

async function enhanceBy(
  deps: EnhanceDeps,
  plan: EnhancementPlan,
  { request, signal }: ModeratedRequest,
  input: EnhancementInput,
): Promise<Enhanced> {
  const {
    requestId,
    plan: { inputTokens, web },
  } = input
  const { enhancement, rewritable } = plan
  if (rewritable === null) return { request: plan.request, enhancement, waitedMs: 0 } as Enhanced
  const { text, waitedMs } = await rewrite(deps, rewritable, input, signal)
  if (text === null) return { request: plan.request, enhancement, waitedMs } as Enhanced
  const rewritten = replaceUserText(request, text)
  const isFit =
    isValidRewrite(rewritable, text, deps.read) &&
    deps.web.screen(text) &&
    estimateInputTokens(rewritten) <= inputTokens - web.tokens
  if (!isFit) {
    deps.log.info('rewrite_rejected', { request_id: requestId })
    return { request: plan.request, enhancement, waitedMs } as Enhanced
  }
  return {
    request: rewritten,
    enhancement: { ...enhancement, changed: true, enhancedPrompt: text },
    waitedMs,
  } as Enhanced
}

type RewriteDeps = Omit<CompleteDeps, 'deadlines'> & {
  /** `rewriter`: the operator's model for rewrites, `provider/model`; null = none. */
  readonly config: {
    readonly rewriter: string | null
    readonly deadlines: Deadlines
    readonly serviceDeadlines: Pick<ServiceDeadlines, 'rewriteMs'>
  }
  readonly health: Pick<HealthTracker, 'getStanding' | 'beginAttempt' | 'endProbe' | 'report'>
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
async function rewrite(
  { clock, network, catalog, endpoints, config, health, log }: RewriteDeps,
  prompt: string,
  { requestId, request: { demands } }: Pick<EnhancementInput, 'requestId' | 'request'>,
  signal: RequestAbortSignal,
): Promise<Rewrite> {
  const { rewriter } = config
  // Its deadline is short and would distort the model's health for chat requests, so it has its own health key.
  const key = `${rewriter}#enhancement`
  if (rewriter === null || !health.getStanding(key).mayTry) return { text: null, waitedMs: 0 }
  const isProbe = health.beginAttempt(key)
  const startedAt = clock.monotonic()
  // The client waits for the rewrite before its own output can begin.
  const deadlines = { ...config.deadlines, totalMs: config.serviceDeadlines.rewriteMs }
  const question = {
    system: rewriteInstructions,
    user: prompt,
    outputCap,
    demands: demands ?? null,
    reasoningEffort: 'none',
  } as const
  const completion = { clock, network, catalog, endpoints, deadlines }
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
