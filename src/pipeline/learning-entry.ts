import type { Deps } from '../composition/deps.ts'
import type { ChatRequest, TokenUsage } from '../core/chat/chat.ts'
import { logLengthRatio } from '../core/learning/learning-cell.ts'
import { inferQuality } from '../core/learning/response-quality.ts'
import type { Model } from '../core/models/models.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { RequestContext } from './request-context.ts'
import type { Route } from './routing/route.ts'

export type LessonDeps = Pick<Deps, 'learning' | 'prompts' | 'clock'>

/** What learning is to take from a request, content-free; null of one that was not answered. */
export function toLearningEntry(
  deps: LessonDeps,
  accountId: string,
  ask: ChatRequest,
  plan: Route,
  tally: RequestContext,
  served: { readonly model: Model; readonly usage: TokenUsage; readonly isEnhanced: boolean } | null,
): NonNullable<UsageRecord['learning']> | null {
  const { serving } = tally
  if (served === null || serving === null || tally.outcome !== 'completed') return null
  const { queryType } = plan.reading
  const quality = inferQuality({
    finish: serving.finishes.get(0) ?? null,
    text: serving.text,
    hasContent: serving.hasContent,
    refused: serving.refused,
    isCapped: ask.maxOutputTokens !== null,
    wantsJson: ask.responseFormat.type !== 'text' && ask.choices === 1 && !serving.hasToolCalls,
    queryType,
    ratio: logLengthRatio(served.usage),
    usualRatio: deps.learning.of(accountId)?.usualRatioOf(queryType) ?? null,
  })
  const isFirst = serving.candidate.model === plan.first.model
  const request = { id: tally.requestId, from: tally.startedAt, to: deps.clock.now() }
  return {
    quality: Math.round(quality * 1e4) / 1e4,
    epoch: plan.learning.epoch,
    influenced: plan.learning.influenced && isFirst,
    choice_probability: isFirst ? plan.learning.probability : null,
    enhanced: served.isEnhanced,
    repeat_of: deps.prompts.answered(tally.promptDigest, request),
  }
}
