/** Request bodies of the benchmark, about 1 KB each. */

/** Marks requests with a unique prompt. */
export const newMark = 'Entry '

const repeatedPrompt = 'Say in a few plain sentences what a gateway in front of several model providers is good for. '
  .repeat(9)
  .slice(0, 800)

/** Ordinary sentences that moderation allows in any order. */
const sentences = [
  'Explain how a water clock works',
  'Compare two ways to sort a long list',
  'Write a short poem about the sea in spring',
  'Describe the history of the bicycle',
  'Translate the menu of a small restaurant into French',
  'List the planets by their size',
  'Summarize what makes bread rise',
  'Suggest a plan for a weekend in the mountains',
  'Review the opening of a short story about a lighthouse',
  'Show how to compute the area of a triangle',
  'Name some flowers that grow well in the shade',
  'Say why leaves change their color in autumn',
  'Outline a lesson about the water cycle for children',
  'Give an example of a haiku about rain',
  'Describe how a violin makes its sound',
  'Improve the wording of a thank-you note',
]

let state = 7
let sent = 0

function nextSentence(): string {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  return `${sentences[(state >>> 8) % sentences.length]} in ${10 + ((state >>> 16) % 90)} words`
}

function newPrompt(): string {
  let text = `${newMark}${sent++}: `
  while (text.length < 780) text += `${nextSentence()}. `
  return text
}

/** The API forms that are measured, and their paths. */
export const benchDialects = {
  'chat completions': '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
} as const
export type BenchDialect = keyof typeof benchDialects

/** Returns the body of one chat request, identical unless `isNew`. */
export function chatBody(
  { isNew, stream }: { readonly isNew: boolean; readonly stream: boolean },
  dialect: BenchDialect = 'chat completions',
): string {
  const [system, prompt] = ['You answer briefly and to the point.', isNew ? newPrompt() : repeatedPrompt]
  const streaming = stream ? { stream: true, stream_mode: 'realtime' } : {}
  const user = { role: 'user', content: prompt }
  const model = 'openai/gpt-4.1'
  switch (dialect) {
    case 'chat completions':
      return JSON.stringify({
        model,
        max_tokens: 512,
        messages: [{ role: 'system', content: system }, user],
        ...streaming,
      })
    case 'responses':
      return JSON.stringify({ model, max_output_tokens: 512, instructions: system, input: [user], ...streaming })
    case 'messages':
      return JSON.stringify({ model, max_tokens: 512, system, messages: [user], ...streaming })
  }
}
