import { Elysia } from 'elysia'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from '../../http/chat-handler.ts'
import { chatErrors, chatHeaders } from '../../http/chat-route-docs.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { type CountTokensDeps, createTokenCounter } from './count-tokens.ts'
import { messagesRefusal, messagesStatusOf } from './errors.ts'
import { writeMessagesHeaders } from './headers.ts'
import { type MessageStyle, messageBody } from './reply.ts'
import { countSchema, messagesSchema, readMessages } from './request.ts'
import { countShape, messageEventShape, messageShape, messagesErrorShape } from './schema.ts'
import { messagesStream } from './stream.ts'

type MessagesDeps = ChatRouteDeps &
  CountTokensDeps & {
    /** Epoch milliseconds. */
    readonly now: () => number
  }

function endpointOf({ reasoningSeal, now }: Pick<MessagesDeps, 'reasoningSeal' | 'now'>): ChatEndpoint {
  return {
    dialect: 'messages',
    parse(body, source) {
      const { ask, spelling, wantsThinking } = readMessages(body, source, reasoningSeal)
      const style: MessageStyle = {
        wantsThinking,
        seal: item => reasoningSeal.seal(source.accountId, item),
      }
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

/** `POST /v1/messages` and its token count: the Anthropic wire format, for existing client libraries. */
export function messages(deps: MessagesDeps) {
  const endpoint = endpointOf(deps)
  const count = createTokenCounter(deps)
  return new Elysia({ name: 'messages' })
    .post('/v1/messages', ({ request }) => handleChat(deps, endpoint, request), {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Messages',
        description:
          'The Anthropic Messages wire format, for existing client libraries: change only their base URL and the model. ' +
          'For an Anthropic model the body is forwarded unchanged, with unknown fields and beta headers; for other models it is translated. ' +
          'A stream ends with `message_stop` only after a success. Errors have the format of this API.',
        body: messagesSchema,
        examples,
        requestHeaders: chatHeaders,
        answer: messageShape,
        alsoAs: { 'text/event-stream': messageEventShape },
        answerHeaders: ['served', 'cost', 'standing', 'deprecation'],
        errors: chatErrors,
        refusals,
      }),
    })
    .post('/v1/messages/count_tokens', ({ request }) => count(request), {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Input tokens of a Messages request',
        description:
          'Free, with a rate limit per account. Anthropic counts for its own models. For other models, and after 2 s without a response, ' +
          'the count is an estimate and `x-gateway-estimated` is `true`.',
        body: countSchema,
        examples: {
          'a question': { model: 'claude-haiku-5-5', messages: [{ role: 'user', content: 'Why is the sky blue?' }] },
        },
        answer: countShape,
        errors: ['model_not_found', 'requests_per_minute_exceeded'],
        refusals,
      }),
    })
}

const refusals = { shape: messagesErrorShape, statusOf: messagesStatusOf }

/** Complete requests that work without a change. */
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
    messages: [{ role: 'user', content: 'How is the weather in Oslo?' }],
    tools: [{ name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
  },
}
