/** What the caller is told at the end of an answer: what it used, what it cost, how it was routed. */
import type { ResponseSummary } from '../core/chat/chat.ts'
import { fullName } from '../core/models/models.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import type { Progress } from './progress.ts'
import type { SettledCost } from './settled-cost.ts'

export function toResponseSummary(
  { requestId, plan }: AdmittedRequest,
  { attempts, enhancement, web }: Progress,
  { response, model, usage, estimated, billed, search, fetch }: SettledCost,
): ResponseSummary {
  return {
    requestId,
    model: model === null ? '' : fullName(model),
    provider: model?.provider ?? '',
    usage,
    estimated,
    ...reachedCap(response),
    cost: { model: billed - search - fetch, search, fetch, total: billed },
    routing: {
      mode: plan.mode,
      strategy: plan.strategy,
      queryType: plan.reading.queryType,
      complexity: plan.reading.complexity,
      learned: plan.learning.influenced,
      attempts,
    },
    enhancement,
    web: web ?? noWebUsed,
  }
}

/** The gateway's own cap, where an answer ended at it. */
function reachedCap(response: SettledCost['response']): Pick<ResponseSummary, 'outputCap'> {
  if (response === null || response.outputCap === null) return {}
  return [...response.finishes.values()].includes('length') ? { outputCap: response.outputCap } : {}
}

const noWebUsed = { searched: false, sources: [], leftOut: [] }
