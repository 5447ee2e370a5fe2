import { Elysia } from 'elysia'
import { idempotencyHeaders, onceErrors } from '../../http/idempotency.ts'
import { timeoutHeader } from '../../http/request-timeout.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { type EmbeddingsRouteDeps, handleEmbeddings } from './handler.ts'
import { embeddingsResponseSchema, embeddingsSchema } from './schema.ts'

/** `POST /v1/embeddings`: OpenAI's wire format, for every embedding model. */
export function embeddings(deps: EmbeddingsRouteDeps) {
  return new Elysia({ name: 'embeddings' }).post('/v1/embeddings', ({ request }) => handleEmbeddings(deps, request), {
    parse: 'none',
    ...withRouteDocs(policies.apiKey, {
      summary: 'Embeddings',
      description:
        "OpenAI's wire format for every embedding model. Only the named model serves, possibly from another host: vectors of two " +
        'models cannot be compared. Long lists are split into several upstream calls.',
      body: embeddingsSchema,
      examples: {
        'one text': { model: 'text-embedding-3-small', input: 'A cat sat on a mat.' },
        'several texts, as base64': {
          model: 'gemini-embedding-001',
          input: ['A cat sat on a mat.', 'Ein Hund lag vor der Tür.'],
          encoding_format: 'base64',
          dimensions: 768,
        },
        'token IDs of cl100k_base': { model: 'text-embedding-3-large', input: [[32, 8415, 7731], [15339]] },
      },
      requestHeaders: { ...timeoutHeader, ...idempotencyHeaders },
      answer: embeddingsResponseSchema,
      answerHeaders: ['served', 'cost', 'estimated', 'standing'],
      errors: [
        'context_length_exceeded',
        'unsupported_parameter',
        'content_blocked',
        'payment_required',
        'account_paused',
        'model_not_found',
        'requests_per_minute_exceeded',
        'concurrent_requests_exceeded',
        'daily_tokens_exceeded',
        'daily_cost_exceeded',
        'monthly_cost_exceeded',
        'upstream_rate_limited',
        'upstream_failed',
        'no_model_available',
        'upstream_timeout',
        ...onceErrors,
      ],
    }),
  })
}
