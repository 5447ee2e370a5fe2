import { collectedBody } from '../../core/chat/response-collector.ts'
import type { ChatEndpoint, ChatRouteDeps } from '../../http/chat-handler.ts'
import { chatRoute } from '../../http/chat-route-docs.ts'
import { DeltaWriter, nativeBody } from './reply.ts'
import { nativeSchema, readNative } from './request.ts'
import { chatEventShape, chatReplyShape } from './schema.ts'

const endpoint: ChatEndpoint = {
  dialect: 'native',
  parse: (body, { headers, text }) => ({
    request: readNative(body, headers, text.length),
    spelling: {},
    stream: requestId => new DeltaWriter(requestId),
    whole: collectedBody((answer, _opening, receipt) => nativeBody(answer, receipt)),
  }),
}

/** `POST /api/v1/chat`: the gateway's own chat endpoint. */
export function chat(deps: ChatRouteDeps) {
  return chatRoute(deps, '/api/v1/chat', endpoint, {
    summary: 'Chat',
    description:
      'Returns one JSON body, or with `stream` events: `delta` events, then exactly one `done` or one `error`. If moderation ended the output, `filtered` precedes `done`.',
    body: nativeSchema,
    examples: chatExamples,
    answer: chatReplyShape,
    alsoAs: { 'text/event-stream': chatEventShape },
  })
}

/** Complete requests that work without a change. */
const chatExamples = {
  'a prompt': { prompt: 'Why is the sky blue?', max_output_tokens: 200 },
  'a conversation, for quality': {
    strategy: 'quality',
    messages: [
      { role: 'system', content: 'Answer in one sentence.' },
      { role: 'user', content: 'What does a B-tree do?' },
      { role: 'assistant', content: 'It keeps sorted data in pages.' },
      { role: 'user', content: 'And when a page is full?' },
    ],
  },
  'a stream': { prompt: 'Tell a short story about a lighthouse.', stream: true, stream_mode: 'realtime' },
  'a named model, and no other': { prompt: 'Say hello.', model: 'openai/gpt-5.5', fallback: false },
  'a tool': {
    prompt: 'How is the weather in Oslo?',
    tools: [
      {
        type: 'function',
        function: {
          name: 'weather',
          description: 'The weather of a city',
          parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      },
    ],
    tool_choice: 'auto',
    metadata: { customer: '42' },
  },
  'an object of a given form': {
    prompt: 'Name a city and its country.',
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'place',
        strict: true,
        schema: {
          type: 'object',
          properties: { city: { type: 'string' }, country: { type: 'string' } },
          required: ['city', 'country'],
          additionalProperties: false,
        },
      },
    },
  },
  'an image': {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Describe this picture.' },
          {
            type: 'image',
            url: 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
          },
        ],
      },
    ],
  },
}
