/**
 * Anthropic's Messages API. Given up: thinking of earlier turns (a chat-completions caller holds no signatures for it),
 * names of participants, image detail, and results of tools that run on Anthropic's side.
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
