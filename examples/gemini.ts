/** A streamed chat with Google's official client. */
import { GoogleGenAI } from '@google/genai'

const httpOptions = { baseUrl: 'http://127.0.0.1:3000' }
const client = new GoogleGenAI({ apiKey: process.env.GATEWAY_KEY ?? '', httpOptions })

const stream = await client.models.generateContentStream({
  model: 'gateway-ai', // or a model ID such as 'anthropic/claude-sonnet-5-5'
  contents: 'Say hello in one sentence.',
})
for await (const { text, modelVersion, usageMetadata } of stream) {
  process.stdout.write(text ?? '')
  if (usageMetadata) process.stdout.write(`\n${modelVersion}: ${usageMetadata.totalTokenCount} tokens\n`)
}
