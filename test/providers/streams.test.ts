/**
 * Streams as documented by many servers, in the project's wording (`test/fixtures`), read whole, split in two at every
 * byte, and truncated at every byte: the result does not depend on the split, and no truncated stream reports an end.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Provider } from '../../src/providers/provider.ts'
import type { AnswerPart } from '../harness/answer-parts.ts'
import { everyByte, readRecording } from './recordings.ts'

type Said = {
  readonly text?: string
  readonly reasoning?: string
  readonly refusal?: string
  /** Name and arguments, with the ID if the server sends one. */
  readonly calls?: readonly (readonly [name: string, given: string, id?: string])[]
  readonly finish?: string
  /** Input, output, cached input, reasoning tokens. */
  readonly usage?: readonly (number | null)[]
  readonly failure?: string
  readonly model?: string
  /** Text of a second choice. */
  readonly other?: string
}

type Folder = 'openai' | 'compatible' | 'anthropic' | 'google'

/** Each folder's reader, and the text in its streams after which an end is credible. */
const readers: Readonly<Record<Folder, { readonly provider: Provider; readonly ending: string }>> = {
  openai: { provider: openai({ official: true }), ending: '"finish_reason":"' },
  compatible: { provider: openai({ official: false }), ending: '"finish_reason":"' },
  anthropic: { provider: anthropic, ending: 'message_stop' },
  google: { provider: google, ending: '"finishReason"' },
}

/** `ending` if the stream differs from its folder. */
type Case = readonly [name: string, file: `${Folder}/${string}`, said: Said, ending?: string]

const cases: readonly Case[] = [
  [
    'OpenAI pads every frame, and tells the usage behind the choices',
    'openai/padded',
    { text: 'Grüß Gott 👋🏽', finish: 'stop', usage: [8, 5, 4, 2], model: 'm-1' },
  ],
  ['OpenAI refuses in its own field', 'openai/refusal', { refusal: 'I can’t help.', finish: 'stop' }],
  [
    'two choices interleave and end apart',
    'openai/two-choices',
    { text: 'Aa', other: 'Bb', finish: 'stop' },
    '"length"',
  ],
  [
    'the content filter ends an answer in its middle',
    'openai/content-filter',
    { text: 'Half of', finish: 'content_filter' },
  ],
  [
    'a legacy function call comes in pieces',
    'openai/legacy-function',
    { calls: [['look', '{"at":"sea"}']], finish: 'tool_calls' },
  ],
  ['annotations, audio and empty deltas say nothing', 'openai/empty-deltas', { text: 'Yes.', finish: 'stop' }],
  [
    'an error object inside the 200 is a failure, whatever follows it',
    'openai/error-object',
    { text: 'So', failure: 'generation_failed' },
  ],
  ['a moderation frame and a frame of another object say nothing', 'openai/moderation', { text: 'ab', finish: 'stop' }],
  [
    'Azure begins with its filter results, without a choice, an id or a model',
    'compatible/azure-filter-results',
    { text: 'Hi', finish: 'stop', usage: [3, 1, 0, 0], model: 'm-1' },
  ],
  [
    'Azure’s asynchronous filter annotates in frames of their own, before and behind the finish',
    'compatible/azure-asynchronous-filter',
    { text: 'Hi', finish: 'stop', model: 'm-1' },
  ],
  [
    'vLLM counts on every frame and fills its lists with nothing',
    'compatible/vllm-counts',
    { text: 'Yes', reasoning: 'Hmm.', finish: 'stop', usage: [5, 4, 0, 0] },
  ],
  [
    'vLLM ends with a usage frame whose choices are null',
    'compatible/vllm-null-choices',
    { text: 'a', finish: 'stop', usage: [2, 1, 0, 0] },
  ],
  [
    'vLLM tells a fault of its own with a flat error and a number',
    'compatible/vllm-fault',
    { text: 'a', failure: 'unavailable' },
  ],
  [
    'SGLang repeats the role and thinks in the text itself',
    'compatible/sglang-think',
    { reasoning: '\nA or B?\n', text: 'B <think>', finish: 'stop' },
  ],
  [
    'llama.cpp puts its timings on the last frame, and the finish reason first',
    'compatible/llama-cpp',
    { reasoning: 'so', text: 'Hi', finish: 'stop', usage: [10, 3, 0, 0], model: 'g.gguf' },
  ],
  ['llama.cpp names errors under a field of their own instead of `data`', 'compatible/llama-cpp-error', { text: 'a' }],
  [
    'Ollama says its reasoning beside empty content and ends with usage and no choices',
    'compatible/ollama-reasoning',
    { reasoning: 'Let me', text: 'Done', finish: 'stop', usage: [12, 9, 0, 0] },
  ],
  [
    'Ollama gives its calls whole, each in a frame, under their own indexes',
    'compatible/ollama-calls',
    {
      calls: [
        ['add', '{"a":1}', 'call_1'],
        ['add', '{"a":1}', 'call_2'],
      ],
      finish: 'tool_calls',
    },
  ],
  [
    'LM Studio gives an empty name on every further piece',
    'compatible/lm-studio-call',
    { calls: [['find', '{"q":"x"}', '310']], finish: 'tool_calls' },
  ],
  [
    'LM Studio tells an error in an event of that name',
    'compatible/lm-studio-error',
    { text: 'a', failure: 'generation_failed' },
  ],
  [
    'TGI ends by `eos_token`, counts in the last frame, and puts a space nowhere',
    'compatible/tgi',
    { text: 'Hey', finish: 'stop', usage: [4, 2, 0, 0] },
  ],
  [
    'TGI gives a call in the place of a list of them',
    'compatible/tgi-call',
    { calls: [['look', '{"at":"sea"}']], finish: 'tool_calls' },
  ],
  [
    'TGI breaks off with an event of that name and a plain text',
    'compatible/tgi-error',
    { text: 'a', failure: 'generation_failed' },
  ],
  [
    'Groq counts in a field of its own, in the first frame and the last',
    'compatible/groq',
    { reasoning: 'Hm', text: 'Hi', finish: 'stop', usage: [6, 4, 0, 2] },
  ],
  [
    'Together ends by `eos`, tells its text twice, and counts with the finish',
    'compatible/together',
    { text: 'Hi!', finish: 'stop', usage: [3, 2, 0, 0] },
  ],
  [
    'Fireworks tells logprobs with its text and counts with the finish',
    'compatible/fireworks',
    { text: 'Hi', finish: 'stop', usage: [3, 1, 2, 0] },
  ],
  [
    'DeepSeek has both kinds of text in each frame, one of them null, and its cache in fields of its own',
    'compatible/deepseek',
    { reasoning: 'One two', text: 'Three', finish: 'stop', usage: [20, 6, 16, 4] },
  ],
  [
    'DeepSeek comments while it waits, and may run out of resources',
    'compatible/deepseek-resources',
    { text: 'a', failure: 'generation_failed' },
  ],
  [
    'Mistral thinks in a list of parts, and goes on in text or in a list of it',
    'compatible/mistral-thinking',
    { reasoning: 'Hm, ok', text: 'Bonjour', finish: 'stop', usage: [7, 5, 3, 0] },
  ],
  [
    'Mistral gives all calls whole in the frame that ends it, without types',
    'compatible/mistral-calls',
    {
      calls: [
        ['add', '{"a": 1}', 'D681PevKs'],
        ['add', '{"a":2}', 'AbC123def'],
      ],
      finish: 'tool_calls',
      usage: [9, 8, 0, 0],
    },
  ],
  [
    'Databricks thinks in a summary within a list of parts',
    'compatible/databricks',
    { reasoning: 'Hm, ok', text: 'Yes.', finish: 'stop', usage: [5, 4, 0, 0] },
  ],
  [
    'xAI counts its reasoning beside the completion, in every frame',
    'compatible/xai',
    { reasoning: 'Thinking', text: 'Yes', finish: 'stop', usage: [10, 4, 0, 3] },
  ],
  [
    'Perplexity repeats the whole message beside each piece, with citations, and has no terminator',
    'compatible/perplexity',
    { text: 'The sea[1]', finish: 'stop', usage: [4, 3, 0, 0] },
  ],
  [
    'Perplexity tells the steps of its search in objects of their own',
    'compatible/perplexity-search',
    { text: 'Sea', finish: 'stop', usage: [4, 1, 0, 0] },
  ],
  [
    'OpenRouter comments while it waits and tells its reasoning twice',
    'compatible/openrouter',
    { reasoning: 'Hm', text: 'Hi', finish: 'stop', usage: [5, 2, 0, 0] },
  ],
  [
    'OpenRouter breaks off with an error and a finish reason beside it',
    'compatible/openrouter-error',
    { text: 'a', failure: 'generation_failed' },
  ],
  [
    'OpenRouter puts an error into the choice',
    'compatible/openrouter-choice-error',
    { text: 'a', failure: 'rate_limited' },
  ],
  ['Z.ai names the full window in a word of Anthropic’s', 'compatible/zai-window', { text: 'Hi', finish: 'length' }],
  [
    'a relay before Anthropic hands its refusal through',
    'compatible/refusal',
    { text: 'Hi', finish: 'content_filter' },
  ],
  [
    'Cerebras tells its times with the usage in the frame that ends it',
    'compatible/cerebras',
    { reasoning: 'Hm', text: 'Hi', finish: 'stop', usage: [2, 3, 1, 0] },
  ],
  ['Moonshot counts inside the choice', 'compatible/moonshot', { text: 'Hi', finish: 'stop', usage: [3, 1, 2, 0] }],
  [
    'MiniMax repeats the whole answer at the end',
    'compatible/minimax',
    { text: 'Hi you', finish: 'stop', usage: [7, 2, 0, 0] },
  ],
  [
    'Gemini’s compatible endpoint leaves the call’s index out, and sends a signature with it',
    'compatible/gemini-calls',
    {
      calls: [
        ['add', '{"a":1}', 'f1'],
        ['add', '{"a":2}'],
      ],
      finish: 'tool_calls',
      usage: [5, 14, 0, 10],
    },
  ],
  [
    'a relay gives null for what it has not: arguments, names, calls',
    'compatible/nulls',
    { calls: [['go', '{}', 'c1']], finish: 'tool_calls' },
  ],
  [
    'text between two calls keeps its place, and what calls say looks like frames of text',
    'compatible/text-and-calls',
    {
      text: '"content":""}}],"x":"\\\\"\u2028',
      calls: [
        ['go', '{"content":"a"}', 'a'],
        ['go', '{"content":"b"}', 'b'],
      ],
      finish: 'tool_calls',
    },
  ],
  [
    'frames that differ by the finish alone, by white space, or in nothing at all',
    'compatible/alike-frames',
    { text: 'hahahahahaha', finish: 'stop' },
    '"stop"',
  ],
  [
    'a character whose halves are escaped in two frames',
    'compatible/escaped-halves',
    { text: 'a😀\ufffdb', finish: 'stop' },
  ],
  [
    'Anthropic pings, thinks with a signature, hides some of it, and speaks',
    'anthropic/thinking',
    { reasoning: 'Let me', text: 'Hi there', finish: 'stop', usage: [9, 12, 0, 5] },
  ],
  [
    'Anthropic searches on its own side, cites, and is counted for all of it',
    'anthropic/web-search',
    { text: 'I look. It is.', finish: 'stop', usage: [950, 30, 40, 0] },
  ],
  [
    'Anthropic calls two tools, the first piece of each being empty, one without any',
    'anthropic/tools',
    {
      calls: [
        ['add', '{"a": 1}', 'toolu_1'],
        ['now', '{}', 'toolu_2'],
      ],
      finish: 'tool_calls',
      usage: [9, 7, 0, 0],
    },
  ],
  ['Anthropic is overloaded in the middle', 'anthropic/overloaded', { text: 'Wel', failure: 'overloaded' }],
  [
    'Anthropic tells what it cleared of the context',
    'anthropic/context-management',
    { text: 'Ok', finish: 'stop', usage: [9, 2, 0, 0] },
  ],
  ['Anthropic pauses a turn', 'anthropic/pause-turn', { text: 'Wait', finish: 'stop', usage: [9, 7, 0, 0] }],
  ['Anthropic’s window is full', 'anthropic/full-window', { text: 'Long', finish: 'length', usage: [9, 7, 0, 0] }],
  [
    'Anthropic refuses in the middle',
    'anthropic/refusal',
    { text: 'Take', finish: 'content_filter', usage: [9, 3, 0, 0] },
  ],
  [
    'Anthropic counts the output twice, the second time truly',
    'anthropic/counted-twice',
    { text: 'Ok then', finish: 'stop', usage: [9, 4, 0, 0] },
  ],
  [
    'Anthropic as Bedrock and relays write it: no event names, CRLF, a terminator of others',
    'anthropic/relayed',
    { text: 'Héllo', finish: 'stop', usage: [9, 7, 0, 0] },
  ],
  [
    'Gemini thinks in parts, signs them, and counts them apart',
    'google/thoughts',
    { reasoning: 'Hm', text: 'Yes', finish: 'stop', usage: [4, 7, 0, 5], model: 'gemini-a' },
  ],
  [
    'Gemini calls in parallel in one frame, one call without arguments',
    'google/parallel-calls',
    {
      calls: [
        ['add', '{"a":1}'],
        ['now', '{}'],
        ['add', '{}', 'own'],
      ],
      finish: 'tool_calls',
      usage: [4, 9, 0, 0],
    },
  ],
  [
    'Gemini stops for safety with an empty candidate',
    'google/safety',
    { text: 'Take', finish: 'content_filter', usage: [4, 1, 0, 0] },
  ],
  [
    'Gemini blocks the prompt',
    'google/blocked-prompt',
    { finish: 'content_filter', usage: [4, 0, 0, 0] },
    'blockReason',
  ],
  [
    'Gemini counts what its tools put into the prompt',
    'google/tool-prompt',
    { text: 'So.', finish: 'stop', usage: [24, 2, 3, 0] },
  ],
  ['Gemini fails to write a call', 'google/malformed-call', { usage: [4, 0, 0, 0], failure: 'generation_failed' }],
  ['Gemini stops with nothing said', 'google/nothing', { finish: 'stop', usage: [4, 0, 0, 0] }],
  [
    'Gemini runs code and draws: neither is text',
    'google/code-and-image',
    { text: 'Look: 2', finish: 'stop', usage: [4, 8, 0, 0] },
  ],
  ['Gemini breaks off with an error of its own', 'google/error', { text: 'Wel', failure: 'overloaded' }],
  [
    'Gemini indents its frames over several lines',
    'google/indented',
    { text: 'Zwei Zeilen', finish: 'stop', usage: [4, 2, 0, 0] },
  ],
]

for (const [name, file, said, ending] of cases) {
  test(`${name}: reads as expected for any split`, () => {
    const bytes = readFileSync(new URL(`../fixtures/${file}.sse`, import.meta.url))
    const { provider, ending: usual } = readers[file.slice(0, file.indexOf('/')) as Folder]
    const choices = said.other === undefined ? 1 : 2
    const read = (end: number, cuts: readonly number[] = []) =>
      readRecording(provider.streamReader(choices), bytes.subarray(0, end), cuts)
    const whole = read(bytes.length)
    expect(saidIn(whole, said)).toEqual(said)
    expect(whole.at(-1)?.type === 'end').toBe(said.finish !== undefined)
    expect(read(bytes.length, everyByte(bytes))).toEqual(whole)
    const mayEndAt = bytes.indexOf(ending ?? usual)
    for (let at = 1; at < bytes.length; at += 1) {
      if (!Bun.deepEquals(read(bytes.length, [at]), whole)) expect(`cut at ${at}`).toBe('read alike')
      if ((mayEndAt === -1 || at <= mayEndAt) && read(at).some(({ type }) => type === 'end'))
        expect(`cut short at ${at}`).toBe('not ended')
    }
  })
}

/** Returns the parsed parts in the fields that `asked` names. */
function saidIn(parts: readonly AnswerPart[], asked: Said): Said {
  const joined = (type: 'text' | 'reasoning' | 'refusal', index: number) =>
    parts.map(part => (part.type === type && part.choice === index ? part.text : '')).join('')
  const text = joined('text', 0)
  const reasoning = joined('reasoning', 0)
  const refusal = joined('refusal', 0)
  const other = joined('text', 1)
  const calls = parts.flatMap(part => {
    if (part.type !== 'tool_call') return []
    const given = parts
      .map(piece => (piece.type === 'tool_arguments' && piece.index === part.index ? piece.text : ''))
      .join('')
    return [{ name: part.name, given, id: part.id }]
  })
  const finish = parts.find(part => part.type === 'finish')?.reason
  const usage = parts.findLast(part => part.type === 'usage')?.usage
  const failure = parts.findLast(part => part.type === 'failure')?.failure.kind
  return {
    ...(text !== '' && { text }),
    ...(reasoning !== '' && { reasoning }),
    ...(refusal !== '' && { refusal }),
    ...(other !== '' && { other }),
    ...(calls.length > 0 && {
      calls: calls.map(({ name, given, id }, position) =>
        asked.calls?.[position]?.[2] === undefined ? ([name, given] as const) : ([name, given, id] as const),
      ),
    }),
    ...(finish !== undefined && { finish }),
    ...(asked.usage !== undefined &&
      usage !== undefined && {
        usage: [usage.inputTokens, usage.outputTokens, usage.cachedInputTokens, usage.reasoningTokens],
      }),
    ...(failure !== undefined && { failure }),
    ...(asked.model !== undefined && { model: parts.findLast(part => part.type === 'served')?.model ?? '' }),
  }
}
