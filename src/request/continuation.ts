/**
 * Continues a text that its upstream cut after the client received a part of it: another attempt gets the conversation
 * with that part, and its output goes on in the same response. Only text is continued. A call, an item of a provider, a
 * refusal or structured output cannot be joined from two outputs.
 */
import { type ChatRequest, type FallbackPolicy, strictestPolicy } from '../core/chat/chat.ts'
import type { CitedSource, ResponsePart, ResponseSink, TextChannel } from '../core/chat/chat-events.ts'
import instructions from '../core/chat/continuations.json'
import type { ProviderFailure } from '../providers/provider.ts'
import type { Candidate } from './routing/candidate.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** A text that another attempt continues. */
export type Cut = {
  readonly candidate: Candidate
  readonly failure: ProviderFailure
  /** Which candidates may continue it. */
  readonly policy: FallbackPolicy
  /** All text that the client has received. */
  readonly text: string
  /** Where its last text belongs. */
  readonly channel: TextChannel
}

type CutRun = { readonly response: UpstreamResponse; readonly seam: Seam | null }

/** Returns what another attempt may continue after a failure; null = the output must end here. */
export function findCut({ response, seam }: CutRun, failure: ProviderFailure): Cut | null {
  const { request, hasToolCalls, itemCharacters, refused, finishes } = response
  const signed = response.hasSignedReasoning ? 'same_model' : null
  const policy = strictestPolicy(
    request.continuation ?? 'same_model',
    request.fallback,
    signed,
    seam?.cut.policy ?? null,
  )
  const isText = !hasToolCalls && itemCharacters === 0 && !refused && finishes.size === 0
  const isFree = request.choices === 1 && request.responseFormat.type === 'text' && !request.logprobs
  const mayRetry = failure.retryable && failure.blame !== 'caller'
  if (policy === 'none' || !isText || !isFree || !mayRetry || hasOwnParts(request)) return null
  const channel = seam?.cut.channel ?? response.textChannel
  const text = seam?.said() ?? response.text
  if (request.stop.some(stop => endsWithin(text, stop))) return null
  return { candidate: response.candidate, failure, policy, text, channel }
}

/** Whether a text ends with the beginning of a stop sequence, which no provider would see across the seam. */
function endsWithin(text: string, stop: string): boolean {
  return Array.from(stop, (_, at) => stop.slice(0, at)).some(part => part !== '' && text.endsWith(part))
}

/** Parts that only its own provider reads would be lost in another form of the request. */
const hasOwnParts = ({ source, embedding }: ChatRequest) =>
  embedding !== undefined || (source !== null && source.needs.length > 0)

/** Languages of the instruction by ISO 639-1; English for all others. */
const byLanguage: Readonly<Record<string, string>> = instructions

/**
 * Returns the request that continues a text: the text as the assistant's turn, and an instruction in the language of the
 * conversation. A model repeats the last words, by which the seam is found: it cannot begin within a word.
 */
export function continuedRequest(request: ChatRequest, { text }: Cut, language: string): ChatRequest {
  // Only reasoning was sent: the answer begins again.
  if (text === '') return request
  const instruction = byLanguage[language] ?? instructions.en
  const question = instruction.replace('{words}', () => lastWords(text))
  return {
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', text, reasoning: null, toolCalls: [], name: null },
      { role: 'user', content: [{ type: 'text', text: question }], name: null },
    ],
    source: null,
  }
}

/** Long enough to be unique in most texts. */
const wordsLength = 60

/** Returns the end of a text, from the beginning of a word. */
function lastWords(text: string): string {
  // Not from the middle of a character.
  const end = text
    .trimEnd()
    .slice(-wordsLength)
    .replace(/^[\udc00-\udfff]/, '')
  const from = end.length < wordsLength ? 0 : end.search(/(?<=\s)\S/)
  return (from < 0 ? end : end.slice(from)).trim().toWellFormed()
}

/** A shorter repetition is one by chance, unless it is of the word in which the text ends. */
const leastRepeated = 12
const leastRepeatedWord = 5

/**
 * Joins a continuation to the text before it. Holds its beginning back while it may repeat the end of that text, and
 * removes what it repeats. Its text continues the block of the text. Its reasoning is left out: after reasoning that was
 * cut, a signature would cover another text than the client has.
 */
export class Seam implements ResponseSink {
  /** The beginning, while it is undecided; null = decided. */
  private held: string | null = ''
  private added = ''
  /** It has repeated the end of the text. */
  private isRepeated = false
  /** It has a call or an item. */
  private hasOther = false
  /** The removed part of its beginning. */
  private removed = ''
  private next: ResponseSink | null = null

  constructor(readonly cut: Cut) {
    if (cut.text === '') this.held = null
  }

  /** All text that the client has received. */
  said(): string {
    return this.cut.text + this.added
  }

  /** After how many characters (Unicode code points) the text is continued. */
  at(): number {
    return countPoints(this.cut.text)
  }

  /** Whether the continuation has more than a repetition that it did not end, or nothing at all. */
  isJoined(): boolean {
    return this.hasSent() || this.isRepeated
  }

  /** Whether the client has received a part of the continuation. */
  hasSent(): boolean {
    return this.added !== '' || this.hasOther
  }

  /** Passes on what may be sent of the continuation. `isWhole`: it has ended. One that was cut can end within what it repeats. */
  join(continuation: Pick<UpstreamResponse, 'release'>, next: ResponseSink, isWhole: boolean): void {
    this.next = next
    continuation.release(this)
    if (isWhole) this.release()
  }

  text(channel: TextChannel, text: string): void {
    if (channel.type === 'reasoning') return
    if (channel.type !== 'text') {
      this.release()
      this.hasOther = true
      this.next?.text(channel, text)
    } else if (this.held === null) this.show(text)
    else {
      this.held += text
      if (!mayRepeat(this.cut.text, this.held)) this.release()
    }
  }

  add(part: ResponsePart): void {
    if (part.type === 'reasoning_end') return
    this.release()
    this.hasOther = true
    this.next?.add(part.type === 'citation' ? { ...part, source: this.shifted(part.source) } : part)
  }

  private shifted(source: CitedSource): CitedSource {
    const shift = countPoints(this.cut.text) - countPoints(this.removed)
    return { ...source, start: Math.max(0, source.start + shift), end: Math.max(0, source.end + shift) }
  }

  /** Decides what the held text repeats, and passes on the rest. */
  private release(): void {
    const { held, cut } = this
    if (held === null) return
    this.held = null
    const count = repeated(cut.text, held)
    this.isRepeated = count > 0
    // It ended within what it repeats.
    const said = held.trim()
    const isPart = count === 0 && isRepetition(cut.text, said) && lastWords(cut.text).startsWith(said)
    this.removed = isPart ? held : held.slice(0, count)
    this.show(held.slice(this.removed.length))
  }

  private show(text: string): void {
    if (text === '') return
    this.added += text
    this.next?.text(this.cut.channel, text)
  }
}

const countPoints = (text: string) => Array.from(text).length

/** Whether more of a beginning can still be the end of a text. */
function mayRepeat(text: string, beginning: string): boolean {
  return text.includes(beginning.trimStart())
}

/**
 * Returns how many characters of `beginning` repeat the end of a text. White space at the end of the text counts with them:
 * a model does not see it.
 */
export function repeated(text: string, beginning: string): number {
  const words = text.trimEnd()
  const from = beginning.length - beginning.trimStart().length
  const said = beginning.slice(from)
  const space = text.slice(words.length)
  for (let length = Math.min(words.length, said.length); length > 0; length--) {
    const part = said.slice(0, length)
    if (!words.endsWith(part)) continue
    const isWord = from + space.length === 0 && isLastWord(words, part)
    if (!isWord && !isRepetition(words, part)) continue
    return from + length + (said.startsWith(space, length) ? space.length : 0)
  }
  return 0
}

/** A model was asked for the last words; a shorter part of a text that repeats itself, such as a rule of dashes, may be its next turn. */
function isRepetition(words: string, part: string): boolean {
  if (part.length >= lastWords(words).length) return true
  return part.length >= leastRepeated && !isPeriodic(part)
}

function isPeriodic(part: string): boolean {
  for (let period = 1; 2 * period <= part.length; period++) if (part.startsWith(part.slice(period))) return true
  return false
}

function isLastWord(words: string, part: string): boolean {
  return part.length >= leastRepeatedWord && /^\p{L}+$/u.test(part) && /\s/.test(words.at(-part.length - 1) ?? '')
}
