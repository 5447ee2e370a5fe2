import { Type } from '@sinclair/typebox'
import { collectedBody } from '../../core/chat/response-collector.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import type { ChatEndpoint, ChatRouteDeps } from '../../http/chat-handler.ts'
import { chatRoute, modelHeaders } from '../../http/chat-route-docs.ts'
import { count, namedSchema, orNull, share, text } from '../../http/schemas.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { responseUsage } from '../responses/reply.ts'
import { responseUsageShape } from '../responses/routes.ts'
import { decisionsSchema, readDecisions } from './request.ts'

const optionValue = Type.Union([Type.String(), Type.Boolean()])
const probabilities = Type.Array(
  strictObject({
    value: Type.Union([optionValue, count]),
    label: Type.Optional(Type.String({ description: 'of a level, whose value is its position from 0' })),
    probability: share,
  }),
)
const answerShape = namedSchema('DecisionAnswer', {
  type: oneOf(['predicate', 'choice', 'score', 'refusal']),
  name: orNull(text('language', 'the name of the question')),
  probability: Type.Optional(share),
  choice: Type.Optional(optionValue),
  score: Type.Optional(Type.Number({ description: 'expected position among the levels, from 0' })),
  confidence: Type.Optional(share),
  probabilities: Type.Optional(probabilities),
})

const decisionShape = namedSchema('Decision', {
  answers: Type.Array(answerShape, { description: 'in the order of the questions' }),
  model: text('gateway/local'),
  usage: responseUsageShape,
})

function createEndpoint({ reasoningSeal }: { readonly reasoningSeal: ReasoningSeal }): ChatEndpoint {
  return {
    dialect: 'decisions',
    parse: (body, source) => ({
      request: readDecisions(body, source, { seal: reasoningSeal, accountId: source.accountId }),
      spelling: { messages: 'input' },
      whole: collectedBody(([choice], { model }, receipt) => ({
        answers: JSON.parse(choice?.text ?? ''),
        model,
        usage: responseUsage(receipt),
      })),
    }),
  }
}

/** `POST /v1/decisions`: OpenAI's wire format, answered by a provider or by the judges of this process. */
export function decisions(deps: ChatRouteDeps & Parameters<typeof createEndpoint>[0]) {
  return chatRoute(deps, '/v1/decisions', createEndpoint(deps), {
    summary: 'Decisions',
    description:
      "OpenAI's wire format for questions whose answers are probabilities. `gateway/local` answers in process and free: the " +
      'predicates harmful, prompt_injection, needs_current_data, contains_code and contains_material, the choices query_type ' +
      'and language, the score difficulty. Other questions need a model of a provider.',
    body: decisionsSchema,
    examples: {
      'answered by the gateway': {
        model: 'gateway/local',
        input: 'Wer ist gerade Bundeskanzler?',
        questions: [
          { type: 'predicate', name: 'needs_current_data', instructions: 'The answer changes over time.' },
          {
            type: 'choice',
            name: 'language',
            instructions: 'The language of the text.',
            choices: [{ value: 'de' }, { value: 'en' }],
          },
        ],
      },
    },
    requestHeaders: modelHeaders,
    answer: decisionShape,
    answerHeaders: ['served', 'cost', 'estimated', 'quotaStatus'],
  })
}
