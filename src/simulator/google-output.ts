/** Responses of Gemini: one JSON object, or the frames of a stream. */
import {
  countOutputTokens,
  type Frame,
  type Output,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  textOr,
  type WireObject,
} from './wire-format.ts'

type Candidate = {
  readonly parts: readonly WireObject[]
  readonly finish: object
  readonly index: number
  readonly text: string
}

/** Returns the JSON response. */
export function writeGoogleResponse(turn: SimulatedResponse): unknown {
  const candidates = turn.outputs.map((output, index) => ({
    index,
    text: output.text,
    parts: [...textParts(output, turn, Number.POSITIVE_INFINITY), ...callParts(output, turn)],
    finish: writeFinish(output),
  }))
  return writeBody(turn, candidates, turn.usage)
}

function* textParts(
  { reasoning, text }: Output,
  { question }: SimulatedResponse,
  characters: number,
): Generator<WireObject> {
  if (question.reasoningShown) for (const piece of slices(reasoning, characters)) yield { text: piece, thought: true }
  for (const piece of slices(text, characters)) yield { text: piece }
}

/** Returns the calls; the first of a turn has the signature that its replay requires. */
function callParts({ calls }: Output, { mint }: SimulatedResponse): WireObject[] {
  return calls.map((call, index) => ({
    functionCall: { name: call.name, args: call.arguments },
    ...(index === 0 ? { thoughtSignature: mint('Sim', 61) } : {}),
  }))
}

function writeFinish({ finish, refusal, calls }: Output): object {
  const reasons = { stop: 'STOP', tool_calls: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' } as const
  const finishReason = refusal === null ? reasons[finish] : 'SAFETY'
  return { finishReason, ...(calls.length > 0 ? { finishMessage: 'Model generated function call(s).' } : {}) }
}

function writeBody(
  turn: SimulatedResponse,
  candidates: readonly Candidate[],
  usage: SimulatedUsage | null,
  id = turn.mint('', 23),
): unknown {
  return {
    candidates: candidates.map(({ parts, finish, index, text }) => ({
      content: parts.length === 0 ? { role: 'model' } : { parts, role: 'model' },
      ...finish,
      index,
      ...writeLogprobs(text, turn.question.logprobs),
    })),
    ...(usage === null ? {} : { usageMetadata: writeUsage(usage) }),
    modelVersion: turn.served,
    responseId: id,
  }
}

function writeUsage({ input, cached, output, reasoning }: SimulatedUsage) {
  const visible = output - reasoning
  return {
    promptTokenCount: input,
    ...(visible === 0 ? {} : { candidatesTokenCount: visible }),
    totalTokenCount: input + output,
    ...(cached === 0 ? {} : { cachedContentTokenCount: cached }),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
    ...(reasoning === 0 ? {} : { thoughtsTokenCount: reasoning }),
  }
}

function writeLogprobs(text: string, alternatives: number | null): object {
  if (alternatives === null || text === '') return {}
  const tokens = [...slices(text, 4)]
  return {
    avgLogprobs: -0.01,
    logprobsResult: {
      chosenCandidates: tokens.map(token => ({ token, tokenId: 1, logProbability: -0.01 })),
      topCandidates: tokens.map(token => ({
        candidates: Array.from({ length: alternatives }, (_, rank) => ({
          token: rank === 0 ? token : `${token}${rank}`,
          tokenId: rank + 1,
          logProbability: -0.01 - rank,
        })),
      })),
    },
  }
}

export function* writeGoogleFrames(turn: SimulatedResponse): Generator<Frame> {
  const { outputs, usage, chunkCharacters, mint } = turn
  const id = mint('', 23)
  let characters = 0
  const event = (part: Frame['part'], candidates: readonly Candidate[], counts: SimulatedUsage | null): Frame => ({
    part,
    name: null,
    data: JSON.stringify(writeBody(turn, candidates, counts, id)),
  })
  for (const [index, output] of outputs.entries()) {
    for (const said of textParts(output, turn, chunkCharacters)) {
      // Reasoning has its own count.
      const spoken = said.thought === true ? '' : textOr(said.text, '')
      characters += spoken.length
      yield event('content', [{ parts: [said], finish: {}, index, text: spoken }], countSoFar(usage, characters))
    }
    for (const said of callParts(output, turn))
      yield event('content', [{ parts: [said], finish: {}, index, text: '' }], usage)
  }
  const last = outputs.map((output, index) => ({ parts: [{ text: '' }], finish: writeFinish(output), index, text: '' }))
  yield event('closing', last, usage)
}

/** Returns the counts of an event, which are cumulative. Hidden reasoning is counted from the start. */
function countSoFar(usage: SimulatedUsage | null, characters: number): SimulatedUsage | null {
  return usage && { ...usage, output: Math.min(usage.output, usage.reasoning + countOutputTokens(characters)) }
}
