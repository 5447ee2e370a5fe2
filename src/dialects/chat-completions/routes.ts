import { Elysia } from 'elysia'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from '../../http/chat-handler.ts'
import { chatErrors, chatHeaders } from '../../http/chat-route-docs.ts'
import { policies } from '../../http/policies.ts'
import { withRouteDocs } from '../../http/route-docs.ts'
import { compatibleStream, completionBody } from './reply.ts'
import { compatibleSchema, readCompatible } from './request.ts'
import { completionEventShape, completionShape } from './schema.ts'

const endpoint: ChatEndpoint = {
  dialect: 'chat_completions',
  parse(body, { headers, text }) {
    const parsed = readCompatible(body, headers, text.length)
    return {
      ask: parsed.ask,
      spelling: parsed.spelling,
      stream: requestId => compatibleStream(parsed, requestId),
      body: (answer, opening, receipt) => completionBody(answer, receipt, opening, parsed),
    }
  },
}

/** `POST /v1/chat/completions`: the chat-completions wire format, for existing client libraries. */
export function compatible(deps: ChatRouteDeps) {
  return new Elysia({ name: 'compatible' }).post(
    '/v1/chat/completions',
    ({ request }) => handleChat(deps, endpoint, request),
    {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Chat completions',
        description:
          'The chat-completions wire format, for existing client libraries: change only their base URL and the model. ' +
          'A stream ends with `data: [DONE]` only after a success.',
        body: compatibleSchema,
        examples: completionExamples,
        requestHeaders: chatHeaders,
        answer: completionShape,
        alsoAs: { 'text/event-stream': completionEventShape },
        streamEnd: '[DONE]',
        answerHeaders: ['served', 'cost', 'standing', 'deprecation'],
        errors: chatErrors,
      }),
    },
  )
}

/** Complete requests that work without a change. */
const completionExamples = {
  'the prompt chooses the model': {
    model: 'gateway-ai',
    messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  },
  'a stream, with its usage': {
    model: 'anthropic/claude-sonnet-5-5',
    messages: [{ role: 'user', content: 'Why is the sky blue?' }],
    stream: true,
    stream_options: { include_usage: true },
  },
  'a tool': {
    model: 'gateway-ai',
    strategy: 'cost',
    messages: [{ role: 'user', content: 'How is the weather in Oslo?' }],
    tools: [
      {
        type: 'function',
        function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
      },
    ],
  },
}
