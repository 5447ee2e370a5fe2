/** Summary that the client receives at the end of a response: usage, cost and routing. */
import type { ResponseSummary } from '../core/chat/chat-events.ts'
import { fullName } from '../core/models/models.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import type { Progress } from './progress.ts'
import { requestedModel } from './routing/named-model.ts'
import type { SettledCost } from './settled-cost.ts'

export function toResponseSummary(
  { requestId, plan }: AdmittedRequest,
  { attempts, enhancement, web }: Progress,
  { response, model, usage, estimated, billed, search, fetch, hedge, cacheSaved }: SettledCost,
): ResponseSummary {
  return {
    requestId,
    model: model === null ? '' : fullName(model),
    provider: model?.provider ?? '',
    usage,
    estimated,
    ...(response?.providerFields == null ? {} : { providerFields: response.providerFields }),
    ...reachedCap(response),
    cost: { model: billed - search - fetch - hedge, search, fetch, ...(hedge === 0 ? {} : { hedge }), total: billed },
    ...(cacheSaved === null ? {} : { cacheSaved }),
    routing: {
      mode: plan.mode,
      requestedModel: requestedModel(plan),
      strategy: plan.strategy,
      queryType: plan.reading.queryType,
      complexity: plan.reading.complexity ?? null,
      learned: plan.learning.influenced,
      attempts,
    },
    enhancement,
    web: web ?? noWebUsed,
  }
}

/** The gateway's own cap, if it truncated the output. */
function reachedCap(response: SettledCost['response']): Pick<ResponseSummary, 'outputCap'> {
  if (response === null || response.outputCap === null) return {}
  return [...response.finishes.values()].includes('length') ? { outputCap: response.outputCap } : {}
}

const noWebUsed = { searched: false, sources: [], leftOut: [] }
