/**
 * Output of a simulated model: a labeled, useful, deterministic text, a tool call, or an instance of the requested
 * schema.
 */
import type { Directives } from './directives.ts'
import { withoutDirectives } from './directives.ts'
import { instanceOf } from './instance.ts'
import type { CacheUse } from './prompt-cache.ts'
import { jsonDescribed } from './prompt-json.ts'
import { type Answer, type SimulatedRequest, type SimulatedUsage, tokensOf } from './wire-format.ts'

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
  'A simulated model has nothing to look up, so the answer can be short.',
  'It should say clearly that it is simulated.',
  'That is enough to begin.',
] as const

/** Returns the output of one choice, from 0. */
export function answerTo(question: SimulatedRequest, directives: Directives, choice: number): Answer {
  const cap = directives.ignore_cap || question.outputCap === null ? Number.POSITIVE_INFINITY : question.outputCap
  const reasoningTokens = Math.min(directives.reasoning ?? question.reasoningTokens, cap)
  const silent = { reasoning: '', text: '', refusal: null, calls: [], stopSequence: null }
  if (directives.empty) return { ...silent, finish: directives.finish ?? 'stop' }
  if (directives.refusal) {
    return {
      ...silent,
      refusal: 'I cannot help with that, says the simulated model.',
      finish: directives.finish ?? 'stop',
    }
  }

  const reasoning = cycle(thoughts, 0, reasoningTokens * charactersPerToken)
  const calls = callsFor(question, directives)
  const room = (cap - reasoningTokens) * charactersPerToken
  const preamble = directives.preamble ? 'Let me look that up. ' : ''
  // One character more than fits, so that the cap takes effect visibly.
  const whole = calls.length > 0 ? preamble : textFor(question, directives, choice, room + 1)
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
export function simulatedUsageOf(
  question: SimulatedRequest,
  directives: Directives,
  answers: readonly Answer[],
  cache: (inputTokens: number) => CacheUse,
): SimulatedUsage | null {
  if (directives.no_usage) return null
  if (directives.usage_zero) return { input: 0, cached: 0, cacheWrite: 0, output: 0, reasoning: 0 }
  if (directives.usage_absurd) return { input: 1e12, cached: 0, cacheWrite: 0, output: 1e12, reasoning: 0 }
  if (directives.usage_negative) return { input: -5, cached: 0, cacheWrite: 0, output: -5, reasoning: 0 }
  if (directives.usage_nan) return { input: 'NaN', cached: 'NaN', cacheWrite: 'NaN', output: 'NaN', reasoning: 'NaN' }
  const input = Math.max(1, question.inputTokens + (question.images + question.files) * tokensPerImage)
  const used = cache(input)
  const cached = Math.min(input, directives.cached ?? used.cached)
  const reasoning = answers.reduce((sum, answer) => sum + tokensOf(answer.reasoning), 0)
  return {
    input,
    cached,
    cacheWrite: Math.min(input - cached, directives.cache_write ?? used.written),
    hourCacheWrite: directives.cache_write === undefined ? used.hourWritten : 0,
    output: reasoning + answers.reduce((sum, answer) => sum + visibleTokens(answer), 0),
    reasoning,
  }
}

function visibleTokens({ text, refusal, calls }: Answer): number {
  const callTokens = calls.reduce((sum, call) => sum + tokensOf(JSON.stringify(call)), 0)
  return tokensOf(text) + tokensOf(refusal ?? '') + callTokens
}

function callsFor(question: SimulatedRequest, directives: Directives): Answer['calls'] {
  const { tools, toolChoice, toolResults } = question
  if (toolResults.length > 0 || toolChoice === 'none') return []
  const named = directives.tool ?? (typeof toolChoice === 'object' ? toolChoice.name : null)
  const wanted = directives.parallel ?? (named !== null || toolChoice === 'required' ? 1 : 0)
  const names = named === null ? tools.map(tool => tool.name) : [named]
  const asked = askedIn(question)
  const count = names.length === 0 ? 0 : Math.min(wanted, question.parallelCalls ? maximumCalls : 1)
  return Array.from({ length: count }, (_, index) => {
    const name = names[index % names.length] ?? ''
    const schema = tools.find(tool => tool.name === name)?.schema
    return { name, arguments: schema == null ? {} : instanceOf(schema, asked) }
  })
}

/** Returns the text. `most` = maximum characters needed. */
function textFor(question: SimulatedRequest, directives: Directives, choice: number, most: number): string {
  const asked = askedIn(question)
  if (question.json?.schema != null) return JSON.stringify(instanceOf(question.json.schema, asked))
  const described = jsonInWords(question, asked)
  if (described !== null) return JSON.stringify(described)
  if (question.json !== null) return JSON.stringify({ simulated: true, model: question.model })
  const opening = `[simulated ${question.model}] ${subjectOf(question, asked)} `
  const seed = hash(`${question.model} ${asked}`) + choice
  if (directives.tokens === undefined) return opening + rotated(remarks, seed).slice(0, 4).join(' ')
  const characters = Math.min(directives.tokens * charactersPerToken, most)
  return (opening + cycle(remarks, seed, Math.max(0, characters - opening.length))).slice(0, characters)
}

const askedIn = ({ userTexts }: SimulatedRequest) => withoutDirectives(userTexts.at(-1) ?? '')

/** Returns JSON as described in the prompt; null if none is requested, or its content is not described. */
function jsonInWords({ instructions, json, toolResults, model }: SimulatedRequest, asked: string): unknown {
  if (toolResults.length > 0 && json === null) return null
  const described = jsonDescribed([instructions, asked])
  if (described === null) return null
  const value = instanceOf(described.schema, described.subject)
  return JSON.stringify(value) === '{}' ? { simulated: true, model } : value
}

function subjectOf({ toolResults, images, files }: SimulatedRequest, asked: string): string {
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

function cutAtStop(text: string, stops: readonly string[]): { text: string; by: string | null } {
  let cut = { text, by: null as string | null }
  for (const stop of stops) {
    const at = stop === '' ? -1 : cut.text.indexOf(stop)
    if (at >= 0) cut = { text: text.slice(0, at), by: stop }
  }
  return cut
}

function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const start = by % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}

/** Repeats sentences up to a number of characters. */
function cycle(sentences: readonly string[], start: number, characters: number): string {
  const round = `${rotated(sentences, start).join(' ')} `
  return round.repeat(Math.ceil(characters / round.length)).slice(0, characters)
}

/** FNV-1a: outputs vary with the prompt, never between runs. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < Math.min(text.length, 4_096); index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  return value >>> 0
}
