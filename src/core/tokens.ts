/**
 * Counting tokens, in two ways. `countTokens` runs OpenAI's published tokenizer: exact for its models, but the tables take
 * half a second and 100 MB to load, so only the free estimate asks for it. `estimateTokens` is what the path of a request
 * uses: one pass over characters, each with the average price of its script, and of a change from one to another, since
 * that is where a token ends. Fitted by least squares to o200k_base over prompts in ten languages, code, JSON and prose:
 * for nine prompts of ten within 13 % in English, 40 % elsewhere. Anthropic and Google publish no tokenizer, so what is said
 * of their models is an estimate whichever way.
 */
import type { Ask, FilePart, ImagePart, Message } from './chat.ts'

const classes = [
  // [tokens per character, tokens more where a run of the class begins]
  ['space', 0.049, 0.103],
  ['lower', 0.028, 0.728],
  ['upper', 0.033, 1.166],
  ['digit', 0.305, 1.024],
  ['mark', 0.075, 0.71],
  ['control', 0, 0.582],
  ['accented', 0.02, 0.088],
  ['cyrillic', 0.1, 1.385],
  ['hebrew', 0.42, 0.041],
  ['arabic', 0.24, 0.515],
  ['indic', 0.4, 0],
  ['ideograph', 0.679, 0.671],
  ['kana', 0.506, 0],
  ['hangul', 0.543, 0],
  ['rare', 2, 0],
  ['symbol', 0.95, 0],
  ['surrogate', 0.601, 0.864],
] as const

type CharacterClass = (typeof classes)[number][0]

const numberOf = Object.fromEntries(classes.map(([name], index) => [name, index])) as Record<CharacterClass, number>
const perCharacter = Float64Array.from(classes, row => row[1])
const perRun = Float64Array.from(classes, row => row[2])

/** First code unit after each script's block, in order: everything below it and not below the row before is of its class. */
const blocks: readonly (readonly [end: number, name: CharacterClass])[] = [
  [0x20, 'control'],
  [0x21, 'space'],
  [0x30, 'mark'],
  [0x3a, 'digit'],
  [0x41, 'mark'],
  [0x5b, 'upper'],
  [0x61, 'mark'],
  [0x7b, 'lower'],
  [0x80, 'mark'],
  [0x370, 'accented'],
  [0x590, 'cyrillic'],
  [0x600, 'hebrew'],
  [0x900, 'arabic'],
  [0x1100, 'indic'],
  [0x1200, 'hangul'],
  [0x2000, 'rare'],
  [0x3040, 'symbol'],
  [0x3100, 'kana'],
  [0x3400, 'symbol'],
  [0xa000, 'ideograph'],
  [0xac00, 'rare'],
  [0xd800, 'hangul'],
  [0xe000, 'surrogate'],
  [0x10000, 'symbol'],
]

/** Class of every UTF-16 code unit: one load a character instead of a chain of comparisons. */
const classOf = classTable()

function classTable(): Uint8Array {
  const table = new Uint8Array(0x10000)
  let start = 0
  for (const [end, name] of blocks) {
    table.fill(numberOf[name], start, end)
    start = end
  }
  return table
}

/** Longer texts are sampled: of every `stride` characters, a window of `windowLength` at a place that varies. */
const readInFull = 4_096
const stride = 256
const windowLength = 64

/** Tokens relative to o200k_base. Neither provider publishes its own: read off a few recorded prompts, on the high side. */
const providerFactor: Readonly<Record<string, number>> = { openai: 1, anthropic: 1.25, google: 1.1 }
const unknownProviderFactor = 1.15
const highestProviderFactor = Math.max(...Object.values(providerFactor), unknownProviderFactor)

/** What a reservation adds: the estimate then falls short of the count in one request of a hundred, a few where not English. */
const reservationMargin = 1.25

const tokensPerMessage = 4
const tokensPerTool = 16
/** Anthropic puts instructions of its own in front of tools and of a schema, about as long in recorded traffic. */
const anthropicInstructions = { tools: 350, schema: 200 }

/** Flat, since the picture's size is not known here: about a megapixel in high detail, by each provider's own formula. */
const imageTokens: Readonly<Record<string, Readonly<Record<'low' | 'high', number>>>> = {
  openai: { low: 85, high: 1_105 },
  anthropic: { low: 1_600, high: 1_600 },
  google: { low: 1_120, high: 1_120 },
}
const unknownImageTokens = { low: 1_600, high: 1_600 }

/** Tokens of a text for the models of `provider`, `openai` where none is given. Linear; reads a quarter of long texts. */
export function estimateTokens(text: string, provider = 'openai'): number {
  return Math.ceil(weigh(text) * factorOf(provider))
}

/** How many tokens a provider's tokenizer makes of what o200k_base makes one of. */
export function factorOf(provider: string): number {
  return providerFactor[provider] ?? unknownProviderFactor
}

/**
 * Input tokens of a request, on the high side: what is reserved before a model is asked. With no `provider`, enough for any.
 * Counts texts, tools, schema and a flat figure for each image.
 */
export function estimateInputTokens(ask: Weighable, provider?: string): number {
  return inputTokens(ask, provider, reservationMargin)
}

/** Input tokens of a request as near as we can tell: what is billed where the provider gives no count. */
export function likelyInputTokens(ask: Weighable, provider: string): number {
  return inputTokens(ask, provider, 1)
}

type Weighable = Pick<Ask, 'messages' | 'tools' | 'responseFormat'>

function inputTokens(ask: Weighable, provider: string | undefined, margin: number): number {
  let weight = weightOf(ask.messages)
  let flat = tokensPerMessage
  for (const message of ask.messages) flat += tokensPerMessage + attachmentsOf(message, provider)
  for (const tool of ask.tools) {
    weight += weigh(tool.name) + weigh(tool.description ?? '') + weighJson(tool.parameters)
    flat += tokensPerTool
  }
  if (ask.responseFormat.type === 'json_schema') weight += weighJson(ask.responseFormat.schema)
  if (provider === undefined || provider === 'anthropic') flat += instructionTokens(ask)
  const factor = provider === undefined ? highestProviderFactor : factorOf(provider)
  return Math.ceil(weight * factor * margin) + flat
}

function instructionTokens({ tools, responseFormat }: Pick<Ask, 'tools' | 'responseFormat'>): number {
  const forTools = tools.length > 0 ? anthropicInstructions.tools : 0
  return responseFormat.type === 'json_schema' ? forTools + anthropicInstructions.schema : forTools
}

/** Tokens that an image counts for, whatever its size. */
export function estimateImageTokens(detail: ImagePart['detail'], provider?: string): number {
  const figures = imageTokens[provider ?? ''] ?? unknownImageTokens
  return detail === 'low' ? figures.low : figures.high
}

/** A conversation is weighed for its reservation, and once more when it has been answered. */
const weights = new WeakMap<readonly Message[], number>()

function weightOf(messages: readonly Message[]): number {
  let weight = weights.get(messages)
  if (weight === undefined) {
    weight = messages.reduce((sum, message) => sum + weighMessage(message), 0)
    weights.set(messages, weight)
  }
  return weight
}

function weighMessage(message: Message): number {
  switch (message.role) {
    case 'system':
    case 'tool':
      return weigh(message.text)
    case 'user':
      return message.content.reduce((sum, part) => sum + (part.type === 'text' ? weigh(part.text) : 0), 0)
    case 'assistant':
      return message.toolCalls.reduce(
        (sum, call) => sum + tokensPerTool + weigh(call.name) + weigh(call.arguments),
        weigh(message.text ?? '') + weigh(message.reasoning ?? ''),
      )
  }
}

/** A page is charged as its text and as a picture: at most about 4,600 tokens. The providers take about 100 pages. */
const fileTokens = { least: 4_600, most: 460_000 }
/** Of the base64 text: three bytes of a document per token, which holds for compressed text. */
const charactersPerFileToken = 4

/** Tokens of a document, by its size: its pages are not counted here. */
export function estimateFileTokens({ url }: FilePart): number {
  return Math.min(Math.max(Math.ceil(url.length / charactersPerFileToken), fileTokens.least), fileTokens.most)
}

function attachmentsOf(message: Message, provider: string | undefined): number {
  if (message.role !== 'user') return 0
  return message.content.reduce((sum, part) => {
    if (part.type === 'text') return sum
    return sum + (part.type === 'image' ? estimateImageTokens(part.detail, provider) : estimateFileTokens(part))
  }, 0)
}

/** A JSON value by its keys, strings and brackets, without writing it out; by a list and not by recursion, however deep. */
function weighJson(value: unknown): number {
  let weight = 0
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    weight += 1
    if (typeof next === 'string') weight += weigh(next)
    else if (Array.isArray(next)) for (const item of next) pending.push(item)
    else if (typeof next === 'object' && next !== null) {
      for (const [key, item] of Object.entries(next)) {
        weight += 1 + weigh(key)
        pending.push(item)
      }
    }
  }
  return weight
}

function weigh(text: string): number {
  const { length } = text
  if (length <= readInFull) return weighPiece(text, 0, length)
  let weight = 0
  let read = 0
  for (let block = 0, start = 0; start < length; block += 1, start += stride) {
    // Scattered by a multiplicative hash, so that text with a period of its own is not always met at the same place.
    const from = start + ((Math.imul(block, 0x9e3779b1) >>> 16) % (stride - windowLength))
    const to = Math.min(from + windowLength, length)
    if (from >= to) continue
    weight += weighPiece(text, from, to)
    read += to - from
  }
  return (weight * length) / read
}

/** By class and the class before it, what a character adds that begins a run; 0 where it begins none. A capitalised word is one run. */
const ofBeginning = Float64Array.from({ length: classes.length ** 2 }, (_, pair) => {
  const before = Math.floor(pair / classes.length)
  const now = pair % classes.length
  return now === before || (now === numberOf.lower && before === numberOf.upper) ? 0 : (perRun[now] ?? 0)
})

/** Starts as if after a space: a window that opens inside a word counts its beginning, which errs on the high side. */
function weighPiece(text: string, from: number, to: number): number {
  let weight = 0
  let before: number = numberOf.space
  for (let at = from; at < to; at += 1) {
    const now = classOf[text.charCodeAt(at)] ?? numberOf.rare
    // Added without a branch: nobody could guess where a word ends.
    weight += perCharacter[now] ?? 0
    weight += ofBeginning[before * classes.length + now] ?? 0
    before = now
  }
  return weight
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

function isLetter(text: string, at: number): boolean {
  const found = classOf[text.charCodeAt(at)]
  return found === numberOf.lower || found === numberOf.upper || found === numberOf.cyrillic
}
