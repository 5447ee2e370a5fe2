/** Wire format of Gemini generateContent and streamGenerateContent. */
import { estimateTokens } from '../text/tokens/tokens.ts'
import type { RawRequest } from './request.ts'
import {
  type Answer,
  type Failure,
  type Frame,
  isWireObject,
  jsonTokens,
  mistake,
  numberOr,
  objectsIn,
  type SimulatedFormat,
  type SimulatedRequest,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  textOr,
  tokensOf,
  total,
  unknownField,
  type WireObject,
} from './wire-format.ts'

const knownFields = new Set(
  `contents systemInstruction system_instruction generationConfig generation_config tools toolConfig tool_config
  safetySettings safety_settings cachedContent cached_content model labels store serviceTier`.split(/\s+/),
)

const knownSettings = new Set(
  `temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty frequencyPenalty
  responseMimeType responseSchema responseJsonSchema responseLogprobs logprobs thinkingConfig responseModalities
  mediaResolution speechConfig imageConfig enableEnhancedCivicAnswers`.split(/\s+/),
)

const levelTokens: Readonly<Record<string, number>> = { minimal: 8, low: 16, medium: 48, high: 96 }

const statusNames: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

export const googleFormat: SimulatedFormat = {
  provider: 'google',
  lineEnd: '\r\n',
  streamType: 'text/event-stream',
  jsonType: 'application/json; charset=UTF-8',
  chunkCharacters: 80,
  ping: null,
  unknownFrame: { part: 'opening', name: null, data: '{"progressMetadata": {"percent": 1}}' },
  read,
  headers: () => ({
    'server-timing': 'gfet4t7; dur=42',
    'x-gemini-service-tier': 'standard',
    vary: 'Origin, X-Origin, Referer',
  }),
  completion: turn => answerBody(turn, turn.answers.map(whole(turn)), turn.usage),
  frames,
  failure,
  errorFrame: () => ({
    part: 'closing',
    name: null,
    data: JSON.stringify({
      error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' },
    }),
  }),
}

function read({ path, headers }: RawRequest, body: WireObject): ReturnType<SimulatedFormat['read']> {
  const [, model = '', method = ''] = /\/models\/([^/:?]+):(\w+)/.exec(path) ?? []
  const settings = settingsOf(body)
  const hasKey = Boolean(headers['x-goog-api-key']) || /[?&]key=[^&]/.test(path)
  const problem = hasKey ? problemIn(body, settings, model) : keyMissing
  if (problem !== null) return failure(problem)

  const contents = objectsIn(body.contents)
  const parts = contents.map(content => objectsIn(content.parts))
  const tools = objectsIn(body.tools).flatMap(tool =>
    objectsIn(tool.functionDeclarations ?? tool.function_declarations),
  )
  const instruction = body.systemInstruction ?? body.system_instruction
  const thinking = isWireObject(settings.thinkingConfig) ? settings.thinkingConfig : {}
  const question: SimulatedRequest = {
    model: decodeURIComponent(model),
    stream: method === 'streamGenerateContent',
    userTexts: parts.flatMap((list, index) => {
      const text = textOf(list)
      return contents[index]?.role !== 'model' && text !== '' ? [text] : []
    }),
    instructions: isWireObject(instruction) ? textOf(objectsIn(instruction.parts)) : '',
    inputTokens:
      (isWireObject(instruction) ? estimateTokens(textOf(objectsIn(instruction.parts))) : 0) +
      parts.flat().reduce((sum, part) => sum + tokensIn(part), 2 * contents.length) +
      jsonTokens(tools),
    images: parts.flat().filter(part => ('inlineData' in part || 'fileData' in part) && !isDocument(part)).length,
    files: parts.flat().filter(isDocument).length,
    toolResults: (parts.at(-1) ?? []).flatMap(({ functionResponse: result }) =>
      isWireObject(result) ? [resultText(result.response)] : [],
    ),
    tools: tools.map(tool => ({
      name: String(tool.name),
      schema: tool.parametersJsonSchema ?? tool.parameters ?? null,
    })),
    toolChoice: toolChoiceOf(body.toolConfig ?? body.tool_config),
    parallelCalls: true,
    json:
      settings.responseMimeType === 'application/json'
        ? { schema: settings.responseJsonSchema ?? settings.responseSchema ?? null }
        : null,
    reasoningTokens: thoughtTokens(thinking),
    reasoningShown: thinking.includeThoughts === true,
    choices: numberOr(settings.candidateCount, 1),
    outputCap: numberOr(settings.maxOutputTokens, null),
    stops: [settings.stopSequences].flat().filter(stop => typeof stop === 'string'),
    logprobs: settings.responseLogprobs === true ? numberOr(settings.logprobs, 0) : null,
    includeUsage: true,
    obfuscation: false,
    events: /[?&]alt=sse(&|$)/.test(path),
  }
  return { kind: 'question', question }
}

function settingsOf(body: WireObject): WireObject {
  const settings = body.generationConfig ?? body.generation_config
  return isWireObject(settings) ? settings : {}
}

const keyMissing: Failure = {
  kind: 'key_missing',
  status: 403,
  message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key.",
  param: null,
  retryAfterSeconds: null,
}

function problemIn(body: WireObject, settings: WireObject, model: string): Failure | null {
  const unknown = unknownField(body, knownFields)
  if (unknown !== undefined)
    return mistake(`Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`)
  const unknownSetting = unknownField(settings, knownSettings)
  if (unknownSetting !== undefined) {
    return mistake(
      `Invalid JSON payload received. Unknown name "${unknownSetting}" at 'generation_config': Cannot find field.`,
    )
  }
  const contents = objectsIn(body.contents)
  if (contents.length === 0) return mistake('* GenerateContentRequest.contents: contents is not specified')
  for (const [index, { role, parts }] of contents.entries()) {
    if (role !== undefined && role !== 'user' && role !== 'model')
      return mistake('Please use a valid role: user, model.')
    if (objectsIn(parts).length === 0) {
      return mistake(`* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.`)
    }
  }
  const declared = objectsIn(body.tools).flatMap(tool =>
    objectsIn(tool.functionDeclarations ?? tool.function_declarations),
  )
  if (!declared.every(({ name }) => typeof name === 'string' && /^[A-Za-z_][\w.:-]*$/.test(name)))
    return mistake(
      '* GenerateContentRequest.tools[0].function_declarations: Invalid function name. Must start with a letter or an underscore.',
    )
  if (contents[0]?.role === 'model' && objectsIn(contents[0].parts).some(part => 'functionCall' in part)) {
    return mistake(
      'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
    )
  }
  if (Array.isArray(body.tools) && body.tools.length === 0)
    return mistake('* GenerateContentRequest.tools: must not be empty')
  for (const [name, least, most] of [
    ['temperature', 0, 2],
    ['topP', 0, 1],
    ['candidateCount', 1, 8],
  ] as const) {
    const value = settings[name] ?? least
    if (typeof value !== 'number' || value < least || value > most) {
      return mistake(`* GenerateContentRequest.generation_config.${name}: must be in the range [${least}, ${most}]`)
    }
  }
  if (Array.isArray(settings.stopSequences) && settings.stopSequences.length > 5) {
    return mistake('* GenerateContentRequest.generation_config.stop_sequences: at most 5 are allowed')
  }
  const { thinkingConfig: thinking } = settings
  if (
    isWireObject(thinking) &&
    thinking.thinkingLevel != null &&
    (thinking.thinkingBudget != null || /^gemini-[12]\./.test(model))
  ) {
    return mistake('You can only set one of thinking budget and thinking level, and a level from Gemini 3 on only.')
  }
  return null
}

function textOf(parts: readonly WireObject[]): string {
  return parts.map(part => textOr(part.text, '')).join('')
}

function isDocument({ inlineData: data }: WireObject): boolean {
  return isWireObject(data) && data.mimeType === 'application/pdf'
}

function tokensIn(part: WireObject): number {
  if ('inlineData' in part || 'fileData' in part) return 0
  return typeof part.text === 'string' ? estimateTokens(part.text) : jsonTokens([part])
}

/** Unwraps a text that this API requires to be wrapped. */
function resultText(response: unknown): string {
  const inside = isWireObject(response)
    ? (response.output ?? response.result ?? response.content ?? response)
    : response
  return typeof inside === 'string' ? inside : JSON.stringify(inside ?? null)
}

function toolChoiceOf(config: unknown): SimulatedRequest['toolChoice'] {
  const calling = isWireObject(config) ? (config.functionCallingConfig ?? config.function_calling_config) : null
  if (!isWireObject(calling)) return 'auto'
  const [name] = [calling.allowedFunctionNames].flat()
  if (calling.mode === 'ANY') return typeof name === 'string' ? { name } : 'required'
  return calling.mode === 'NONE' ? 'none' : 'auto'
}

function thoughtTokens({ thinkingLevel, thinkingBudget, includeThoughts }: WireObject): number {
  if (typeof thinkingLevel === 'string') return levelTokens[thinkingLevel.toLowerCase()] ?? 0
  if (typeof thinkingBudget === 'number') return thinkingBudget < 0 ? 48 : Math.min(thinkingBudget, 96)
  return includeThoughts === true ? 48 : 0
}

type Candidate = {
  readonly parts: readonly WireObject[]
  readonly finish: object
  readonly index: number
  readonly text: string
}

function whole(turn: SimulatedResponse): (answer: Answer, index: number) => Candidate {
  return (answer, index) => ({
    index,
    text: answer.text,
    parts: [...textParts(answer, turn, Number.POSITIVE_INFINITY), ...callParts(answer, turn)],
    finish: finishOf(answer),
  })
}

function* textParts(
  { reasoning, text }: Answer,
  { question }: SimulatedResponse,
  characters: number,
): Generator<WireObject> {
  if (question.reasoningShown) for (const piece of slices(reasoning, characters)) yield { text: piece, thought: true }
  for (const piece of slices(text, characters)) yield { text: piece }
}

/** Returns the calls; the first of a turn has the signature that its replay requires. */
function callParts({ calls }: Answer, { mint }: SimulatedResponse): WireObject[] {
  return calls.map((call, index) => ({
    functionCall: { name: call.name, args: call.arguments },
    ...(index === 0 ? { thoughtSignature: mint('Sim', 61) } : {}),
  }))
}

function finishOf({ finish, refusal, calls }: Answer): object {
  const reasons = { stop: 'STOP', tool_calls: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' } as const
  const finishReason = refusal === null ? reasons[finish] : 'SAFETY'
  return { finishReason, ...(calls.length > 0 ? { finishMessage: 'Model generated function call(s).' } : {}) }
}

function answerBody(
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
      ...logprobsOf(text, turn.question.logprobs),
    })),
    ...(usage === null ? {} : { usageMetadata: usageBody(usage) }),
    modelVersion: turn.served,
    responseId: id,
  }
}

function usageBody({ input, cached, output, reasoning }: SimulatedUsage) {
  const visible = typeof output === 'number' && typeof reasoning === 'number' ? output - reasoning : output
  return {
    promptTokenCount: input,
    ...(visible === 0 ? {} : { candidatesTokenCount: visible }),
    totalTokenCount: total(input, output),
    ...(cached === 0 ? {} : { cachedContentTokenCount: cached }),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
    ...(reasoning === 0 ? {} : { thoughtsTokenCount: reasoning }),
  }
}

function logprobsOf(text: string, alternatives: number | null): object {
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

function* frames(turn: SimulatedResponse): Generator<Frame> {
  const { answers, usage, chunkCharacters, mint } = turn
  const id = mint('', 23)
  let characters = 0
  const event = (part: Frame['part'], candidates: readonly Candidate[], counts: SimulatedUsage | null): Frame => ({
    part,
    name: null,
    data: JSON.stringify(answerBody(turn, candidates, counts, id)),
  })
  for (const [index, answer] of answers.entries()) {
    for (const said of textParts(answer, turn, chunkCharacters)) {
      // Reasoning has its own count.
      const spoken = said.thought === true ? '' : textOr(said.text, '')
      characters += spoken.length
      yield event('content', [{ parts: [said], finish: {}, index, text: spoken }], soFar(usage, characters))
    }
    for (const said of callParts(answer, turn))
      yield event('content', [{ parts: [said], finish: {}, index, text: '' }], usage)
  }
  const last = answers.map((answer, index) => ({ parts: [{ text: '' }], finish: finishOf(answer), index, text: '' }))
  yield event('closing', last, usage)
}

/** Returns the counts of an event, which are cumulative. Hidden reasoning is counted from the start. */
function soFar(usage: SimulatedUsage | null, characters: number): SimulatedUsage | null {
  if (usage === null || typeof usage.output !== 'number' || typeof usage.reasoning !== 'number') return usage
  return { ...usage, output: Math.min(usage.output, usage.reasoning + tokensOf(characters)) }
}

function failure({ kind, status, message, retryAfterSeconds }: Failure): ReturnType<SimulatedFormat['failure']> {
  if (kind === 'content_block') {
    const promptFeedback = { blockReason: 'PROHIBITED_CONTENT' }
    const usageMetadata = { promptTokenCount: 8, totalTokenCount: 8 }
    return {
      kind: 'refusal',
      status: 200,
      headers: {},
      body: { promptFeedback, usageMetadata, modelVersion: 'simulated' },
    }
  }
  const name = statusNames[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
  const details = detailsOf(kind, retryAfterSeconds)
  const error = {
    code: status,
    message: wording[kind] ?? message,
    status: name,
    ...(details.length === 0 ? {} : { details }),
  }
  return { kind: 'refusal', status, headers: {}, body: { error } }
}

function detailsOf(kind: Failure['kind'], retryAfterSeconds: number | null): WireObject[] {
  const details: WireObject[] = []
  if (kind === 'quota') {
    details.push({
      '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [{ quotaMetric: 'generate_content_requests', quotaId: 'GenerateRequestsPerDayPerProjectPerModel' }],
    })
  }
  if (retryAfterSeconds !== null) {
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfterSeconds}s` })
  }
  return details
}

const wording: Partial<Record<Failure['kind'], string>> = {
  quota: 'You exceeded your current quota, please check your plan and billing details.',
  context_overflow: 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).',
  model_missing:
    'models/simulated-missing is not found for API version v1beta, or is not supported for generateContent.',
}
