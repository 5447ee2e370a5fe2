/** Error texts for a context overflow of public servers and client libraries. */
import { describe, expect, test } from 'bun:test'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { recorded } from '../harness/answer-parts.ts'

const compatible = openai({ official: false })
const getKind = (provider: Provider, status: number, body: unknown) =>
  provider.readFailure(status, new Headers(), typeof body === 'string' ? body : JSON.stringify(body))

/** In OpenAI's format if the second item is a text. */
const servers: readonly (readonly [server: string, error: string | object, status?: number])[] = [
  ['OpenAI', { error: { code: 'context_length_exceeded', message: 'This model...' } }],
  [
    'OpenAI, configured limit',
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300007 tokens.',
  ],
  ['OpenAI, Responses', 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  ['Azure OpenAI', { error: { code: 'context_length_exceeded', type: 'invalid_request_error', status: 400 } }],
  [
    'vLLM',
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
  ],
  [
    'vLLM, flat',
    {
      object: 'error',
      message: 'The decoder prompt (length 8357) is longer than the maximum model length of 8192.',
      code: 400,
    },
  ],
  ['vLLM, no room for output', 'max_tokens must be at least 1, got -512.'],
  ['SGLang', "The input (9000 tokens) is longer than the model's context length (8192 tokens)."],
  ['SGLang, request', "Requested token count exceeds the model's maximum context length of 8192 tokens."],
  [
    'Text Generation Inference',
    {
      error: 'Input validation error: `inputs` must have less than 4096 tokens. Given: 5000',
      error_type: 'validation',
    },
    422,
  ],
  [
    'Text Generation Inference, total',
    {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 500 `max_new_tokens`',
    },
    422,
  ],
  [
    'Ollama',
    {
      error: {
        message: 'prompt too long; exceeded max context length by 100 tokens',
        type: 'api_error',
        param: null,
        code: null,
      },
    },
  ],
  ['Ollama, input length', { error: 'the input length exceeds the context length' }, 500],
  ['Ollama Cloud', { error: 'The prompt is too long: 450028, model maximum context length: 262144' }],
  [
    'llama.cpp',
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'exceed_context_size_error',
      },
    },
  ],
  [
    'LM Studio',
    {
      error:
        'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5228 >= n_ctx: 4096).',
    },
  ],
  [
    'Groq',
    {
      error: {
        message: 'Please reduce the length of the messages or completion.',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    },
  ],
  [
    'Cerebras',
    {
      message: 'Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192',
      type: 'invalid_request_error',
    },
  ],
  [
    'Mistral',
    {
      object: 'error',
      message:
        'Prompt contains 300000 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
      type: 'invalid_request_error',
      code: '3051',
    },
  ],
  [
    'DeepSeek',
    "This model's maximum context length is 65536 tokens. However, you requested 80000 tokens. Please reduce the length of the messages or completion.",
  ],
  ['Together', "The input (140000 tokens) is longer than the model's context length (131072 tokens)."],
  [
    'Fireworks',
    {
      error: {
        object: 'error',
        message: 'The prompt is too long: 140000, model maximum context length: 131072',
        type: 'invalid_request_error',
      },
    },
  ],
  [
    'OpenRouter',
    {
      error: {
        code: 400,
        message: "This endpoint's maximum context length is 128000 tokens. However, you requested about 200000 tokens",
      },
    },
  ],
  [
    'xAI',
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
  ],
  [
    'Perplexity',
    { error: { message: 'The total length of all messages is too long.', type: 'too_many_prompt_tokens', code: 400 } },
  ],
  [
    'Perplexity, by type',
    { error: { message: 'User input tokens exceeds 100000 tokens', type: 'too_many_prompt_tokens', code: 400 } },
  ],
  [
    'Cohere',
    {
      message:
        'too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt.',
    },
  ],
  [
    'Moonshot',
    {
      error: {
        message: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)',
        type: 'invalid_request_error',
      },
    },
  ],
  ['MiniMax', { error: { message: 'invalid params, context window exceeds limit (2013)', type: 'bad_request_error' } }],
  ['DashScope', { error: { code: 'invalid_parameter_error', message: 'Range of input length should be [1, 129024]' } }],
  ['Z.ai', { error: { code: '1261', message: 'Prompt exceeds max length' } }],
  [
    'GitHub Models',
    {
      error: {
        code: 'tokens_limit_reached',
        message: 'Request body too large for gpt-4o model. Max size: 8000 tokens.',
      },
    },
    413,
  ],
  [
    'GitHub Copilot',
    {
      error: {
        code: 'model_max_prompt_tokens_exceeded',
        message: 'prompt token count of 150000 exceeds the limit of 128000',
      },
    },
  ],
  ['Bedrock', { message: 'Input is too long for requested model.' }],
  ['Bedrock, counted', 'Too many input tokens. Max input tokens: 128000, request input token count: 140000'],
  [
    'watsonx',
    {
      errors: [
        {
          code: 'invalid_input_argument',
          message: 'the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model',
        },
      ],
    },
  ],
  [
    'Workers AI',
    {
      errors: [
        {
          message:
            'AiError: The estimated number of input and maximum output tokens (30000) exceeded this model context window limit (24000).',
          code: 5021,
        },
      ],
    },
  ],
  ['DwarfStar', 'Prompt has 300,000 tokens, but the configured context size is 131,072 tokens'],
]

describe('OpenAI-compatible adapter', () => {
  test.each(servers)('readFailure: reports a context overflow when %s says so', (_, error, status = 400) => {
    const body = typeof error === 'string' ? { error: { message: error, type: 'invalid_request_error' } } : error
    expect(getKind(compatible, status, body)).toMatchObject({
      kind: 'context_overflow',
      blame: 'caller',
      retryable: true,
    })
  })

  test('stream reader: reports a context overflow when the error comes after status 200', () => {
    const error = {
      error: { message: 'The total length of all messages is too long.', type: 'too_many_prompt_tokens' },
    }
    const parts = recorded(compatible.streamReader()).read({ name: '', data: JSON.stringify(error) })
    expect(parts.at(-1)).toMatchObject({ failure: { kind: 'context_overflow' } })
  })

  test.each([
    [429, 'Rate limit reached on tokens per min (TPM): Limit 30000, Requested 40000.', 'rate_limited'],
    [429, 'Too many tokens, please wait before trying again.', 'rate_limited'],
    [400, "Invalid 'temperature': decimal above maximum value.", 'request_refused'],
    [400, 'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.', 'request_refused'],
    [400, "Invalid 'user': string too long. Expected a string with maximum length 64.", 'request_refused'],
    [400, 'max_tokens must be at least 1, got 0.', 'request_refused'],
    [413, 'Request Entity Too Large', 'request_too_large'],
  ] as const)('readFailure: keeps status %p with %p as %p', (status, message, kind) => {
    expect(getKind(compatible, status, { error: { message } }).kind).toBe(kind)
  })
})

describe('Anthropic adapter', () => {
  test.each([
    [400, 'prompt is too long: 215000 tokens > 200000 maximum'],
    [
      400,
      'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    ],
    [413, 'Prompt is too long'],
  ])('readFailure: reports a context overflow when status %p says %p', (status, message) => {
    const type = status === 413 ? 'request_too_large' : 'invalid_request_error'
    expect(getKind(anthropic, status, { type: 'error', error: { type, message } }).kind).toBe('context_overflow')
  })

  test('readFailure: keeps a body over the size limit apart from the context window', () => {
    const error = { type: 'request_too_large', message: 'Request exceeds the maximum size' }
    expect(getKind(anthropic, 413, { type: 'error', error }).kind).toBe('request_too_large')
  })
})

describe('Gemini adapter', () => {
  test.each([
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    'The input token count exceeds the maximum number of tokens allowed 1048576.',
  ])('readFailure: reports a context overflow when the message is %p', message => {
    expect(getKind(google, 400, { error: { code: 400, status: 'INVALID_ARGUMENT', message } }).kind).toBe(
      'context_overflow',
    )
  })
})
