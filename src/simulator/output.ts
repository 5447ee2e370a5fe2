/**
 * Output of a simulated model: a labeled, useful, deterministic text, a tool call, or a value of the requested schema
 * (one plausible value for each of its parts).
 */
import { continueFrom, readLastWords } from './continued.ts'
import { type Directives, withoutDirectives } from './directives.ts'
import type { CacheUse } from './prompt-cache.ts'
import {
  countOutputTokens,
  isWireObject,
  numberOr,
  type Output,
  objectsIn,
  type SimulatedRequest,
  type SimulatedUsage,
  type WireObject,
} from './wire-format.ts'

const charactersPerToken = 4
const tokensPerImage = 300
const maximumCalls = 64

const remarks = [
  'No language model was called: a simulated provider wrote this.',
  'It speaks the wire format of the real one over a socket, so all but the words is as in production.',
  'Set the provider’s API key, and the same request reaches the real model.',
  'The same prompt always gets the same words here.',
  'Token counts are taken at four characters each.',
  'Directives in the prompt change the length, the pace and the faults of this answer.',
  'GET /simulator/directives lists them all.',
  'Sentences are kept short, so that a paced delivery can be seen.',
] as const

const thoughts = [
  'The question is read once more to see what it asks for.',
  'The output should say clearly that it is simulated.',
] as const

/** Returns the output of one choice, from 0. */
export function createOutput(question: SimulatedRequest, directives: Directives, choice: number): Output {
  const cap = directives.ignore_cap || question.outputCap === null ? Number.POSITIVE_INFINITY : question.outputCap
  const reasoningTokens = Math.min(directives.reasoning ?? question.reasoningTokens, cap)
  const silent = { reasoning: '', text: '', refusal: null, calls: [], stopSequence: null }
  if (directives.empty || directives.refusal) {
    const refusal = directives.refusal ? 'I cannot help with that, says the simulated model.' : null
    return { ...silent, refusal, finish: directives.finish ?? 'stop' }
  }

  const reasoning = cycle(thoughts, 0, reasoningTokens * charactersPerToken)
  const calls = createCalls(question, directives)
  const room = (cap - reasoningTokens) * charactersPerToken
  const preamble = directives.preamble ? 'Let me look that up. ' : ''
  // One character more than fits, so that the cap takes effect visibly.
  const whole = calls.length > 0 ? preamble : createText(question, directives, choice, room + 1)
  const stopped = cutAtStop(whole, question.stops)
  const needed = stopped.text.length + calls.reduce((sum, call) => sum + JSON.stringify(call).length, 0)
  if (needed > room) {
    // Output truncated by the cap contains no call, because its arguments would be incomplete.
    return { ...silent, reasoning, text: stopped.text.slice(0, room), finish: directives.finish ?? 'length' }
  }
  if (directives.content_filter) {
    const half = stopped.text.slice(0, Math.ceil(stopped.text.length / 2))
    return { ...silent, reasoning, text: half, finish: 'content_filter' }
  }
  const finish = directives.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')
  return { reasoning, text: stopped.text, refusal: null, calls, finish, stopSequence: stopped.by }
}

/** Returns the token counts of the outputs, modified by directives; null = the provider reports none. */
export function countUsage(
  question: SimulatedRequest,
  directives: Directives,
  outputs: readonly Output[],
  cache: (inputTokens: number) => CacheUse,
): SimulatedUsage | null {
  if (directives.no_usage) return null
  const wrong = [
    directives.usage_zero && 0,
    directives.usage_absurd && 1e12,
    directives.usage_negative && -5,
    // JSON has null for it.
    directives.usage_nan && Number.NaN,
  ].find(count => typeof count === 'number')
  if (wrong !== undefined) return { input: wrong, cached: 0, cacheWrite: 0, output: wrong, reasoning: 0 }
  const input = Math.max(1, question.inputTokens + (question.images + question.files) * tokensPerImage)
  const used = cache(input)
  const cached = Math.min(input, directives.cached ?? used.cached)
  const reasoning = outputs.reduce((sum, output) => sum + countOutputTokens(output.reasoning), 0)
  return {
    input,
    cached,
    cacheWrite: Math.min(input - cached, directives.cache_write ?? used.written),
    output: reasoning + outputs.reduce((sum, output) => sum + countVisible(output), 0),
    reasoning,
  }
}

function countVisible({ text, refusal, calls }: Output): number {
  const callTokens = calls.reduce((sum, call) => sum + countOutputTokens(JSON.stringify(call)), 0)
  return countOutputTokens(text) + countOutputTokens(refusal ?? '') + callTokens
}

function createCalls(question: SimulatedRequest, directives: Directives): Output['calls'] {
  const { tools, toolChoice, toolResults } = question
  if (toolResults.length > 0 || toolChoice === 'none') return []
  const named = directives.tool ?? (typeof toolChoice === 'object' ? toolChoice.name : null)
  const wanted = directives.parallel ?? (named !== null || toolChoice === 'required' ? 1 : 0)
  const names = named === null ? tools.map(tool => tool.name) : [named]
  const count = names.length === 0 ? 0 : Math.min(wanted, question.parallelCalls ? maximumCalls : 1)
  return Array.from({ length: count }, (_, index) => {
    const name = names[index % names.length] ?? ''
    const schema = tools.find(tool => tool.name === name)?.schema
    return { name, arguments: schema == null ? {} : createSchemaValue(schema) }
  })
}

/** Returns the text. `most` = maximum characters needed. */
function createText(question: SimulatedRequest, directives: Directives, choice: number, most: number): string {
  if (question.json?.schema != null) return JSON.stringify(createSchemaValue(question.json.schema))
  if (question.json !== null) return JSON.stringify({ simulated: true, model: question.model })
  const words = readLastWords(question.userTexts.at(-1) ?? '')
  const asked = withoutDirectives(question.userTexts.at(words === null ? -1 : -2) ?? '')
  const opening = `[simulated ${question.model}] ${describeSubject(question, asked)} `
  const seed = Bun.hash.xxHash32(`${question.model} ${asked.slice(0, 4_096)}`) + choice
  const { tokens } = directives
  const characters = tokens === undefined ? Number.POSITIVE_INFINITY : tokens * charactersPerToken
  // A continuation is the end of a longer text.
  const needed = Math.min(characters, words === null ? most : question.textBefore.length + most)
  const rest =
    tokens === undefined
      ? rotated(remarks, seed).slice(0, 4).join(' ')
      : cycle(remarks, seed, Math.max(0, needed - opening.length))
  const text = (opening + rest).slice(0, characters)
  return words === null ? text : continueFrom(text, question.textBefore, words)
}

function describeSubject({ toolResults, images, files }: SimulatedRequest, asked: string): string {
  if (toolResults.length > 0) return `The tool answered: ${toolResults.map(result => quote(result, 200)).join(', ')}.`
  const seen = [
    images === 0 ? '' : ` You sent ${images === 1 ? 'an image' : `${images} images`}, which a simulator cannot see.`,
    files === 0 ? '' : ` You sent ${files === 1 ? 'a file' : `${files} files`}, which a simulator cannot read.`,
  ].join('')
  if (asked === '') return `You asked nothing.${seen}`
  return `You asked: ${quote(asked, 120)}${/[.!?…]$/.test(asked) ? '' : '.'}${seen}`
}

function quote(text: string, most: number): string {
  const characters = [...text.slice(0, 2 * most)]
  return `“${characters.length > most ? `${characters.slice(0, most).join('')}…` : characters.join('')}”`
}

function cutAtStop(text: string, stops: readonly string[]) {
  let cut = { text, by: null as string | null }
  for (const stop of stops) {
    const at = stop === '' ? -1 : cut.text.indexOf(stop)
    if (at >= 0) cut = { text: text.slice(0, at), by: stop }
  }
  return cut
}

function rotated(items: readonly string[], by: number): readonly string[] {
  return items.map((_, index) => items[(index + by) % items.length] ?? '')
}

/** Repeats sentences up to a number of characters. */
function cycle(sentences: readonly string[], start: number, characters: number): string {
  const round = `${rotated(sentences, start).join(' ')} `
  return round.repeat(Math.ceil(characters / round.length)).slice(0, characters)
}

/** A few schemas that refer to each other expand without bound. */
const maximumSchemas = 1_000
const maximumReferences = 8
const maximumItems = 100

const formatExamples: ReadonlyMap<unknown, string> = new Map([
  ['date', '2026-01-31'],
  ['date-time', '2026-01-31T12:00:00Z'],
  ['email', 'simulated@example.com'],
  ['uri', 'https://example.com/simulated'],
  ['uuid', '00000000-0000-4000-8000-000000000000'],
])

/** `references` = those followed on the way here. */
type Place = { readonly name: string; readonly references: readonly string[] }
type Making = { readonly root: unknown; left: number }

/**
 * Returns a small deterministic value: the first option of a choice, the required members of an object (all if none is
 * required), one item of a list. Ignores patterns, conditions and negations. Ends recursion as early as possible.
 */
function createSchemaValue(schema: unknown): unknown {
  return make(schema, { root: schema, left: maximumSchemas }, { name: 'value', references: [] })
}

function make(given: unknown, making: Making, place: Place): unknown {
  const isEndless = --making.left <= 0 || place.references.length > maximumReferences
  if (!isWireObject(given) || isEndless) return `simulated ${place.name}`
  const { $ref, allOf, anyOf, oneOf, ...own } = given
  if (typeof $ref === 'string') {
    const references = [...place.references, $ref]
    return make(mergeParts([own, { $ref }], making.root), making, { ...place, references })
  }
  if (Array.isArray(allOf)) return make(mergeParts([own, ...objectsIn(allOf)], making.root), making, place)
  const options = [anyOf, oneOf].find(list => Array.isArray(list) && list.length > 0)
  if (Array.isArray(options)) {
    const [first] = options.toSorted((left, right) => rank(left, place) - rank(right, place))
    const { $ref: reference, ...option } = asSchema(first)
    return make({ ...mergeParts([own, option], making.root), $ref: reference }, making, place)
  }
  if ('const' in own) return own.const
  if (Array.isArray(own.enum) && own.enum.length > 0) return own.enum[0]
  switch (findType(own)) {
    case 'object':
      return makeObject(own, making, place)
    case 'array':
      return makeArray(own, making, place)
    case 'number':
    case 'integer':
      return makeNumber(own)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return makeText(own, place)
  }
}

/** Gemini's older schemas write types in capitals. */
function findType(schema: WireObject): string {
  const types = [schema.type].flat().flatMap(type => (typeof type === 'string' ? [type.toLowerCase()] : []))
  const [stated = types[0]] = types.filter(type => type !== 'null')
  if (stated !== undefined) return stated
  if ('properties' in schema || 'required' in schema) return 'object'
  return 'items' in schema || 'prefixItems' in schema ? 'array' : 'string'
}

function makeObject(schema: WireObject, making: Making, place: Place): WireObject {
  const properties = asSchema(schema.properties)
  const required = listNames(schema.required)
  const optional = Object.keys(properties).filter(name => !leadsBack(properties[name], place))
  const names = required.length > 0 ? required : optional
  const member = (name: string) => (Object.hasOwn(properties, name) ? properties[name] : null)
  return Object.fromEntries(names.map(name => [name, make(member(name), making, { ...place, name })]))
}

function makeArray(schema: WireObject, making: Making, place: Place): readonly unknown[] {
  if (Array.isArray(schema.prefixItems)) return schema.prefixItems.map(item => make(item, making, place))
  const usual = leadsBack(schema.items, place) ? 0 : 1
  const length = Math.min(Math.max(usual, numberOr(schema.minItems, 0)), numberOr(schema.maxItems, 1e9), maximumItems)
  return Array.from({ length }, () => make(schema.items, making, place))
}

function makeNumber(schema: WireObject): number {
  const low = numberOr(schema.minimum, numberOr(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY))
  const high = numberOr(schema.maximum, numberOr(schema.exclusiveMaximum, Number.POSITIVE_INFINITY))
  const unit = numberOr(schema.multipleOf, findType(schema) === 'integer' ? 1 : 0)
  const isUsual = low <= 1 && 1 <= high && schema.exclusiveMinimum !== 1 && schema.exclusiveMaximum !== 1
  const middle = Number.isFinite(low) && Number.isFinite(high) ? (low + high) / 2 : low >= 1 ? low + 1 : high - 1
  const value = isUsual ? 1 : middle
  return unit === 0 ? value : Math.ceil(value / unit) * unit
}

function makeText(schema: WireObject, { name }: Place): string {
  const text = (formatExamples.get(schema.format) ?? `simulated ${name}`).padEnd(numberOr(schema.minLength, 0), '.')
  return text.slice(0, numberOr(schema.maxLength, text.length))
}

/** Prefers options that do not lead back to a followed reference, and null only before those. */
function rank(option: unknown, place: Place): number {
  if (leadsBack(option, place)) return 2
  return asSchema(option).type === 'null' ? 1 : 0
}

function leadsBack(schema: unknown, { references }: Place): boolean {
  const text = references.length === 0 ? '' : JSON.stringify(schema ?? null)
  return references.some(reference => text.includes(`"$ref":${JSON.stringify(reference)}`))
}

/** Merges the parts of `allOf`; members and required names add up. */
function mergeParts(parts: readonly WireObject[], root: unknown): WireObject {
  const whole = parts.map(
    (part): WireObject => ({ ...part, ...asSchema(findSchema(part.$ref, root)), $ref: undefined }),
  )
  const required = whole.flatMap(part => listNames(part.required))
  const properties = Object.assign({}, ...whole.map(part => part.properties))
  return {
    ...Object.assign({}, ...whole),
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
  }
}

function findSchema(reference: unknown, root: unknown): unknown {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return {}
  const names = reference.split('/').slice(1)
  return names.reduce<unknown>((at, name) => (isWireObject(at) && Object.hasOwn(at, name) ? at[name] : {}), root)
}

function listNames(value: unknown): readonly string[] {
  return [value].flat().filter(name => typeof name === 'string')
}

function asSchema(value: unknown): WireObject {
  return isWireObject(value) ? value : {}
}
