/**
 * OpenAI Chat Completions, spoken to OpenAI itself and to every server that calls itself compatible with it. Writing is
 * strict, reading is forgiving: whatever order, repetition or omission a server commits, the parts that come out keep the
 * promises of `ContentEvent`.
 */

import { readFailure } from './openai/failure.ts'
import { toRequest } from './openai/request.ts'
import { createReader } from './openai/response.ts'
import { needsResponses, openaiResponses } from './openai-responses.ts'
import type { Provider, ProviderAsk } from './provider.ts'
import { guardBody, guardStream } from './response-guard.ts'

/** The adapter. `official`: api.openai.com and its own extra fields; otherwise any compatible server of the configuration. */
export function openai({ official }: { readonly official: boolean }): Provider {
  const chatCompletions: Provider = {
    toRequest: (ask, access) => toRequest(ask, access, official),
    readResponse: body => guardBody(() => createReader(official).whole(body)),
    streamReader: choices => guardStream(createReader(official, choices)),
    readFailure,
  }
  if (!official) return chatCompletions
  const formFor = (ask: ProviderAsk) => (needsResponses(ask) ? openaiResponses : chatCompletions)
  return { ...chatCompletions, formFor, takesSource: ['responses'] }
}
