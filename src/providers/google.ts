/**
 * Gemini's own API, `generateContent` and `streamGenerateContent`: its compatible endpoint loses thought signatures,
 * exact finish reasons and exact token counts.
 */

import { googleEmbeddings } from './google/embeddings.ts'
import { readGoogleFailure } from './google/failure.ts'
import { toGoogleRequest } from './google/request.ts'
import { googleStreamReader, readGoogleResponse } from './google/response.ts'
import type { Provider } from './provider.ts'
import { guardBody, guardStream } from './response-guard.ts'

/** The adapter for the `v1beta` API. */
export const google: Provider = {
  toRequest: toGoogleRequest,
  readResponse: body => guardBody(() => readGoogleResponse(body)),
  streamReader: choices => guardStream(googleStreamReader(choices)),
  readFailure: readGoogleFailure,
  embeddings: googleEmbeddings,
  toolNames: { accepted: /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, longest: 64 },
}
