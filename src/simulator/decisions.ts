/** Wire format of OpenAI `/decisions`. Equal questions about equal inputs have equal answers. */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { openaiFormat, openaiKeyMissing } from './openai.ts'
import { isWireObject, mistake, objectsIn, readAs, type SimulatedFormat, type WireObject } from './wire-format.ts'

/** Returns the format of one request. */
export function decisionsFormat(): SimulatedFormat {
  let questions: readonly WireObject[] = []
  return {
    ...openaiFormat,
    read({ headers }, body) {
      questions = objectsIn(body.questions)
      const input = typeof body.input === 'string' ? body.input : JSON.stringify(body.input ?? '')
      const isComplete = input !== '""' && questions.length > 0
      const problem = isComplete ? null : mistake("Missing required parameter: 'questions'.", 'questions')
      const refusal = headers.authorization?.match(/^Bearer \S/) ? problem : openaiKeyMissing
      if (refusal !== null) return openaiFormat.failure(refusal, () => '')
      return readAs({
        model: String(body.model),
        stream: false,
        userTexts: [input],
        inputTokens: estimateTokens(input) + estimateTokens(JSON.stringify(questions)),
        outputCap: 1,
      })
    },
    completion({ question: { userTexts }, served, usage }) {
      const answers = questions.map(question => answer(question, userTexts.join()))
      const counts = {
        input_tokens: usage?.input ?? 0,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 0,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: usage?.input ?? 0,
      }
      return { answers, model: served, ...(usage === null ? {} : { usage: counts }) }
    },
  }
}

function answer(question: WireObject, input: string) {
  const { type, name: given } = question
  const name = given ?? null
  const probability = (Bun.hash.xxHash32(JSON.stringify(question) + input) % 1_000) / 1_000
  if (type === 'predicate') return { type, name, probability }
  const options = objectsIn(type === 'choice' ? question.choices : question.levels).filter(isWireObject)
  const share = (index: number) => (index === 0 ? probability : (1 - probability) / (options.length - 1))
  const confidence = Math.max(...options.keys().map(share))
  if (type === 'choice') {
    const probabilities = options.map(({ value }, index) => ({ value, probability: share(index) }))
    return { type, name, choice: options[share(0) === confidence ? 0 : 1]?.value, confidence, probabilities }
  }
  const probabilities = options.map(({ label }, value) => ({ label, value, probability: share(value) }))
  const score = probabilities.reduce((sum, level) => sum + level.value * level.probability, 0)
  return { type, name, score, confidence, probabilities }
}
