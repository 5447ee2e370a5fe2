/**
 * Counting tokens, in three ways that are kept apart by name. `estimateInputTokens` is what is reserved: an upper bound of what
 * an upstream counts, whatever the text. `likelyInputTokens` and `estimateTokens` are the best guess: what is billed where
 * the upstream gives no count. `countTokens` runs the published tokenizer, for the free estimate, in a thread of its own.
 *
 * The first two measure texts by o200k_base (`pieces-of-text.ts`), which is exact for OpenAI. Anthropic and Google publish no
 * tokenizer, so a bound for their models is a rule of ours: what the most wasteful known tokenizers make of each token, times
 * a factor, and never more than one token for each byte.
 */
import type { ChatRequest, FilePart, ImagePart, Message, Tool } from '../chat/chat.ts'
import { type Measure, measureText } from './pieces-of-text.ts'

/** Characters up to which a text is counted in full; of a longer one about as many are drawn at random. */
const readInFull = 32_768
/** Less where an answer is counted again and again while it arrives. */
const answerReadInFull = 8_192

/** Tokens relative to o200k_base as a rule: read off a few recorded prompts. */
const likelyFactor: Readonly<Record<string, number>> = { openai: 1, anthropic: 1.25, google: 1.1 }
const unknownLikelyFactor = 1.15

/** Tokens at most, relative to the weights elsewhere. Anthropic says of its newest tokenizer: up to 1.35 times the one before. */
const highestFactor = 1.5
/** For lone surrogates, and for a few letters that the package cuts elsewhere: over random texts 0.8% at most. */
const roughness = 1.01
/** Standard deviations that a bound adds to the measure of a text that was sampled: exceeded once in 30,000 times. */
const deviations = 4

const tokensPerMessage = 4
const tokensPerTool = 16
/** Anthropic puts instructions of its own in front of tools and of a schema, about as long in recorded traffic. */
const anthropicInstructions = { tools: 350, schema: 200 }

type ImageFigures = Readonly<Record<'low' | 'high' | 'auto', number>>
const evenly = (tokens: number): ImageFigures => ({ low: tokens, high: tokens, auto: tokens })

/** Flat, since the picture's size is not known here: about a megapixel, by each provider's own formula. */
const likelyImageTokens: Readonly<Record<string, ImageFigures>> = {
  openai: { low: 85, high: 1_105, auto: 1_105 },
  anthropic: evenly(1_600),
  google: evenly(1_120),
}
const unknownLikelyImage = evenly(1_600)

/** What the largest picture that a provider takes counts for. OpenAI's newest models read it in full unless told otherwise. */
const highestImageTokens: Readonly<Record<string, ImageFigures>> = {
  openai: { low: 320, high: 3_000, auto: 14_500 },
  anthropic: evenly(4_800),
  google: evenly(1_200),
}
const unknownHighestImage = evenly(16_400)

/** How many tokens a provider's tokenizer makes of what o200k_base makes one of, as a rule. */
export function factorOf(provider: string): number {
  return likelyFactor[provider] ?? unknownLikelyFactor
}

/** Tokens that a text probably has for the models of `provider`, `openai` where none is given. Linear. */
export function estimateTokens(text: string, provider = 'openai'): number {
  const { own, bytes } = measureText(text, answerReadInFull)
  return Math.ceil(Math.min(own * factorOf(provider), bytes))
}

/** What of a request an upstream may count as input. */
export type Weighable = Pick<ChatRequest, 'messages' | 'tools' | 'responseFormat'> &
  Partial<Pick<ChatRequest, 'extras' | 'source'>>

/**
 * Input tokens of a request at most: what is reserved before a model is asked. With no `provider`, enough for any. Counts texts,
 * names, ids, tools, schema, fields that are passed on, and for each image as many as the largest one has.
 */
export function estimateInputTokens(ask: Weighable, provider?: string): number {
  let flat = tokensPerMessage + tokensPerMessage * ask.messages.length + tokensPerTool * ask.tools.length
  for (const detail of imagesOf(ask.messages)) flat += highestImageOf(detail, provider)
  for (const file of filesOf(ask.messages)) flat += highestFileOf(file)
  if (provider === undefined || provider === 'anthropic') flat += instructionTokens(ask)
  return highestOf(weightOfAll(ask), provider) + flat
}

/** Input tokens of a request as near as we can tell: what is billed where the provider gives no count. */
export function likelyInputTokens(ask: Weighable, provider: string): number {
  let flat = tokensPerMessage + tokensPerMessage * ask.messages.length + tokensPerTool * ask.tools.length
  for (const detail of imagesOf(ask.messages)) flat += estimateImageTokens(detail, provider)
  for (const file of filesOf(ask.messages)) flat += estimateFileTokens(file)
  if (provider === 'anthropic') flat += instructionTokens(ask)
  const parts = [weightOf(ask.messages).said, weightOfUnread(ask), weightOfTools(ask.tools), weightOfFormat(ask)]
  const { own, bytes } = parts.reduce(sumOf)
  return Math.ceil(Math.min(own * factorOf(provider), bytes)) + flat
}

/** How many tokens fewer a provider's models need than a reservation that is enough for any. */
export function tokensSpared(ask: Weighable, provider: string): number {
  return Math.max(0, estimateInputTokens(ask) - estimateInputTokens(ask, provider))
}

/** The bound of a measure: for OpenAI its own tokenizer's count, elsewhere the documented rule. */
function highestOf(measure: Measure, provider: string | undefined): number {
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

/** Tokens that an image probably counts for, whatever its size. */
export function estimateImageTokens(detail: ImagePart['detail'], provider?: string): number {
  return (likelyImageTokens[provider ?? ''] ?? unknownLikelyImage)[detail ?? 'auto']
}

function highestImageOf(detail: ImagePart['detail'], provider?: string): number {
  return (highestImageTokens[provider ?? ''] ?? unknownHighestImage)[detail ?? 'auto']
}

function* imagesOf(messages: readonly Message[]): Generator<ImagePart['detail']> {
  for (const message of messages)
    if (message.role === 'user') for (const part of message.content) if (part.type === 'image') yield part.detail
}

const nothing: Measure = { own: 0, ownVariance: 0, elsewhere: 0, elsewhereVariance: 0, cuts: 0, bytes: 0 }

function sumOf(one: Measure, other: Measure): Measure {
  return {
    own: one.own + other.own,
    ownVariance: one.ownVariance + other.ownVariance,
    elsewhere: one.elsewhere + other.elsewhere,
    elsewhereVariance: one.elsewhereVariance + other.elsewhereVariance,
    cuts: one.cuts + other.cuts,
    bytes: one.bytes + other.bytes,
  }
}

/** Several parts are never fewer tokens than they are when joined, give or take the cut. */
function weigh(texts: readonly string[], flat = 0): Measure {
  let sum = flat === 0 ? nothing : { ...nothing, own: flat, elsewhere: flat, bytes: flat }
  for (const text of texts) {
    const measure = measureText(text, readInFull)
    sum = sum === nothing ? measure : sumOf(sum, measure)
  }
  return sum
}

/** What a conversation's turns say, and their names and ids, which an upstream may count or not. */
type Weight = { readonly said: Measure; readonly all: Measure }

/** A conversation is weighed for its reservation, and once more when it has been answered. */
const weights = new WeakMap<readonly Message[], Weight>()
const toolWeights = new WeakMap<readonly Tool[], Measure>()

function weightOf(messages: readonly Message[]): Weight {
  let weight = weights.get(messages)
  if (weight === undefined) {
    const said = weigh(messages.flatMap(textsOf), callsIn(messages))
    const beside = weigh(messages.flatMap(namesOf))
    weight = { said, all: beside === nothing ? said : sumOf(said, beside) }
    weights.set(messages, weight)
  }
  return weight
}

/** Asked for several times in a request: the whole weight is kept if the messages are all there is. */
function weightOfAll(ask: Weighable): Measure {
  const { all } = weightOf(ask.messages)
  const others = [weightOfUnread(ask), weightOfTools(ask.tools), weightOfRest(ask)]
  const beside = others.filter(weight => weight !== nothing)
  return beside.reduce(sumOf, all)
}

function weightOfUnread({ source }: Weighable): Measure {
  const { unread = [] } = source ?? {}
  return unread.length === 0 ? nothing : weightOf(unread).all
}

function callsIn(messages: readonly Message[]): number {
  return messages.reduce((sum, one) => sum + (one.role === 'assistant' ? one.toolCalls.length * tokensPerTool : 0), 0)
}

function textsOf(message: Message): string[] {
  switch (message.role) {
    case 'system':
    case 'tool':
      return [message.text]
    case 'user':
      return message.content.flatMap(part => (part.type === 'text' ? [part.text] : []))
    case 'assistant':
      return [
        ...[message.text, message.reasoning].filter(text => text !== null),
        ...(message.reasoningItems ?? []).map(item => item.text),
        ...message.toolCalls.flatMap(call => [call.name, call.arguments]),
      ]
  }
}

function namesOf(message: Message): string[] {
  switch (message.role) {
    case 'system':
      return []
    case 'tool':
      return [message.callId]
    case 'user':
      return message.name === null ? [] : [message.name]
    case 'assistant':
      return [...(message.name === null ? [] : [message.name]), ...message.toolCalls.map(call => call.id)]
  }
}

/** A page is charged as its text and as a picture: at most about 4,600 tokens. The providers take about 100 pages. */
const fileTokens = { least: 4_600, most: 460_000 }
/** Of the base64 text: three bytes of a document per token, which holds for compressed text. */
const charactersPerFileToken = 4
/** What is reserved relative to that. Text that compresses better is a shortfall (`docs/decisions/0001`). */
const highestFileFactor = 2

/** Returns the tokens of a document, by its size: its pages are not counted here. */
export function estimateFileTokens({ url }: FilePart): number {
  return Math.min(Math.max(Math.ceil(url.length / charactersPerFileToken), fileTokens.least), fileTokens.most)
}

function highestFileOf(file: FilePart): number {
  return Math.min(estimateFileTokens(file) * highestFileFactor, fileTokens.most)
}

function* filesOf(messages: readonly Message[]): Generator<FilePart> {
  for (const message of messages)
    if (message.role === 'user') for (const part of message.content) if (part.type === 'file') yield part
}

function weightOfTools(tools: readonly Tool[]): Measure {
  if (tools.length === 0) return nothing
  let weight = toolWeights.get(tools)
  if (weight === undefined) {
    weight = tools
      .map(tool => sumOf(weigh([tool.name, tool.description ?? '']), weighJson(tool.parameters)))
      .reduce(sumOf, nothing)
    toolWeights.set(tools, weight)
  }
  return weight
}

function weightOfFormat({ responseFormat }: Weighable): Measure {
  if (responseFormat.type !== 'json_schema') return nothing
  return sumOf(weigh([responseFormat.name, responseFormat.description ?? '']), weighJson(responseFormat.schema))
}

function weightOfRest(ask: Weighable): Measure {
  const { extras } = ask
  const hasExtras = extras !== undefined && Object.keys(extras).length > 0
  return hasExtras ? sumOf(weightOfFormat(ask), weighJson(extras)) : weightOfFormat(ask)
}

/** A JSON value by its keys, values, quotes and brackets, without writing it out; by a list and not by recursion, however deep. */
function weighJson(value: unknown): Measure {
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
  // One text of all: what joins them counts for less than the quotes would.
  return weigh([texts.join('\n')], flat)
}

type Encoding = typeof import('gpt-tokenizer/encoding/o200k_base')

/** The tokenizer's time grows with the square of an unbroken run, so it is never given more than this at once. */
const sliceLength = 512
/** Some milliseconds of the worst text. */
const slicesATurn = 8

/** A text's own `<|endoftext|>` is text. */
const asText = { disallowedSpecial: new Set<string>() }

let encoding: Promise<Encoding> | null = null

/**
 * Tokens of a text in o200k_base, the newest tokenizer that OpenAI has published. Linear: the text goes through in
 * slices cut between two words, which changes nothing; a run of 512 characters without such a place is cut inside, which may
 * add a token. Between slices of longer texts others get their turn.
 */
export async function countTokens(text: string): Promise<number> {
  encoding ??= import('gpt-tokenizer/encoding/o200k_base')
  const { countTokens: count } = await encoding
  let tokens = 0
  for (let from = 0, slices = 1; from < text.length; slices += 1) {
    const to = cutAt(text, from)
    tokens += count(text.slice(from, to), asText)
    from = to
    if (slices % slicesATurn === 0) await new Promise(resolve => setImmediate(resolve))
  }
  return tokens
}

/** The last place in the slice where a letter is followed by a space and a letter: there the tokenizer always cuts. */
function cutAt(text: string, from: number): number {
  const end = from + sliceLength
  if (end >= text.length) return text.length
  for (let at = end; at > from + 1; at -= 1) {
    if (text.charCodeAt(at) === 0x20 && isLetter(text, at - 1) && isLetter(text, at + 1)) return at
  }
  const splitsPair = (text.charCodeAt(end) & 0xfc00) === 0xdc00
  return splitsPair ? end - 1 : end
}

const letter = /[A-Za-z\u0400-\u04ff]/

function isLetter(text: string, at: number): boolean {
  return letter.test(text.charAt(at))
}
