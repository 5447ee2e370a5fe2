/** What tests of the pipeline's steps build requests of. */
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import type { Model } from '../../src/core/models/models.ts'
import type { ConfiguredProvider } from '../../src/providers/configured-provider.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Candidate } from '../../src/request/routing/candidate.ts'
import { UpstreamResponse } from '../../src/request/upstream-response.ts'
import type { PromptAnalysis } from '../../src/text/analysis/prompt-analysis.ts'

/** The analysis of an everyday English prompt. */
export const analysis: PromptAnalysis = {
  queryType: 'other',
  queryTypeScores: {
    code: 0,
    code_algorithm: 0,
    debugging: 0,
    analysis: 0,
    writing: 0,
    math: 0,
    creative: 0,
    planning: 0,
    comparison: 0,
    other: 1,
  },
  complexity: 0.3,
  strongGain: 0.3,
  needsCurrent: false,
  needsCurrentScore: 0,
  urls: [],
  language: 'en',
  turn: 'own',
  words: 5,
}

/** A configured provider that no test calls. */
export function getProvider(id: string): ConfiguredProvider {
  return {
    id,
    provider: openai({ official: false }),
    access: { baseUrl: 'http://127.0.0.1:1', apiKey: null },
    simulated: true,
  }
}

/** A model as the only candidate of a request that names it. */
export function getCandidate(model: Model): Candidate {
  return {
    model,
    endpoint: getProvider(model.provider),
    score: 1,
    place: 'requested',
    health: 'healthy',
    reason: () => 'named',
    parts: () => null,
  }
}

/** The response of an attempt that began at 0. */
export function openResponse(
  request: ChatRequest,
  call: Pick<UpstreamResponse, 'candidate'> & Partial<Pick<UpstreamResponse, 'startedAtMs'>>,
): UpstreamResponse {
  return new UpstreamResponse(request, { keyAccount: null, outputCap: null, startedAt: 0, startedAtMs: 0, ...call })
}
