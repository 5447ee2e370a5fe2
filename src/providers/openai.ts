/**
 * OpenAI Chat Completions, for OpenAI itself and all compatible servers. Strict in requests and lenient in responses:
 * whatever servers reorder, repeat or omit, what they read satisfies the guarantees of `ResponseSink`.
 */

import type { Model } from '../core/models/models.ts'
import { isPricedTier } from '../core/models/pricing.ts'
import { isClaude } from './marked-prompt.ts'
import { openaiEmbeddings } from './openai/embeddings.ts'
import { readFailure } from './openai/failure.ts'
import { sendsTier, toModelList, toRequest } from './openai/request.ts'
import { ResponseReader } from './openai/response.ts'
import { openaiDecisions } from './openai-responses/decisions.ts'
import { needsResponses, openaiResponses } from './openai-responses.ts'
import type { AdapterRequest, Provider } from './provider.ts'

/**
 * Creates the adapter. `official` = api.openai.com with its own extra fields; otherwise a compatible server of the
 * configuration.
 */
export function openai({ official }: { readonly official: boolean }): Provider {
  const chatCompletions: Provider = {
    toRequest: (request, access) => toRequest(request, access, official),
    readResponse: (body, sink) => new ResponseReader(official).whole(body, sink),
    streamReader: choices => new ResponseReader(official, choices),
    readFailure,
    listModels: access => toModelList(access, official),
    embeddings: openaiEmbeddings(official),
    decisions: request => openaiDecisions(chatCompletions, request, official),
  }
  if (!official)
    return { ...chatCompletions, cachesMarkedInput: isClaude, sendsTier: (tier, model) => sendsTier(tier, model) }
  const formFor = (request: AdapterRequest) => (needsResponses(request) ? openaiResponses : chatCompletions)
  const sendsPriced = (tier: string, { pricing }: Model) => isPricedTier(pricing, tier)
  return { ...chatCompletions, formFor, takesSource: () => ['responses'], sendsTier: sendsPriced }
}
