/** What tests of the pipeline's steps build requests of. */
import type { Model } from '../../src/core/models/models.ts'
import type { ConfiguredProvider } from '../../src/providers/configured-provider.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Candidate } from '../../src/request/routing/candidate.ts'

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
