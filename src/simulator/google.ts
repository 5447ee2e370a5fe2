/** Wire format of Gemini generateContent and streamGenerateContent. */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { writeGoogleFrames, writeGoogleResponse } from './google-output.ts'
import type { RawRequest } from './server.ts'
import {
  eventWriter,
  type Failure,
  isWireObject,
  joinText,
  jsonTokens,
  mistake,
  numberOr,
  objectsIn,
  readAs,
  readStops,
  type SimulatedError,
  type SimulatedFormat,
  type SimulatedRequest,
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
  streamType: 'text/event-stream',
  jsonType: 'application/json; charset=UTF-8',
  chunkCharacters: 80,
  read,
  headers: () => ({
    'server-timing': 'gfet4t7; dur=42',
    'x-gemini-service-tier': 'standard',
    vary: 'Origin, X-Origin, Referer',
  }),
  encode: eventWriter('\r\n'),
  completion: writeGoogleResponse,
  frames: writeGoogleFrames,
  failure,
  errorFrame: () => ({
    part: 'closing',
    name: null,
    data: '{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}',
  }),
}

function read({ path, headers }: RawRequest, body: WireObject): ReturnType<SimulatedFormat['read']> {
  const [, model = '', method = ''] = /\/models\/([^/:?]+):(\w+)/.exec(path) ?? []
  const settings = readSettings(body)
  const hasKey = Boolean(headers['x-goog-api-key']) || /[?&]key=[^&]/.test(path)
  const problem = hasKey ? findProblem(body, settings, model) : googleKeyMissing
  if (problem !== null) return failure(problem)

  const contents = objectsIn(body.contents)
  const parts = contents.map(content => objectsIn(content.parts))
  const tools = readDeclarations(body)
  const instruction = body.systemInstruction ?? body.system_instruction
  const thinking = isWireObject(settings.thinkingConfig) ? settings.thinkingConfig : {}
  return readAs({
    model: decodeURIComponent(model),
    stream: method === 'streamGenerateContent',
    userTexts: parts.flatMap((list, index) => {
      const text = joinText(list)
      return contents[index]?.role !== 'model' && text !== '' ? [text] : []
    }),
    textBefore: joinText(parts.at(-2)),
    inputTokens:
      (isWireObject(instruction) ? estimateTokens(joinText(objectsIn(instruction.parts))) : 0) +
      parts.flat().reduce((sum, part) => sum + countPart(part), 2 * contents.length) +
      jsonTokens(tools),
    images: parts.flat().filter(part => ('inlineData' in part || 'fileData' in part) && !isDocument(part)).length,
    files: parts.flat().filter(isDocument).length,
    toolResults: (parts.at(-1) ?? []).flatMap(({ functionResponse: result }) =>
      isWireObject(result) ? [readResult(result.response)] : [],
    ),
    tools: tools.map(tool => ({
      name: String(tool.name),
      schema: tool.parametersJsonSchema ?? tool.parameters ?? null,
    })),
    toolChoice: readToolChoice(body.toolConfig ?? body.tool_config),
    json:
      settings.responseMimeType === 'application/json'
        ? { schema: settings.responseJsonSchema ?? settings.responseSchema ?? null }
        : null,
    reasoningTokens: countThoughts(thinking),
    reasoningShown: thinking.includeThoughts === true,
    choices: numberOr(settings.candidateCount, 1),
    outputCap: numberOr(settings.maxOutputTokens, null),
    stops: readStops(settings.stopSequences),
    logprobs: settings.responseLogprobs === true ? numberOr(settings.logprobs, 0) : null,
    events: /[?&]alt=sse(&|$)/.test(path),
  })
}

function readSettings(body: WireObject): WireObject {
  const settings = body.generationConfig ?? body.generation_config
  return isWireObject(settings) ? settings : {}
}

export const googleKeyMissing = mistake(
  "Method doesn't allow unregistered callers (callers without established identity). Please use API Key.",
  null,
  403,
  'key_missing',
)

function findProblem(body: WireObject, settings: WireObject, model: string): Failure | null {
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
  if (!readDeclarations(body).every(({ name }) => typeof name === 'string' && /^[A-Za-z_][\w.:-]*$/.test(name)))
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

function readDeclarations({ tools }: WireObject): readonly WireObject[] {
  return objectsIn(tools).flatMap(tool => objectsIn(tool.functionDeclarations ?? tool.function_declarations))
}

function isDocument({ inlineData: data }: WireObject): boolean {
  return isWireObject(data) && data.mimeType === 'application/pdf'
}

function countPart(part: WireObject): number {
  if ('inlineData' in part || 'fileData' in part) return 0
  return typeof part.text === 'string' ? estimateTokens(part.text) : jsonTokens([part])
}

/** Unwraps a text that this API requires to be wrapped. */
function readResult(response: unknown): string {
  const inside = isWireObject(response)
    ? (response.output ?? response.result ?? response.content ?? response)
    : response
  return typeof inside === 'string' ? inside : JSON.stringify(inside ?? null)
}

function readToolChoice(config: unknown): SimulatedRequest['toolChoice'] {
  const calling = isWireObject(config) ? (config.functionCallingConfig ?? config.function_calling_config) : null
  if (!isWireObject(calling)) return 'auto'
  const [name] = [calling.allowedFunctionNames].flat()
  if (calling.mode === 'ANY') return typeof name === 'string' ? { name } : 'required'
  return calling.mode === 'NONE' ? 'none' : 'auto'
}

function countThoughts({ thinkingLevel, thinkingBudget, includeThoughts }: WireObject): number {
  if (typeof thinkingLevel === 'string') return levelTokens[thinkingLevel.toLowerCase()] ?? 0
  if (typeof thinkingBudget === 'number') return thinkingBudget < 0 ? 48 : Math.min(thinkingBudget, 96)
  return includeThoughts === true ? 48 : 0
}

function failure({ kind, status, message, retryAfterSeconds }: Failure): SimulatedError {
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
  const details = createDetails(kind, retryAfterSeconds)
  const error = {
    code: status,
    message: wording[kind] ?? message,
    status: name,
    ...(details.length === 0 ? {} : { details }),
  }
  return { kind: 'refusal', status, headers: {}, body: { error } }
}

function createDetails(kind: Failure['kind'], retryAfterSeconds: number | null): WireObject[] {
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
