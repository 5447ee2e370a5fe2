/**
 * Parses bodies of `generateContent`, `streamGenerateContent` and `countTokens` into chat requests. A body that needs no change goes
 * to Gemini as it is written.
 */
import { type Static, Type } from '@sinclair/typebox'
import {
  type ChatRequest,
  type ReasoningEffort,
  type ResponseFormat,
  reasoningEfforts,
  type SourceBody,
} from '../../core/chat/chat.ts'
import { thinkingBudgets } from '../../core/chat/google-wire.ts'
import { isSendableField, sendableFields } from '../../core/chat/provider-features.ts'
import { ReadValues } from '../../core/chat/request-texts.ts'
import { unreadParts } from '../../core/chat/tool-definitions.ts'
import { chatRequestFields, maximumMessages, parseChatRequestFields } from '../../core/request/chat-request.ts'
import { gatewayFields, pickGatewayFields } from '../../core/request/gateway-fields.ts'
import { invalidField, nullable, oneOf, validate } from '../../core/validation/validate.ts'
import type { RequestSource } from '../../http/chat-handler.ts'
import { isFields, rejectStoredState } from '../foreign-objects.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { anyObject, content, readContents, toList, withJsonNames } from './contents.ts'
import { jsonSchema, readGeminiTools, toolFields, webTools } from './tools.ts'

const open = { additionalProperties: true }
const shared = chatRequestFields(true)
const penalty = nullable(Type.Number({ minimum: -2, maximum: 2 }))

const settings = {
  maxOutputTokens: shared.max_output_tokens,
  temperature: shared.temperature,
  topP: shared.top_p,
  topK: nullable(Type.Number({ minimum: 0 })),
  candidateCount: nullable(Type.Integer({ minimum: 1, maximum: 8 })),
  stopSequences: nullable(Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 5 })),
  seed: shared.seed,
  presencePenalty: penalty,
  frequencyPenalty: penalty,
  responseMimeType: nullable(oneOf(['text/plain', 'application/json'], 'unsupported_parameter')),
  responseSchema: nullable(anyObject),
  responseJsonSchema: nullable(anyObject),
  responseLogprobs: nullable(Type.Boolean()),
  logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  responseModalities: nullable(Type.Array(oneOf(['TEXT', 'MODALITY_UNSPECIFIED'], 'unsupported_parameter'))),
  thinkingConfig: nullable(
    Type.Object(
      {
        includeThoughts: nullable(Type.Boolean()),
        thinkingBudget: nullable(Type.Integer({ minimum: -1 })),
        thinkingLevel: nullable(Type.String({ maxLength: 64 })),
      },
      open,
    ),
  ),
}

const promptFields = {
  contents: Type.Union([Type.Array(content, { minItems: 1, maxItems: maximumMessages }), content]),
  systemInstruction: nullable(content),
  ...toolFields,
  generationConfig: nullable(Type.Object(settings, open)),
}

/** The body of `generateContent` and `streamGenerateContent`. */
export const generateSchema = Type.Object(
  { ...promptFields, safetySettings: nullable(Type.Array(anyObject)), ...gatewayFields },
  { ...open, title: 'GenerateContentRequest' },
)

/** The body of `countTokens`: the contents, or a whole request. */
export const geminiCountSchema = Type.Object(
  {
    ...promptFields,
    contents: Type.Optional(promptFields.contents),
    generateContentRequest: Type.Optional(Type.Object(promptFields, open)),
  },
  { ...open, title: 'GeminiCountTokensRequest' },
)

type Body = Static<typeof generateSchema>
type Prompt = Pick<Body, keyof typeof promptFields>

/** Names of shared fields in this API. */
const spelling = {
  messages: 'contents',
  max_output_tokens: 'generationConfig.maxOutputTokens',
  stop: 'generationConfig.stopSequences',
  response_format: 'generationConfig.responseJsonSchema',
  reasoning_effort: 'generationConfig.thinkingConfig',
  n: 'generationConfig.candidateCount',
  tool_choice: 'toolConfig',
}

const gatewayNames: ReadonlySet<string> = new Set(Object.keys(gatewayFields))
/** The model is in the path. */
const readHere: ReadonlySet<string> = new Set([...Object.keys(promptFields), ...gatewayNames, 'model'])

/** A chat request with the settings that the response depends on. */
type GeminiRequest = {
  readonly request: ChatRequest
  readonly spelling: Readonly<Record<string, string>>
  readonly wantsThoughts: boolean
}

/** Parses a body. Throws `invalid_request` with the field at fault. */
export function readGemini(
  value: unknown,
  { headers, text, accountId }: RequestSource,
  { model, isStreamed, seal }: { readonly model: string; readonly isStreamed: boolean; readonly seal: ReasoningSeal },
): GeminiRequest {
  const named = withJsonNames(value, gatewayNames)
  const body = validate(generateSchema, named)
  rejectStoredState(body)
  const config = body.generationConfig ?? {}
  const values = new ReadValues()
  const { sealed, isAgent, hosted, unknownNames, ...prompt } = readPrompt(body, { seal, accountId }, values)
  const fields = parseChatRequestFields(
    {
      ...pickGatewayFields(body),
      model,
      stream: isStreamed,
      max_output_tokens: config.maxOutputTokens ?? null,
      temperature: config.temperature ?? null,
      top_p: config.topP ?? null,
      seed: config.seed ?? null,
    },
    headers,
  )
  const others = Object.fromEntries([...unreadFields(body), ...[...hosted, ...unknownNames].map(name => [name, true])])
  const { topK } = config
  const asksForWeb = body.web != null || headers.has('x-gateway-web') || hosted.some(name => webTools.has(name))
  for (const name of webTools) delete others[name]
  // What Gemini must not receive, or could not read among the fields of JSON, needs another body.
  const isSendable = named === value && hosted.length === 0 && Object.keys(others).length === 0
  const source: SourceBody = {
    dialect: 'gemini',
    text,
    fields: body,
    messages: prompt.messages,
    headers: {},
    needs: [],
    sameFormOnly: [],
    refused: [],
    unread: unreadParts(sendableFields('gemini', body), values),
    sealed,
  }
  const takesAdditions = endsWithText(body)
  const request: ChatRequest = {
    ...fields,
    ...prompt,
    dialect: 'gemini',
    source: isSendable ? source : null,
    stream: isStreamed ? (fields.stream ?? 'buffered') : null,
    stop: (config.stopSequences ?? []).filter(stop => stop !== ''),
    presencePenalty: config.presencePenalty ?? null,
    frequencyPenalty: config.frequencyPenalty ?? null,
    logitBias: null,
    logprobs: config.responseLogprobs ?? false,
    topLogprobs: config.logprobs ?? null,
    choices: config.candidateCount ?? 1,
    parallelToolCalls: null,
    endUser: null,
    extras: {
      ...others,
      ...(topK == null ? {} : { top_k: topK }),
      ...(body.safetySettings == null ? {} : { safetySettings: body.safetySettings }),
    },
    web: (isAgent && !asksForWeb) || !takesAdditions ? 'off' : fields.web,
    enhance: takesAdditions && fields.enhance,
    bodyCharacters: text.length,
  }
  return { request, spelling, wantsThoughts: config.thinkingConfig?.includeThoughts === true }
}

/** Parses a `countTokens` body into the values to count. Throws `invalid_request` with the field at fault. */
export function readGeminiCount(value: unknown, accountId: string, seal: ReasoningSeal) {
  const body = validate(geminiCountSchema, withJsonNames(value, gatewayNames))
  const whole = body.generateContentRequest
  const { contents } = body
  if (whole === undefined && contents === undefined)
    throw invalidField('contents', 'is missing: send the contents, or a whole request as `generateContentRequest`')
  return readPrompt(whole ?? { ...body, contents: contents ?? [] }, { seal, accountId }, new ReadValues())
}

function readPrompt(
  body: Prompt,
  opener: { readonly seal: ReasoningSeal; readonly accountId: string },
  values: ReadValues,
) {
  const { contents, systemInstruction = null } = body
  const { messages, sealed, unknownNames } = readContents(
    { contents: toList(contents), systemInstruction },
    opener,
    values,
  )
  const { hosted, ...tools } = readGeminiTools(body, values)
  const responseFormat = getResponseFormat(body, values)
  const isAgent = messages.at(-1)?.role === 'tool'
  return {
    messages,
    sealed,
    unknownNames,
    hosted,
    isAgent,
    ...tools,
    responseFormat,
    reasoningEffort: findEffort(body),
  }
}

function getResponseFormat({ generationConfig }: Prompt, values: ReadValues): ResponseFormat {
  const { responseMimeType, responseSchema, responseJsonSchema } = generationConfig ?? {}
  const schema = responseJsonSchema ?? (isFields(responseSchema) ? jsonSchema(responseSchema) : null)
  values.add(responseJsonSchema ?? responseSchema)
  // The API always follows the schema. Adapters decide whether theirs can.
  if (isFields(schema)) return { type: 'json_schema', name: 'response', description: null, schema, strict: true }
  return { type: responseMimeType === 'application/json' ? 'json_object' : 'text' }
}

/** Returns the reasoning effort as in the other API forms; null = the model's default. */
function findEffort({ generationConfig }: Prompt): ReasoningEffort | null {
  const { thinkingLevel, thinkingBudget } = generationConfig?.thinkingConfig ?? {}
  const level = thinkingLevel?.toLowerCase()
  const named = reasoningEfforts.find(effort => effort === level)
  if (named !== undefined || thinkingBudget == null || thinkingBudget < 0) return named ?? null
  if (thinkingBudget === 0) return 'none'
  if (thinkingBudget <= thinkingBudgets.low) return 'low'
  return thinkingBudget <= thinkingBudgets.medium ? 'medium' : 'high'
}

/** Returns the fields without a meaning here, which no provider receives, by the names that report them. */
function unreadFields(body: Body): (readonly [string, unknown])[] {
  return [
    ...Object.entries(body).filter(([name]) => !readHere.has(name) && !isSendableField('gemini', name, null)),
    ...Object.entries(body.generationConfig ?? {})
      .filter(([name]) => !Object.hasOwn(settings, name))
      .map(([name, value]) => [`generationConfig.${name}`, value] as const),
  ].filter(([, value]) => value != null)
}

function endsWithText({ contents }: Prompt): boolean {
  const last = toList(contents).at(-1)
  return last?.role !== 'model' && toList(last?.parts).some(({ text }) => typeof text === 'string')
}
