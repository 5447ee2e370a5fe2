/**
 * Anthropic's Messages API. Not supported: reasoning of earlier turns (chat-completions clients hold no signatures for
 * it), participant names, image detail, and results of tools that Anthropic runs itself.
 */

import { readFailure } from './anthropic/failure.ts'
import { toRequest } from './anthropic/request.ts'
import { readResponse, streamReader } from './anthropic/response.ts'
import type { Provider } from './provider.ts'
import { guardBody, guardStream } from './response-guard.ts'

/** The adapter. */
export const anthropic: Provider = {
  toRequest,
  readResponse: body => guardBody(() => readResponse(body)),
  streamReader: () => guardStream(streamReader()),
  readFailure,
}
