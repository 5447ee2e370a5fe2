import type { ChatRequest } from '../core/chat/chat.ts'
import type { ResponseSummary } from '../core/chat/chat-events.ts'
import type { PromptAnalyzer, RequestAnalysis } from '../text/analysis/prompt-analysis.ts'
import { type EnhancementPlan, planEnhancement, replaceUserText } from '../text/enhancement/enhancement-plan.ts'
import { isValidRewrite } from '../text/enhancement/prompt-rewrite.ts'
import { estimateInputTokens } from '../text/tokens/tokens.ts'
import type { ModeratedRequest } from './moderate-input.ts'
import { type RewriteDeps, rewrite } from './rewrite.ts'
import type { Route } from './routing/route.ts'

declare const enhanced: unique symbol

/** A moderated request with its final prompt. Web content is added later and never rewritten. */
export type Enhanced = {
  readonly [enhanced]: true
  readonly ask: ChatRequest
  /** Result of the enhancement; null = not requested. */
  readonly enhancement: ResponseSummary['enhancement']
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
  readonly ask: ChatRequest
  readonly plan: Pick<Route, 'reading' | 'inputTokens' | 'web'>
  /** Null = not requested. */
  readonly enhancement: EnhancementPlan | null
}

/** Plans the enhancement from the client's own text, before the reservation. Null = not requested. */
export function planRequestEnhancement(
  { config }: { readonly config: Pick<RewriteDeps['config'], 'rewriter'> },
  ask: ChatRequest,
  reading: RequestAnalysis,
): EnhancementPlan | null {
  return planEnhancement(ask, reading, config.rewriter !== null)
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
  if (enhancement === null) return { ask: screened.ask, enhancement: null, waitedMs: 0 } as Enhanced
  // The plan of a masked request still contains the secrets, so it is made again.
  const isMasked = screened.ask !== input.ask
  const plan = isMasked ? planRequestEnhancement(deps, screened.ask, input.plan.reading) : enhancement
  return plan === null
    ? ({ ask: screened.ask, enhancement: null, waitedMs: 0 } as Enhanced)
    : enhanceBy(deps, plan, screened, input)
}

async function enhanceBy(
  deps: EnhanceDeps,
  plan: EnhancementPlan,
  { ask, signal }: ModeratedRequest,
  { requestId, plan: { inputTokens, web } }: EnhancementInput,
): Promise<Enhanced> {
  const { enhancement, rewritable } = plan
  if (rewritable === null) return { ask: plan.ask, enhancement, waitedMs: 0 } as Enhanced
  const { text, waitedMs } = await rewrite(deps, rewritable, requestId, signal)
  if (text === null) return { ask: plan.ask, enhancement, waitedMs } as Enhanced
  const rewritten = replaceUserText(ask, text)
  const isFit =
    isValidRewrite(rewritable, text, deps.read) &&
    deps.web.screen(text) &&
    estimateInputTokens(rewritten) <= inputTokens - web.tokens
  if (!isFit) {
    deps.log.info('rewrite_rejected', { request_id: requestId })
    return { ask: plan.ask, enhancement, waitedMs } as Enhanced
  }
  return { ask: rewritten, enhancement: { ...enhancement, changed: true, enhancedPrompt: text }, waitedMs } as Enhanced
}
