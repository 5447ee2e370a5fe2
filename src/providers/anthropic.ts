/**
 * Anthropic's Messages API. A Messages body is forwarded as the client wrote it. Other requests are translated, without participant
 * names, image detail and results of tools that run at Anthropic.
 */

import { readAnthropicFailure } from './anthropic/failure.ts'
import { countRequest, toAnthropicList, toAnthropicRequest } from './anthropic/request.ts'
import { MessageReader } from './anthropic/response.ts'
import { record, tokenCount } from './json.ts'
import type { Provider } from './provider.ts'

/** The adapter. */
export const anthropic: Provider = {
  toRequest: toAnthropicRequest,
  readResponse: (body, sink) => new MessageReader().whole(body, sink),
  streamReader: () => new MessageReader(),
  readFailure: readAnthropicFailure,
  toolNames: { accepted: /^[A-Za-z0-9_-]{1,128}$/, longest: 128 },
  takesSource: () => ['messages'],
  cachesMarkedInput: () => true,
  listModels: toAnthropicList,
  count: { toRequest: countRequest, read: body => tokenCount(record(body).input_tokens) },
}
