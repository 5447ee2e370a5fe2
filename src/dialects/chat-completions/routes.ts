import { Elysia } from 'elysia'
import type { ReasoningItem } from '../../core/chat/chat.ts'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from '../../http/chat-handler.ts'
import { chatErrors, chatHeaders } from '../../http/chat-route-docs.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { detailReader } from './reasoning-details.ts'
import { compatibleStream, completionBody } from './reply.ts'
import { compatibleSchema, readCompatible } from './request.ts'
import { completionEventShape, completionShape } from './schema.ts'

type CompatibleDeps = ChatRouteDeps & { readonly reasoningSeal: ReasoningSeal }

function endpointOf({ reasoningSeal }: Pick<CompatibleDeps, 'reasoningSeal'>): ChatEndpoint {
  return {
    dialect: 'chat_completions',
    parse(body, { headers, text, accountId }) {
      const parsed = readCompatible(body, headers, text.length, detailReader(reasoningSeal, accountId))
      const style = { ...parsed, seal: (item: ReasoningItem) => reasoningSeal.seal(accountId, item) }
      return {
        ask: parsed.ask,
        spelling: parsed.spelling,
        stream: requestId => compatibleStream(style, requestId),
        body: (answer, opening, receipt) => completionBody(answer, receipt, opening, style),
      }
    },
  }
}

/** `POST /v1/chat/completions`: the chat-completions wire format, for existing client libraries. */
export function compatible(deps: CompatibleDeps) {
  const endpoint = endpointOf(deps)
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
