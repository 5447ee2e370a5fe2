/** A streamed chat with the official OpenAI client. */
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: 'http://127.0.0.1:3000/v1', apiKey: process.env.GATEWAY_KEY })

const stream = await client.chat.completions.create({
  model: 'gateway-ai', // or a model ID such as 'anthropic/claude-sonnet-5-5'
  messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  stream: true,
  stream_options: { include_usage: true },
})
for await (const { choices, model, usage } of stream) {
  process.stdout.write(choices[0]?.delta.content ?? '')
  if (usage) process.stdout.write(`\n${model}: ${usage.total_tokens} tokens\n`)
}
