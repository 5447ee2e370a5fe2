/**
 * Token counting by o200k_base (`pieces-of-text.ts`), which is OpenAI's own. `estimateInputTokens` is an upper bound, used
 * for reservations. `likelyInputTokens` and `estimateTokens` are the best guess, used for billing if the upstream reports
 * no count; `countTokens` says whether it is exact.
 *
 * Anthropic and Google publish no tokenizer, so the bound for their models is the count of the least efficient known
 * tokenizers times a factor, and at most one token per byte.
 */
import type {
  ChatRequest,
  FilePart,
  ImageDetail,
  ImagePart,
  Message,
  PromptDefinition,
  Tool,
} from '../../core/chat/chat.ts'
import { messageNames, messageTexts } from '../../core/chat/request-texts.ts'
import { remembered } from '../../core/text/recent-map.ts'
import { createDraws, measureText, type TokenEstimate } from './pieces-of-text.ts'

/** Maximum characters counted in full; longer texts are sampled at about this size. */
const readInFull = 32_768
/** Smaller for output, which is counted repeatedly while it arrives. */
const answerReadInFull = 8_192
const draw = createDraws(crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)

/** Typical tokens relative to o200k_base, from a few recorded prompts. */
const likelyFactor: Readonly<Record<string, number>> = { openai: 1, anthropic: 1.25, google: 1.1 }
const unknownLikelyFactor = 1.15

/**
 * Upper bound relative to the `elsewhere` counts. Anthropic states that its newest tokenizer produces up to 1.35 times
 * the tokens of the previous one. An `elsewhere` count is the sum of each token's own. Repeated non-words can have more,
 * because another tokenizer joins their letters across these tokens: up to 2 times in cl100k_base.
 */
const highestFactor = 1.5
/**
 * For unpaired surrogates, and for a few letters that the package splits differently: at most 0.8% over random texts.
 */
const roughness = 1.01
/** Standard deviations added to a sampled estimate for an upper bound: exceeded once in 30,000 times. */
const deviations = 4

const tokensPerMessage = 4
const tokensPerTool = 16
/** Quotes, a colon, brackets or a comma. */
const tokensPerValue = 2
/** Tokens of the instructions that Anthropic adds for tools and for a schema, in recorded traffic. */
const anthropicInstructions = { tools: 350, schema: 200 }

type ImageFigures = Readonly<Record<ImageDetail, number>>
const evenly = (tokens: number): ImageFigures => ({ low: tokens, high: tokens, auto: tokens, original: tokens })

/** Fixed, since the image size is unknown here: about one megapixel by each provider's formula. */
const likelyImageTokens: Readonly<Record<string, ImageFigures>> = {
  openai: { low: 85, high: 1_105, auto: 1_105, original: 1_105 },
  anthropic: evenly(1_600),
  google: evenly(1_120),
}
const unknownLikelyImage = evenly(1_600)

/** Tokens of the largest image that a provider accepts. OpenAI's newest models read it in full by default. */
const highestImageTokens: Readonly<Record<string, ImageFigures>> = {
  openai: { low: 320, high: 3_000, auto: 14_500, original: 14_500 },
  anthropic: evenly(4_800),
  google: evenly(1_200),
}
const unknownHighestImage = evenly(16_400)

/** Returns the typical number of tokens of a provider's tokenizer per token of o200k_base. */
export function getFactor(provider: string): number {
  return likelyFactor[provider] ?? unknownLikelyFactor
}

/** Returns the probable token count of a text for models of `provider` (default `openai`). Linear. */
export function estimateTokens(text: string, provider = 'openai'): number {
  const { own, bytes } = measureText(text, answerReadInFull, draw)
  return Math.ceil(Math.min(own * getFactor(provider), bytes))
}

/**
 * Returns the tokens of texts in OpenAI's tokenizer. Not exact where a run of letters is counted in parts, as prose without
 * spaces mostly is, or a long text is sampled.
 */
export function countTokens(texts: readonly string[]): { readonly tokens: number; readonly isExact: boolean } {
  const { own, ownVariance, cuts } = weigh(texts)
  return { tokens: Math.ceil(own), isExact: cuts === 0 && ownVariance === 0 }
}

/** The parts of a request that an upstream may count as input. */
type Weighable = Pick<ChatRequest, 'messages' | 'tools' | 'responseFormat'> &
  Partial<Pick<ChatRequest, 'extras' | 'source' | 'embedding'>>

/**
 * Returns an upper bound of a request's input tokens, which is reserved before the call. Without `provider`, valid for
 * all. For OpenAI it is valid for any text. For others it is a rule: texts of repeated non-words (`bbn` 1,000 times) have
 * up to 4/3 of it in cl100k_base, the most that a search of 150,000 such texts found. Counts texts, names, IDs, tools,
 * schema, passed-on fields, and each image at maximum size.
 */
export function estimateInputTokens(request: Weighable, provider?: string): number {
  const { all, attachments, flat, instructions } = getMeasure(request)
  let tokens = getUpperBound(all, provider) + flat
  for (const item of attachments)
    tokens += item.type === 'image' ? getHighestImage(item.detail, provider) : getHighestFile(item)
  return provider === undefined || provider === 'anthropic' ? tokens + instructions : tokens
}

/** Returns the probable input tokens of a request, which are billed if the provider reports no count. */
export function likelyInputTokens(request: Weighable, provider: string): number {
  const { likely, attachments, flat, instructions } = getMeasure(request)
  let tokens = Math.ceil(Math.min(likely.own * getFactor(provider), likely.bytes)) + flat
  for (const item of attachments)
    tokens += item.type === 'image' ? estimateImageTokens(item.detail, provider) : estimateFileTokens(item)
  return provider === 'anthropic' ? tokens + instructions : tokens
}

/** Returns how many tokens a provider's models need less than the reservation that is valid for all. */
export function tokensSpared(request: Weighable, provider: string): number {
  // Inputs to embed are reserved without the other fields, so nothing can be spared of those.
  if (request.embedding !== undefined) return 0
  return Math.max(0, estimateInputTokens(request) - estimateInputTokens(request, provider))
}

/** Figures of a request that are the same for all providers. `flat` is the form of its messages and tools. */
type Measure = Omit<Weight, 'said'> & {
  readonly likely: TokenEstimate
  readonly flat: number
  readonly instructions: number
}

const unreadImage = { type: 'image', detail: null } as const

/** Remembered, since a request is estimated for its admission, for each attempt and for its settlement. */
const getMeasure = remembered((request: Weighable): Measure => {
  const { messages, tools, extras = {}, source } = request
  const { said, all, attachments } = getWeight(messages)
  const unreadParts = weighParts((source?.unread ?? []).filter(({ kind }) => isInput(kind)))
  const beside = getSum(
    getSum(unreadParts, tools.length === 0 ? nothing : weightOfTools(tools)),
    weightOfFormat(request),
  )
  const unread = (source?.unread ?? []).flatMap(({ images }) => Array.from({ length: images }, () => unreadImage))
  return {
    all: getSum(getSum(all, beside), Object.keys(extras).length > 0 ? weighJson(extras) : nothing),
    likely: getSum(said, beside),
    attachments: [...attachments, ...unread],
    flat: tokensPerMessage + tokensPerMessage * messages.length + tokensPerTool * tools.length,
    instructions: instructionTokens(request),
  }
})

/** Returns the upper bound of a measure: for OpenAI its own tokenizer's count, for others the documented rule. */
export function getUpperBound(measure: TokenEstimate, provider: string | undefined): number {
  const own = (measure.own + measure.cuts + deviations * Math.sqrt(measure.ownVariance)) * roughness
  if (provider === 'openai') return Math.ceil(Math.min(own, measure.bytes))
  const elsewhere =
    (measure.elsewhere + measure.cuts + deviations * Math.sqrt(measure.elsewhereVariance)) * highestFactor
  return Math.ceil(Math.min(elsewhere, measure.bytes))
}

function instructionTokens({ tools, responseFormat }: Pick<ChatRequest, 'tools' | 'responseFormat'>): number {
  const forTools = tools.length > 0 ? anthropicInstructions.tools : 0
  return responseFormat.type === 'json_schema' ? forTools + anthropicInstructions.schema : forTools
}

/** Returns the probable tokens of an image of unknown size. */
export function estimateImageTokens(detail: ImagePart['detail'], provider?: string): number {
  return (likelyImageTokens[provider ?? ''] ?? unknownLikelyImage)[detail ?? 'auto']
}

function getHighestImage(detail: ImagePart['detail'], provider?: string): number {
  return (highestImageTokens[provider ?? ''] ?? unknownHighestImage)[detail ?? 'auto']
}

const nothing: TokenEstimate = { own: 0, ownVariance: 0, elsewhere: 0, elsewhereVariance: 0, cuts: 0, bytes: 0 }

function getSum(item: TokenEstimate, other: TokenEstimate): TokenEstimate {
  if (item === nothing) return other
  if (other === nothing) return item
  return {
    own: item.own + other.own,
    ownVariance: item.ownVariance + other.ownVariance,
    elsewhere: item.elsewhere + other.elsewhere,
    elsewhereVariance: item.elsewhereVariance + other.elsewhereVariance,
    cuts: item.cuts + other.cuts,
    bytes: item.bytes + other.bytes,
  }
}

/** Sums texts. Separate parts never have fewer tokens than their concatenation, except at the cuts. */
function weigh(texts: readonly string[], flat = 0): TokenEstimate {
  let sum = flat === 0 ? nothing : { ...nothing, own: flat, elsewhere: flat, bytes: flat }
  for (const text of texts) sum = getSum(sum, measureText(text, readInFull, draw))
  return sum
}

/** Text of a conversation's turns, and the same with names and IDs, which an upstream may or may not count. */
type Weight = {
  readonly said: TokenEstimate
  readonly all: TokenEstimate
  /** Images and documents, which are estimated for each provider. */
  readonly attachments: readonly (Pick<ImagePart, 'type' | 'detail'> | FilePart)[]
}

/** Remembered, since other requests are made of the same conversation: an enhanced one, one for each attempt. */
const getWeight = remembered((messages: readonly Message[]): Weight => {
  const said = weigh(messages.flatMap(messageTexts), callsIn(messages))
  return { said, all: getSum(said, weigh(messages.flatMap(messageNames))), attachments: getAttachments(messages) }
})

function getAttachments(messages: readonly Message[]): Weight['attachments'] {
  const attachments: (ImagePart | FilePart)[] = []
  for (const message of messages)
    if (message.role === 'user') for (const part of message.content) if (part.type !== 'text') attachments.push(part)
  return attachments
}

/** Returns an upper bound of the tokens of those parts that a provider may read as input, but usually does not. */
export function estimateOpaqueTokens({ source }: Pick<ChatRequest, 'source'>, provider?: string): number {
  const parts = (source?.unread ?? []).filter(({ kind }) => !isInput(kind))
  return parts.length === 0 ? 0 : getUpperBound(weighParts(parts), provider)
}

/** Opaque parts of the client's own body are reserved, but not expected as input. */
function isInput(kind: PromptDefinition['kind']): boolean {
  return kind === 'definition' || kind === 'data'
}

const weighPart = remembered((part: PromptDefinition) => weigh(part.texts, part.values * tokensPerValue))

function weighParts(parts: readonly PromptDefinition[]): TokenEstimate {
  return parts.map(weighPart).reduce(getSum, nothing)
}

function callsIn(messages: readonly Message[]): number {
  return messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? message.toolCalls.length * tokensPerTool : 0),
    0,
  )
}

/** Providers charge a page as its text plus an image: at most about 4,600 tokens. They accept about 100 pages. */
const fileTokens = { least: 4_600, most: 460_000 }
/** Base64 characters per token: three document bytes, typical of compressed text. */
const charactersPerFileToken = 4
/** Factor of the reservation. Text that compresses better causes a shortfall (`docs/decisions/0001`). */
const highestFileFactor = 2

/** Returns the estimated tokens of a document from its size; pages are not counted. */
function estimateFileTokens({ url }: FilePart): number {
  return Math.min(Math.max(Math.ceil(url.length / charactersPerFileToken), fileTokens.least), fileTokens.most)
}

function getHighestFile(file: FilePart): number {
  return Math.min(estimateFileTokens(file) * highestFileFactor, fileTokens.most)
}

const weightOfTools = remembered((tools: readonly Tool[]) =>
  tools
    .map(tool => getSum(weigh([tool.name, tool.description ?? '']), weighJson(tool.parameters)))
    .reduce(getSum, nothing),
)

function weightOfFormat({ responseFormat }: Weighable): TokenEstimate {
  if (responseFormat.type !== 'json_schema') return nothing
  return getSum(weigh([responseFormat.name, responseFormat.description ?? '']), weighJson(responseFormat.schema))
}

/**
 * Measures a JSON value by its keys, values, quotes and brackets without serializing it. Iterative, so that deep values
 * are safe.
 */
function weighJson(value: unknown): TokenEstimate {
  const texts: string[] = []
  let flat = 0
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    flat += 2
    if (Array.isArray(next)) for (const item of next) pending.push(item)
    else if (typeof next === 'object' && next !== null) {
      for (const [key, item] of Object.entries(next)) {
        flat += 2
        texts.push(JSON.stringify(key))
        pending.push(item)
      }
    } else texts.push(JSON.stringify(next) ?? '')
  }
  // Joined into one text: separators count less than the quotes would.
  return weigh([texts.join('\n')], flat)
}
