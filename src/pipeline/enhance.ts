import type { Deps } from '../composition/deps.ts'
import type { PromptAnalysis } from '../core/analysis/prompt-analysis.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import { type EnhancementPlan, planEnhancement, replaceUserText } from '../core/enhancement/enhancement-plan.ts'
import { isValidRewrite } from '../core/enhancement/prompt-rewrite.ts'
import { estimateInputTokens } from '../core/tokens/tokens.ts'
import type { ModeratedRequest } from './moderate-input.ts'
import type { RequestContext } from './request-context.ts'
import { type RewriteDeps, rewrite } from './rewrite.ts'
import type { Route } from './routing/route.ts'

declare const enhanced: unique symbol

/** A screened ask whose prompt says what it was to say. What others add to it comes later, and is never rewritten. */
export type Enhanced = { readonly [enhanced]: true; readonly ask: ChatRequest }

export type EnhanceDeps = RewriteDeps & Pick<Deps, 'read' | 'web'>

/** Input tokens of an ask, whatever enhancement will make of it: estimated before anything is reserved. */
export function enhancedInputTokens(
  { config }: Pick<Deps, 'config'>,
  ask: ChatRequest,
  reading: PromptAnalysis,
): number {
  return planEnhancement(ask, reading, config.rewriter !== null)?.inputTokens ?? estimateInputTokens(ask)
}

/**
 * Where the caller asked for it, puts what the prompt lacks behind it, or takes a model's rewrite that keeps the same rules:
 * of the ask as moderation left it, which may have masked some of it. Rejects only when the request ends.
 */
export function enhance(
  deps: EnhanceDeps,
  screened: ModeratedRequest,
  route: Pick<Route, 'reading' | 'inputTokens' | 'web'>,
  tally: Pick<RequestContext, 'requestId' | 'enhancement' | 'upstreamMs'>,
): Enhanced | Promise<Enhanced> {
  const plan = planEnhancement(screened.ask, route.reading, deps.config.rewriter !== null)
  return plan === null ? ({ ask: screened.ask } as Enhanced) : enhanceBy(deps, plan, screened, route, tally)
}

async function enhanceBy(
  deps: EnhanceDeps,
  plan: EnhancementPlan,
  { ask, signal }: ModeratedRequest,
  { inputTokens, web }: Pick<Route, 'inputTokens' | 'web'>,
  tally: Pick<RequestContext, 'requestId' | 'enhancement' | 'upstreamMs'>,
): Promise<Enhanced> {
  tally.enhancement = plan.enhancement
  const { rewritable } = plan
  const text = rewritable === null ? null : await rewrite(deps, rewritable, tally, signal)
  if (rewritable === null || text === null) return { ask: plan.ask } as Enhanced
  const rewritten = replaceUserText(ask, text)
  const isFit =
    isValidRewrite(rewritable, text, deps.read) &&
    deps.web.screen(text) &&
    estimateInputTokens(rewritten) <= inputTokens - web.tokens
  if (!isFit) {
    deps.log.info('rewrite_unfit', { request_id: tally.requestId })
    return { ask: plan.ask } as Enhanced
  }
  tally.enhancement = { ...plan.enhancement, changed: true, enhancedPrompt: text }
  return { ask: rewritten } as Enhanced
}
