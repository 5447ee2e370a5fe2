import { Elysia } from 'elysia'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from '../../http/chat-handler.ts'
import { chatErrors, chatHeaders } from '../../http/chat-route-docs.ts'
import { policies } from '../../http/policies.ts'
import { withRouteDocs } from '../../http/route-docs.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { messagesRefusal } from './errors.ts'
import { writeMessagesHeaders } from './headers.ts'
import { messageBody, type ReplyStyle } from './reply.ts'
import { messagesSchema, readMessages } from './request.ts'
import { messageEventShape, messageShape } from './schema.ts'
import { messagesStream } from './stream.ts'

export type MessagesDeps = ChatRouteDeps & {
  readonly reasoningSeal: ReasoningSeal
  /** Epoch milliseconds. */
  readonly now: () => number
}

function endpointOf({ reasoningSeal, now }: MessagesDeps): ChatEndpoint {
  return {
    parse(body, source) {
      const { ask, spelling, wantsThinking } = readMessages(body, source, reasoningSeal)
      const style: ReplyStyle = { wantsThinking, seal: item => reasoningSeal.seal(source.accountId, item) }
      return {
        ask,
        spelling,
        stream: requestId => messagesStream(style, requestId),
        body: (answer, opening, receipt) => messageBody(answer, opening, receipt, style),
        keepsEvents: true,
      }
    },
    refusal: messagesRefusal,
    addHeaders: (headers, requestId, quota) => writeMessagesHeaders(headers, requestId, quota, now()),
  }
}

/** `POST /v1/messages`: the Anthropic wire format, for existing client libraries. */
export function messages(deps: MessagesDeps) {
  const endpoint = endpointOf(deps)
  return new Elysia({ name: 'messages' }).post('/v1/messages', ({ request }) => handleChat(deps, endpoint, request), {
    parse: 'none',
    ...withRouteDocs(policies.apiKey, {
      summary: 'Messages',
      description:
        'The Anthropic Messages wire format, for existing client libraries: change their base address and the model. ' +
        'For an Anthropic model the body goes on as it came, with unknown fields and beta headers; for any other it is translated. ' +
        'Streams end with `message_stop` after a success, and only then. Refusals have this form’s own envelope.',
      body: messagesSchema,
      examples,
      requestHeaders: chatHeaders,
      answer: messageShape,
      alsoAs: { 'text/event-stream': messageEventShape },
      answerHeaders: ['served', 'cost', 'standing', 'deprecation'],
      errors: chatErrors,
    }),
  })
}

/** Each of them a request that works as it stands. */
const examples = {
  'the prompt chooses the model': {
    model: 'gateway-ai',
    max_tokens: 1024,
    messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  },
  'a stream': {
    model: 'claude-haiku-5-5',
    max_tokens: 1024,
    messages: [{ role: 'user', content: 'Why is the sky blue?' }],
    stream: true,
  },
  'a tool': {
    model: 'gateway-ai',
    max_tokens: 1024,
    messages: [{ role: 'user', content: 'What is the weather in Oslo?' }],
    tools: [{ name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
  },
}
