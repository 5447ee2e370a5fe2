/**
 * Gemini's own wire, `generateContent` and `streamGenerateContent`: its compatible endpoint loses thought signatures,
 * the true finish reasons and the exact token counts.
 */
import { readResponse, streamReader } from './google/response.ts'
import { readFailure } from './google/failure.ts'
import { toRequest } from './google/request.ts'
import { guardedReader, guardedWhole } from './response-guard.ts'
import type { Provider } from './provider.ts'

/** The adapter, to the `v1beta` API. */
export const google: Provider = {
  toRequest,
  readResponse: body => guardedWhole(() => readResponse(body)),
  streamReader: choices => guardedReader(streamReader(choices)),
  readFailure,
}
