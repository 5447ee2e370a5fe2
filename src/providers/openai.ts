/**
 * OpenAI Chat Completions, spoken to OpenAI itself and to every server that calls itself compatible with it. Writing is
 * strict, reading is forgiving: whatever order, repetition or omission a server commits, the parts that come out keep the
 * promises of `ContentEvent`.
 */

import { readFailure } from './openai/failure.ts'
import { toRequest } from './openai/request.ts'
import { createReader } from './openai/response.ts'
import type { Provider } from './provider.ts'
import { guardBody, guardStream } from './response-guard.ts'

/** The adapter. `official`: api.openai.com and its own extra fields; otherwise any compatible server of the configuration. */
export function openai({ official }: { readonly official: boolean }): Provider {
  return {
    toRequest: (ask, access) => toRequest(ask, access, official),
    readResponse: body => guardBody(() => createReader(official).whole(body)),
    streamReader: choices => guardStream(createReader(official, choices)),
    readFailure,
  }
}
