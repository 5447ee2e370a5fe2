/** Adapter for `/decisions` at OpenAI and all compatible servers. The client's body passes as written. */
import { badAnswer } from '../failure.ts'
import { encoded, isRecord, record, records } from '../json.ts'
import { failureInAnswer, getError } from '../openai/failure.ts'
import { endpointAt } from '../openai/request.ts'
import { findUsage } from '../openai/usage.ts'
import type { AdapterRequest, Provider } from '../provider.ts'
import { inputFor } from './request.ts'

const answerTypes: ReadonlySet<unknown> = new Set(['predicate', 'choice', 'score', 'refusal'])

/** Returns the form of one request. `official` = api.openai.com. */
export function openaiDecisions(shared: Provider, { request }: AdapterRequest, official: boolean): Provider {
  const fields = request.source?.fields ?? {}
  const questions = records(fields.questions)
  return {
    ...shared,
    toRequest({ model }, access) {
      // Moderation masked secrets: the input is written from the messages that it has changed.
      const isMasked = request.source?.messages !== request.messages
      const input = isMasked ? inputFor(request.messages, model.parameters) : fields.input
      return {
        ...endpointAt(access, official, { path: 'decisions' }),
        body: encoded({ ...fields, model: model.id, input }),
        droppedParameters: [],
      }
    },
    readResponse(body, sink) {
      if (!isRecord(body)) return sink.fail(badAnswer('no JSON object'))
      const answers = records(body.answers)
      const error = getError(body)
      if (answers.length === 0 && error !== null) return sink.fail(failureInAnswer(error))
      const isWhole = answers.length === questions.length && answers.every(({ type }) => answerTypes.has(type))
      if (!isWhole) return sink.fail(badAnswer(`${answers.length} answers to ${questions.length} questions`))
      sink.identify(null, typeof body.model === 'string' ? body.model : null)
      sink.addText(0, JSON.stringify(answers))
      const usage = findUsage(record(body.usage))
      if (usage !== null) sink.reportUsage(usage)
      sink.finish(0, 'stop')
      sink.end()
    },
  }
}
