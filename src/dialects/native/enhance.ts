import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { strictObject, validate } from '../../core/validation/validate.ts'
import { createPublicEndpoint, maximumFreePrompt, type PublicEndpointDeps } from '../../http/public-endpoint.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { enhancementShape, type ShownEnhancement } from '../../http/schemas.ts'
import type { PromptAnalyzer } from '../../text/analysis/prompt-analysis.ts'
import { enhancePrompt } from '../../text/enhancement/enhance.ts'

/** Body of `POST /api/v1/chat/enhance`. */
const enhanceRequest = strictObject({ prompt: Type.String({ minLength: 1, maxLength: maximumFreePrompt }) })

const path = '/api/v1/chat/enhance'

/**
 * `POST /api/v1/chat/enhance`: a prompt as the model would receive it with `enhance_prompt`. Free, without a key, at
 * most 20 requests per minute from one IP address. Uses rules only and calls no model.
 */
export function enhancement(deps: PublicEndpointDeps & { readonly read: PromptAnalyzer }) {
  const { preflight, answer } = createPublicEndpoint(deps, 'enhance')
  return new Elysia({ name: 'enhancement' })
    .options(
      path,
      preflight,
      withRouteDocs(policies.free, { summary: 'CORS preflight of the enhancement', answer: null }),
    )
    .post(path, ({ request, server, set }) => answer({ request, server, set }, body => enhanced(deps.read, body)), {
      parse: 'none',
      ...withRouteDocs(policies.free, {
        summary: 'Enhance a prompt',
        description: 'Free, without a key: 20 per minute from one IP address. Returns a complete prompt unchanged.',
        body: enhanceRequest,
        examples: { 'short prompt': { prompt: 'write a function that sorts a list' } },
        answer: enhancementShape,
        errors: ['ip_rate_limited', 'requests_per_minute_exceeded'],
      }),
    })
}

function enhanced(read: PromptAnalyzer, body: unknown): ShownEnhancement {
  const { prompt } = validate(enhanceRequest, body)
  const scan = read([{ role: 'user', content: [{ type: 'text', text: prompt }], name: null }])
  const { changed, prompt: enhanced_prompt, queryType } = enhancePrompt(prompt, scan)
  return { changed, enhanced_prompt, query_type: queryType }
}
