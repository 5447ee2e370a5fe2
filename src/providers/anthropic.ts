/**
 * Anthropic's Messages API. Given up: thinking of earlier turns (a chat-completions caller holds no signatures for it),
 * names of participants, image detail, and results of tools that run on Anthropic's side.
 */
import { readResponse, streamReader } from './anthropic/response.ts'
import { readFailure } from './anthropic/failure.ts'
import { toRequest } from './anthropic/request.ts'
import { guardedReader, guardedWhole } from './response-guard.ts'
import type { Provider } from './provider.ts'

/** The adapter. */
export const anthropic: Provider = {
  toRequest,
  readResponse: body => guardedWhole(() => readResponse(body)),
  streamReader: () => guardedReader(streamReader()),
  readFailure,
}
