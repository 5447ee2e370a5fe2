import type { Ask } from '../../src/core/chat.ts'

/** An ask of one word that leaves everything else open, but for `fields`. */
export function askWith(fields: Partial<Ask> = {}): Ask {
  return {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }], name: null }],
    model: null,
    strategy: null,
    stream: null,
    maxOutputTokens: null,
    temperature: null,
    topP: null,
    presencePenalty: null,
    frequencyPenalty: null,
    seed: null,
    logitBias: null,
    logprobs: false,
    topLogprobs: null,
    stop: [],
    choices: 1,
    tools: [],
    toolChoice: null,
    parallelToolCalls: null,
    responseFormat: { type: 'text' },
    reasoningEffort: null,
    endUser: null,
    extras: {},
    fallback: true,
    web: 'off',
    enhance: false,
    testMode: false,
    metadata: null,
    bodyCharacters: 100,
    ...fields,
  }
}
