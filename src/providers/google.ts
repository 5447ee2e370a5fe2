/**
 * Gemini's own API, `generateContent` and `streamGenerateContent`: its compatible endpoint loses thought signatures,
 * exact finish reasons and exact token counts.
 */

import { readFailure } from './google/failure.ts'
import { toRequest } from './google/request.ts'
import { readResponse, streamReader } from './google/response.ts'
import type { Provider } from './provider.ts'
import { guardBody, guardStream } from './response-guard.ts'

/** The adapter for the `v1beta` API. */
export const google: Provider = {
  toRequest,
  readResponse: body => guardBody(() => readResponse(body)),
  streamReader: choices => guardStream(streamReader(choices)),
  readFailure,
}
