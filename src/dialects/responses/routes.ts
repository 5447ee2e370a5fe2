/**
 * `POST /v1/responses`: the Responses API without stored state. Every request has the complete conversation. Reasoning that a later
 * turn needs goes to the client, sealed.
 */
import { Elysia } from 'elysia'
import { type GatewayError, withParam } from '../../core/validation/errors.ts'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from '../../http/chat-handler.ts'
import { chatErrors, chatHeaders } from '../../http/chat-route-docs.ts'
import { errorResponse } from '../../http/error-response.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { responseBody } from './reply.ts'
import { readResponses, responsesSchema, spelling } from './request.ts'
import { responseEventShape, responseShape } from './schema.ts'
import { responsesStream } from './stream.ts'

type ResponsesRouteDeps = ChatRouteDeps & {
  readonly reasoningSeal: ReasoningSeal
  /** Unix seconds. */
  readonly unixTime: () => number
}

/** Returns the parser and the writers of this endpoint. */
function responsesEndpoint({
  reasoningSeal,
  unixTime,
}: Pick<ResponsesRouteDeps, 'reasoningSeal' | 'unixTime'>): ChatEndpoint {
  return {
    dialect: 'responses',
    parse(body, { headers, text, accountId }) {
      const read = readResponses(body, { headers, text }, { seal: reasoningSeal, accountId })
      const context = {
        ...read,
        seal: (item: Parameters<ReasoningSeal['seal']>[1]) => reasoningSeal.seal(accountId, item),
      }
      return {
        ask: read.ask,
        spelling,
        stream: requestId => responsesStream(context, requestId, unixTime),
        body: (answer, opening, receipt) => responseBody(context, answer, opening, receipt),
        keepsEvents: true,
      }
    },
    refusal: (error, requestId) => errorResponse(inBrackets(error), requestId),
  }
}

/** Returns the error with indices as OpenAI writes them: `input[3].type`. */
function inBrackets(error: GatewayError): GatewayError {
  const { param } = error
  return param === null || !/\.\d/.test(param) ? error : withParam(error, param.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]'))
}

/** Returns the routes of the Responses API. */
export function responses(deps: ResponsesRouteDeps) {
  const endpoint = responsesEndpoint(deps)
  return new Elysia({ name: 'responses' }).post('/v1/responses', ({ request }) => handleChat(deps, endpoint, request), {
    parse: 'none',
    ...withRouteDocs(policies.apiKey, {
      summary: 'Responses',
      description:
        'The Responses API, for existing client libraries: change only their base URL and the model. Responses are not stored: send `store: false` and the complete conversation in `input`. A stream ends with `response.completed` or `response.incomplete` only after a success.',
      body: responsesSchema,
      examples: responsesExamples,
      requestHeaders: chatHeaders,
      answer: responseShape,
      alsoAs: { 'text/event-stream': responseEventShape },
      answerHeaders: ['served', 'cost', 'standing', 'deprecation'],
      errors: [...chatErrors, 'previous_response_not_found', 'not_found'],
    }),
  })
}

/** Complete requests that work without a change. */
const responsesExamples = {
  'the prompt chooses the model': { model: 'gateway-ai', input: 'Say hello in one sentence.', store: false },
  'a stream with a system text': {
    model: 'anthropic/claude-sonnet-5-5',
    instructions: 'Be brief.',
    input: [{ role: 'user', content: 'Why is the sky blue?' }],
    stream: true,
    store: false,
  },
  'a tool': {
    model: 'gateway-ai',
    strategy: 'cost',
    input: 'How is the weather in Oslo?',
    tools: [
      { type: 'function', name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    ],
    store: false,
  },
}
