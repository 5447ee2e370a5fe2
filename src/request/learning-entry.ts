import type { Clock } from '../core/ports.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { logLengthRatio } from '../learning/learning-cell.ts'
import { inferQuality, type LengthStatistics } from '../learning/response-quality.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import type { Progress } from './progress.ts'
import type { SettledCost } from './settled-cost.ts'

export type LearningEntryDeps = {
  /** Learning of an account, from memory; null = not loaded yet. */
  readonly learning: {
    of(accountId: string): { usualRatioOf(queryType: string): LengthStatistics | null } | null
  }
  /** Records an answered request and returns the ID of the request that it repeats; null = none. */
  readonly prompts: {
    answered(
      digest: string,
      request: { readonly id: string; readonly from: number; readonly to: number },
    ): string | null
  }
  readonly clock: Pick<Clock, 'now'>
}

/** Returns the content-free learning entry of a request; null for a request that was not answered. */
export function toLearningEntry(
  deps: LearningEntryDeps,
  { requestId, startedAt, promptDigest, caller, ask, plan }: AdmittedRequest,
  { outcome, enhancement }: Progress,
  { response, usage }: SettledCost,
): NonNullable<UsageRecord['learning']> | null {
  if (response === null || outcome !== 'completed') return null
  const { queryType } = plan.reading
  const quality = inferQuality({
    finish: response.finishes.get(0) ?? null,
    text: response.text,
    hasContent: response.hasContent,
    refused: response.refused,
    isCapped: ask.maxOutputTokens !== null,
    wantsJson: ask.responseFormat.type !== 'text' && ask.choices === 1 && !response.hasToolCalls,
    queryType,
    ratio: logLengthRatio(usage),
    usualRatio: deps.learning.of(caller.accountId)?.usualRatioOf(queryType) ?? null,
  })
  const isFirst = response.candidate.model === plan.first.model
  const answered = { id: requestId, from: startedAt, to: deps.clock.now() }
  return {
    quality: Math.round(quality * 1e4) / 1e4,
    epoch: plan.learning.epoch,
    influenced: plan.learning.influenced && isFirst,
    choice_probability: isFirst ? plan.learning.probability : null,
    enhanced: enhancement?.changed === true,
    repeat_of: deps.prompts.answered(promptDigest, answered),
  }
}
