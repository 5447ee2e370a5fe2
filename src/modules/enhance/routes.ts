import type { Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Reader } from '../../core/classify.ts'
import { enhance } from '../../core/enhance.ts'
import { checker } from '../../core/validate.ts'
import { createFreeEndpoint, type FreeDeps } from '../../http/free.ts'
import { policies } from '../../http/policies.ts'
import { type enhancementResult, enhanceRequest } from './shapes.ts'

const path = '/api/v1/chat/enhance'
const checkRequest = checker(enhanceRequest)

/**
 * `POST /api/v1/chat/enhance`: a prompt as the model would get it with `enhance_prompt`. Free, without a key, 20 a minute
 * from one address; rules alone, so nobody is asked.
 */
export function enhancement(deps: FreeDeps & { readonly read: Reader }) {
  const { preflight, answer } = createFreeEndpoint(deps)
  return new Elysia({ name: 'enhancement' })
    .options(path, preflight, {
      detail: { summary: 'Whether a web page may have a prompt enhanced', ...policies.open },
    })
    .post(path, ({ request, server, set }) => answer({ request, server, set }, body => enhanced(deps.read, body)), {
      parse: 'none',
      detail: { summary: 'A prompt with what it lacks', ...policies.open },
    })
}

function enhanced(read: Reader, body: unknown): Static<typeof enhancementResult> {
  const { prompt } = checkRequest(body)
  const reading = read([{ role: 'user', content: [{ type: 'text', text: prompt }], name: null }])
  const { changed, prompt: enhanced_prompt } = enhance(prompt, reading)
  return { changed, enhanced_prompt, query_type: reading.queryType }
}
