/** Questions about a text, answered by the gateway itself with probabilities. */
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: 'http://127.0.0.1:3000/v1', apiKey: process.env.GATEWAY_KEY })

const { answers, model, usage } = await client.decisions.create({
  model: 'gateway/local', // or a model that decides, such as 'openai/gpt-6-luna'
  input: 'Who won the match yesterday?',
  questions: [
    { type: 'predicate', name: 'needs_current_data', instructions: 'The answer changes over time.' },
    { type: 'choice', name: 'language', instructions: 'Its language.', choices: [{ value: 'en' }, { value: 'de' }] },
  ],
})
for (const answer of answers) process.stdout.write(`${JSON.stringify(answer)}\n`)
process.stdout.write(`${model}: ${usage.total_tokens} tokens\n`)
