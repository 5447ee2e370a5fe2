/**
 * Anthropic's Messages API. A client's own Messages body goes on as it was written; every other request is translated, without names
 * of participants, image detail, and results of tools that run on Anthropic's side.
 */

import { readFailure } from './anthropic/failure.ts'
import { countRequest, toRequest } from './anthropic/request.ts'
import { readResponse, streamReader } from './anthropic/response.ts'
import { record, tokenCount } from './json.ts'
import type { Provider } from './provider.ts'
import { guardBody, guardStream } from './response-guard.ts'

/** The adapter. */
export const anthropic: Provider = {
  toRequest,
  readResponse: body => guardBody(() => readResponse(body)),
  streamReader: () => guardStream(streamReader()),
  readFailure,
  takesSource: ['messages'],
  count: { toRequest: countRequest, read: body => tokenCount(record(body).input_tokens) },
}
