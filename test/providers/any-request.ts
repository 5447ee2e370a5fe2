/** Chat requests of any content, from texts, URLs and IDs that provider formats find difficult. */
import fc from 'fast-check'
import { type ChatRequest, type Message, reasoningEfforts } from '../../src/core/chat/chat.ts'

type Json = Record<string, unknown>

/** Returns the schema of an object with these properties and no others. */
export const closed = (properties: Json, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

export const anyText = fc.oneof(
  fc.constantFrom('', ' ', 'a ', '\n\t', 'Hello\n', '\ud800', 'data:', '{"a":1}', '[1]', '{"a":1e400}'),
  fc.string({ unit: 'binary', maxLength: 12 }),
)
const orNull = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arbitrary, { nil: null })
const names = fc.constantFrom('f', 'g', 'weather')
const anyCallId = fc.constantFrom('1', 'a', 'b', 'a:b', 'a|b', '', '0', 'toolu_01', 'call:3|x', 'x'.repeat(80))
const urls = fc.constantFrom(
  'https://a.test/i.png',
  'data:image/png;base64,AAAA',
  'data:image/svg+xml;base64,AA',
  'data:image/webp,AA',
  'data:,x%20y',
  'data:broken',
)
const none = fc.constant(null)

type Difficult = {
  /** Schemas of tools and of JSON outputs. */
  readonly schema: fc.Arbitrary<Json>
  /** Names in the history; default: those of offered tools. */
  readonly calledName?: fc.Arbitrary<string>
  readonly callId?: fc.Arbitrary<string>
  readonly signature?: fc.Arbitrary<string | null>
}

/** Returns requests whose history and tools need not fit together. */
export function anyRequest({ schema, calledName = names, callId = anyCallId, signature = none }: Difficult) {
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ role: fc.constant('system' as const), text: anyText }),
    fc.record({
      role: fc.constant('user' as const),
      content: fc.array(
        fc.oneof(
          fc.record({ type: fc.constant('text' as const), text: anyText }),
          fc.record({
            type: fc.constant('image' as const),
            url: urls,
            detail: orNull(fc.constantFrom('auto' as const, 'low' as const, 'high' as const)),
          }),
        ),
        { maxLength: 3 },
      ),
      name: orNull(anyText),
    }),
    fc.record({
      role: fc.constant('assistant' as const),
      text: orNull(anyText),
      reasoning: orNull(anyText),
      name: none,
      toolCalls: fc.array(
        fc.record({ id: callId, name: calledName, arguments: fc.oneof(anyText, fc.json()), signature }),
        { maxLength: 3 },
      ),
    }),
    fc.record({ role: fc.constant('tool' as const), callId, text: anyText }),
  )
  const tool = fc.record({
    name: names,
    description: orNull(anyText),
    parameters: orNull(schema),
    strict: orNull(fc.boolean()),
  })
  const penalty = orNull(fc.double({ min: -2, max: 2, noNaN: true }))
  return fc.record({
    messages: fc.array(message, { maxLength: 8 }),
    temperature: orNull(fc.double({ min: 0, max: 2, noNaN: true })),
    topP: orNull(fc.double({ min: 0, max: 1, noNaN: true })),
    presencePenalty: penalty,
    frequencyPenalty: penalty,
    seed: orNull(fc.maxSafeInteger()),
    logitBias: orNull(fc.constant({ '1': 5 })),
    logprobs: fc.boolean(),
    topLogprobs: orNull(fc.nat(20)),
    stop: fc.array(anyText, { maxLength: 6 }),
    choices: fc.integer({ min: 1, max: 128 }),
    tools: fc.uniqueArray(tool, { maxLength: 2, selector: ({ name }) => name }),
    toolChoice: orNull(
      fc.constantFrom<NonNullable<ChatRequest['toolChoice']>>('auto', 'none', 'required', { name: 'weather' }),
    ),
    parallelToolCalls: orNull(fc.boolean()),
    responseFormat: fc.oneof(
      fc.record({ type: fc.constantFrom('text' as const, 'json_object' as const) }),
      fc.record({
        type: fc.constant('json_schema' as const),
        name: names,
        description: orNull(anyText),
        schema,
        strict: orNull(fc.boolean()),
      }),
    ),
    reasoningEffort: orNull(fc.constantFrom(...reasoningEfforts)),
    endUser: orNull(fc.oneof(anyText, fc.string({ maxLength: 300 }))),
    extras: fc.constantFrom<Json[]>(
      {},
      { verbosity: 'low', store: null, model: 'x', messages: [], stream: false, n: 99, unknown: true },
    ),
  })
}
