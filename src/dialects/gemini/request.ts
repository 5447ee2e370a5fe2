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
import { sendableFields } from '../../core/chat/provider-features.ts'
import { ReadValues } from '../../core/chat/request-texts.ts'
import { unreadParts } from '../../core/chat/tool-definitions.ts'
import { maximumNameCharacters } from '../../core/models/models.ts'
import { chatRequestFields, maximumMessages, parseChatRequestFields } from '../../core/request/chat-request.ts'
import { gatewayFields, pickGatewayFields } from '../../core/request/gateway-fields.ts'
import { unknownNames } from '../../core/validation/unknown-names.ts'
import { invalidField, nullable, oneOf, strictObject, validate } from '../../core/validation/validate.ts'
import type { RequestSource } from '../../http/chat-handler.ts'
import { anyObject, isFields, open, rejectStoredState } from '../foreign-objects.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { content, readContents, toList, withJsonNames } from './contents.ts'
import { jsonSchema, readGeminiTools, toolFields, webTools } from './tools.ts'

const shared = chatRequestFields(true)
const wireName = Type.String({ maxLength: 64 })
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
        thinkingLevel: nullable(wireName),
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

/** Google's own filter reads them. Moderation does not. */
const safetySettings = nullable(
  Type.Array(strictObject({ category: wireName, threshold: nullable(wireName) }), { maxItems: 64 }),
)
/** The model is in the path. */
const bodyModel = nullable(Type.String({ maxLength: maximumNameCharacters }))

/** The body of `generateContent` and `streamGenerateContent`. */
export const generateSchema = Type.Object(
  { ...promptFields, safetySettings, model: bodyModel, ...gatewayFields },
  { ...open, title: 'GenerateContentRequest' },
)

/** The body of `countTokens`: the contents, or a whole request. */
export const geminiCountSchema = Type.Object(
  {
    ...promptFields,
    contents: Type.Optional(promptFields.contents),
    generateContentRequest: Type.Optional(Type.Object({ ...promptFields, model: bodyModel }, open)),
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
  const { sealed, isAgent, isInexact, ...prompt } = readPrompt(body, { seal, accountId }, values)
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
  const unknown = [...unknownNames(generateSchema, body)]
  const asksForWeb = body.web != null || headers.has('x-gateway-web') || unknown.some(name => webTools.has(name))
  const others = Object.fromEntries(unknown.filter(name => !webTools.has(name)).map(name => [name, true]))
  const { topK } = config
  // What Gemini must not receive, or could not read among the fields of JSON, needs another body.
  const isSendable = named === value && unknown.length === 0 && !isInexact
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
    logprobs: config.responseLogprobs ?? false,
    topLogprobs: config.logprobs ?? null,
    choices: config.candidateCount ?? 1,
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
  const conversation = readContents({ contents: toList(contents), systemInstruction }, opener, values)
  return {
    ...conversation,
    isAgent: conversation.messages.at(-1)?.role === 'tool',
    ...readGeminiTools(body, values),
    responseFormat: getResponseFormat(body, values),
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
  if (named === undefined && level !== undefined && level !== 'thinking_level_unspecified')
    throw invalidField('generationConfig.thinkingConfig.thinkingLevel', 'must be MINIMAL, LOW, MEDIUM or HIGH')
  if (named !== undefined || thinkingBudget == null || thinkingBudget < 0) return named ?? null
  if (thinkingBudget === 0) return 'none'
  if (thinkingBudget <= thinkingBudgets.low) return 'low'
  return thinkingBudget <= thinkingBudgets.medium ? 'medium' : 'high'
}

function endsWithText({ contents }: Prompt): boolean {
  const last = toList(contents).at(-1)
  return last?.role !== 'model' && toList(last?.parts).some(({ text }) => typeof text === 'string')
}
