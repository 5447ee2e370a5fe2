/** Responses of OpenAI Chat Completions: one JSON object, or the frames of a stream. */
import {
  type Frame,
  type Mint,
  type Output,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  type WireObject,
} from './wire-format.ts'

export function openaiCompletion(turn: SimulatedResponse): unknown {
  const { question, outputs, usage } = turn
  return {
    ...createEnvelope(turn, 'chat.completion'),
    choices: outputs.map((output, index) => ({
      index,
      message: {
        role: 'assistant',
        content: output.text === '' && (output.calls.length > 0 || output.refusal !== null) ? null : output.text,
        ...(output.calls.length === 0 ? {} : { tool_calls: output.calls.map(call => writeCall(call, turn)) }),
        refusal: output.refusal,
        annotations: [],
      },
      logprobs: writeLogprobs(output.text, question.logprobs),
      finish_reason: output.finish,
    })),
    ...(usage === null ? {} : { usage: writeUsage(usage) }),
  }
}

function createEnvelope({ mint, createdAt, served }: SimulatedResponse, object: string) {
  return {
    id: mint('chatcmpl-', 29),
    object,
    created: createdAt,
    model: served,
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
  }
}

function writeCall(call: Output['calls'][number], { mint }: SimulatedResponse) {
  return {
    id: mint('call_', 24),
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }
}

function writeUsage({ input, cached, cacheWrite, output, reasoning }: SimulatedUsage): WireObject {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: cached,
      ...(cacheWrite === 0 ? {} : { cache_write_tokens: cacheWrite }),
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

function writeLogprobs(text: string, alternatives: number | null): unknown {
  if (alternatives === null) return null
  const entry = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] })
  const content = [...slices(text, 4)].map(token => ({
    ...entry(token, -0.01),
    top_logprobs: Array.from({ length: alternatives }, (_, rank) =>
      entry(rank === 0 ? token : `${token}${rank}`, -0.01 - rank),
    ),
  }))
  return { content, refusal: null }
}

export function* openaiFrames(turn: SimulatedResponse): Generator<Frame> {
  const { question, outputs, usage, chunkCharacters, mint } = turn
  const shared = createEnvelope(turn, 'chat.completion.chunk')
  const noUsage = question.includeUsage && usage !== null ? { usage: null } : {}
  const frame = (part: Frame['part'], choices: readonly unknown[], extra: object = noUsage): Frame => ({
    part,
    name: null,
    data: JSON.stringify({ ...shared, choices, ...extra }),
  })
  const choiceFrame = (
    part: Frame['part'],
    index: number,
    delta: object,
    finish: string | null = null,
    logprobs: unknown = null,
  ) => frame(part, [{ index, delta, logprobs, finish_reason: finish }])

  for (const [index, { text, calls }] of outputs.entries()) {
    // A single call opens its turn itself; several follow a chunk with only the role.
    if (text !== '' || calls.length !== 1) {
      const content = calls.length > 0 && text === '' ? null : ''
      yield choiceFrame('opening', index, { role: 'assistant', content, refusal: null })
    }
  }
  const writers = outputs.map((output, index) =>
    createDeltas(output, chunkCharacters, mint).map(delta => ({ index, delta })),
  )
  for (const { index, delta } of interleaved(writers)) {
    const text = 'content' in delta && typeof delta.content === 'string' ? delta.content : ''
    yield choiceFrame('content', index, delta, null, text === '' ? null : writeLogprobs(text, question.logprobs))
  }
  for (const [index, { finish }] of outputs.entries()) yield choiceFrame('closing', index, {}, finish)
  if (question.includeUsage && usage !== null) yield frame('closing', [], { usage: writeUsage(usage) })
  yield { part: 'closing', name: null, data: '[DONE]' }
}

function* createDeltas({ text, refusal, calls }: Output, characters: number, mint: Mint): Generator<WireObject> {
  for (const content of slices(text, characters)) yield { content }
  for (const piece of slices(refusal ?? '', characters)) yield { refusal: piece }
  for (const [index, call] of calls.entries()) {
    const opening = { index, id: mint('call_', 24), type: 'function', function: { name: call.name, arguments: '' } }
    const alone = calls.length === 1 && text === ''
    yield {
      ...(alone ? { role: 'assistant', content: null } : {}),
      tool_calls: [opening],
      ...(alone ? { refusal: null } : {}),
    }
    for (const piece of slices(JSON.stringify(call.arguments), characters)) {
      yield { tool_calls: [{ index, function: { arguments: piece } }] }
    }
  }
}

/** Alternates between sources, as chunks of several choices arrive. */
function* interleaved<Item>(sources: readonly Iterator<Item>[]): Generator<Item> {
  for (let running = sources; running.length > 0; ) {
    const still: Iterator<Item>[] = []
    for (const source of running) {
      const next = source.next()
      if (next.done) continue
      still.push(source)
      yield next.value
    }
    running = still
  }
}
