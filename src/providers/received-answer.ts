import type { ChatRequest, Vector } from '../core/chat/chat.ts'
import {
  type ChatEvent,
  type FinishReason,
  type ProviderFields,
  type ReportedUsage,
  type TextDelta,
  TextPieces,
} from '../core/chat/chat-events.ts'
import { isChosenTool } from '../core/chat/tool-definitions.ts'
import { badAnswer, truncated } from './failure.ts'
import {
  type AnswerSink,
  maximumIndex,
  type OpenedCall,
  type ProviderFailure,
  type RarePart,
  type Vectors,
} from './provider.ts'
import { CallArguments } from './tool-names.ts'

const maximumNameLength = 256

/** The text that a delta belongs to; `phase` and `block` as in `AnswerSink`. */
type Channel = {
  readonly type: TextDelta['type']
  readonly choice: number
  readonly index: number
  readonly phase: string | null
  readonly block: number
}

/**
 * What an upstream said so far. Keeps, once for all readers, what they promise: nothing follows the end or a failure, text is
 * well-formed even if a surrogate pair was split, calls have names and indexes that client libraries accept and whole
 * arguments, and no complete response contains a truncated call. Further choices than requested are ignored, because no
 * client expects them.
 */
export class ReceivedAnswer implements AnswerSink {
  droppedParameters: readonly string[] = []
  /** The client's names of tools that have another one on the wire; null = none. */
  clientNames: ReadonlyMap<string, string> | null = null
  /** Received text of every kind except reasoning; counted only if the upstream gives no counts, and never stored. */
  text = ''
  /** Separate, because an upstream may count its reasoning and show only a summary of it. */
  reasoning = ''
  hasToolCalls = false
  /** Choices with a call that a forced tool choice accepts. */
  readonly called = new Set<number>()
  /** The upstream reports a refusal. */
  refused = false
  /** Reasoning that only its provider can verify. */
  hasSignedReasoning = false
  usage: ReportedUsage | null = null
  /** The gateway counted a part of `usage`. */
  isEstimated = false
  /** Held until the output is complete: a truncated one never shows them. */
  readonly finishes = new Map<number, FinishReason>()
  /** The client's stop text that ended the first choice; null = none, or the provider does not report it. */
  stopSequence: string | null = null
  /** The provider's own finish reason of the first choice, if clients act on it. */
  upstreamReason: string | null = null
  /** All vectors of a request for embeddings; null = not complete, or a chat. */
  vectors: readonly Vector[] | null = null
  /** Input tokens of the vectors; null = not reported. */
  vectorTokens: number | null = null
  /** Null = none. */
  providerFields: ProviderFields | null = null
  /** Characters of complete output parts of the provider, such as the results of its own searches. They are not output tokens. */
  itemCharacters = 0
  /** Model that the upstream reports as serving. */
  upstreamModel: string | null = null
  /** ID that the upstream gave its response. */
  upstreamId: string | null = null
  hasContent = false
  ended = false
  failure: ProviderFailure | null = null
  received = 0
  isMuted = false
  /** What arrived since the reader of the body last asked: nothing that is due, text that may wait briefly, or other parts. */
  arrived: 'nothing' | 'text' | 'more' = 'nothing'
  /** Content that was not taken. Adjacent deltas of a text are one event, which grows. */
  private queue: ChatEvent[] = []
  /** The event at the end of the queue that the next delta of its text continues. */
  private growing: (Channel & { readonly event: { text: string }; readonly pieces: TextPieces }) | null = null
  private readonly textPieces = new TextPieces()
  private readonly reasoningPieces = new TextPieces()
  /** Of the text that arrives. */
  private phase: string | null = null
  private block = 0
  /** Arguments of each open call, by choice and index. */
  private readonly calls = new Map<number, CallArguments>()
  /** By channel: a surrogate at the end of a delta, which the next may complete. */
  private readonly halves = new Map<string, Channel & { readonly half: string }>()

  /** `request`: as sent, with the client's names. */
  constructor(readonly request: ChatRequest) {}

  isOver(): boolean {
    return this.ended || this.failure !== null
  }

  /** Returns where the last text belongs. */
  place(): Pick<Channel, 'phase' | 'block'> {
    return { phase: this.phase, block: this.block }
  }

  /** Returns the content that arrived since the last call. */
  take(): ChatEvent[] {
    const { queue } = this
    this.queue = []
    this.growing = null
    return queue
  }

  identify(id: string | null, model: string | null): void {
    if (this.isOver()) return
    this.upstreamModel = model ?? this.upstreamModel
    this.upstreamId = id ?? this.upstreamId
  }

  addText(choice: number, text: string, phase: string | null = null, block = 0): void {
    this.phase = phase
    this.block = block
    this.say('text', choice, 0, text)
  }

  addReasoning(choice: number, text: string): void {
    this.say('reasoning', choice, 0, text)
  }

  addRefusal(choice: number, text: string): void {
    this.say('refusal', choice, 0, text)
  }

  addArguments(choice: number, index: number, text: string): void {
    this.say('tool_arguments', choice, index, text)
  }

  openCall(choice: number, index: number, { id, name: wireName, signature, caller }: OpenedCall): void {
    this.received++
    if (this.ignores(choice)) return
    const wrong = wrongIn(index, wireName)
    if (wrong !== null) {
      this.fail(badAnswer(wrong))
      return
    }
    const name = this.clientNames?.get(wireName) ?? wireName
    this.calls.set(callKey(choice, index), new CallArguments())
    this.text = this.textPieces.add(this.text, name)
    this.hasToolCalls = true
    if (isChosenTool(this.request, name)) this.called.add(choice)
    const called = caller === undefined ? {} : { caller }
    this.push({ type: 'tool_call', choice, index, id, name, signature, ...called })
    this.noteContent()
  }

  add(part: RarePart): void {
    this.received++
    if (this.ignores(part.choice)) return
    this.push(part)
    switch (part.type) {
      case 'provider_item':
        this.itemCharacters += part.json.length
        this.noteContent()
        break
      case 'reasoning_end':
        this.hasSignedReasoning = true
        // Redacted reasoning has no text of its own.
        if (part.kind === 'redacted') this.hasContent = true
        this.arrived = 'more'
        break
      case 'citation':
        this.arrived = 'more'
        break
      case 'logprobs':
        if (this.arrived === 'nothing') this.arrived = 'text'
        break
    }
  }

  finish(choice: number, reason: FinishReason, stopSequence?: string | null, upstreamReason?: string): void {
    if (this.ignores(choice)) return
    this.releaseHalves(choice)
    if (!this.endCalls(choice, reason === 'length' || reason === 'content_filter')) {
      this.failWhole(badAnswer('second_arguments'))
      return
    }
    this.arrived = 'more'
    if (this.finishes.has(choice)) return
    this.finishes.set(choice, reason)
    if (choice !== 0) return
    this.stopSequence = findStopSequence(stopSequence, this.request.stop)
    this.upstreamReason = upstreamReason ?? null
  }

  reportUsage(usage: ReportedUsage, isEstimated = false): void {
    if (this.isOver()) return
    this.usage = usage
    this.isEstimated = isEstimated
  }

  reportFields(fields: ProviderFields): void {
    if (!this.isOver()) this.providerFields = fields
  }

  giveVectors({ vectors, inputTokens }: Vectors): void {
    if (this.isOver()) return
    this.vectors = vectors
    this.vectorTokens = inputTokens
    this.noteContent()
  }

  end(): void {
    if (this.isOver()) return
    this.arrived = 'more'
    if (this.calls.values().some(text => text.isUnfinished())) this.failWhole(truncated('truncated_tool_call'))
    else this.ended = true
  }

  fail(failure: ProviderFailure): void {
    this.received++
    if (this.isOver() || this.isMuted) return
    this.failure = failure
    this.arrived = 'more'
  }

  /** Fails a response that its upstream calls whole. Its finish reasons would make it look so. */
  private failWhole(failure: ProviderFailure): void {
    this.finishes.clear()
    this.fail(failure)
  }

  private ignores(choice: number): boolean {
    return this.isMuted || this.ended || this.failure !== null || choice >= this.request.choices
  }

  private noteContent(): void {
    this.hasContent = true
    this.arrived = 'more'
  }

  private push(event: ChatEvent): void {
    this.growing = null
    this.queue.push(event)
  }

  /** Adds a delta of a text: its well-formed part. */
  private say(type: Channel['type'], choice: number, index: number, text: string): void {
    this.received++
    if (text === '' || this.ignores(choice)) return
    const { phase, block, halves } = this
    const isSound = halves.size === 0 && text.isWellFormed()
    const sound = isSound ? text : this.completed(text, { type, choice, index, phase, block })
    this.grow(type, choice, index, type === 'tool_arguments' ? this.ready(choice, index, sound) : sound)
  }

  /** Returns what clients may receive now of the arguments of a call. */
  private ready(choice: number, index: number, text: string): string {
    return this.calls.get(callKey(choice, index))?.add(text) ?? text
  }

  /** Returns a delta joined with the half that waited for it, without its own half at the end. */
  private completed(piece: string, place: Channel): string {
    const channel = `${place.type} ${place.choice} ${place.index}`
    const text = (this.halves.get(channel)?.half ?? '') + piece
    this.halves.delete(channel)
    const end = text.length - (endsInHalf(text) ? 1 : 0)
    if (end < text.length) this.halves.set(channel, { ...place, half: text.slice(end) })
    return text.slice(0, end).toWellFormed()
  }

  /** Replaces the halves of a choice that nothing has completed. */
  private releaseHalves(choice: number): void {
    for (const [channel, { type, choice: own, index, phase, block }] of this.halves) {
      if (own !== choice) continue
      this.halves.delete(channel)
      this.phase = phase
      this.block = block
      this.grow(type, choice, index, type === 'tool_arguments' ? this.ready(choice, index, replacement) : replacement)
    }
  }

  /** Appends text to the last event if it continues that, and to the counted text. */
  private grow(type: Channel['type'], choice: number, index: number, text: string): void {
    if (text === '') return
    if (type === 'reasoning') this.reasoning = this.reasoningPieces.add(this.reasoning, text)
    else this.text = this.textPieces.add(this.text, text)
    if (type === 'refusal') this.refused = true
    this.hasContent = true
    if (type !== 'text' && type !== 'reasoning') this.arrived = 'more'
    else if (this.arrived === 'nothing') this.arrived = 'text'
    const { growing, phase, block } = this
    const isSame = growing?.type === type && growing.choice === choice && growing.index === index
    if (isSame && (type !== 'text' || (growing.phase === phase && growing.block === block))) {
      growing.event.text = growing.pieces.add(growing.event.text, text)
      return
    }
    const channel = { type, choice, index, phase, block }
    const event = textEvent(channel, text)
    this.queue.push(event)
    this.growing = { ...channel, event, pieces: new TextPieces() }
  }

  /** Adds the arguments that waited in the calls of a choice; returns false if a call has two. */
  private endCalls(choice: number, isCut: boolean): boolean {
    for (const [key, call] of this.calls) {
      if (Math.floor(key / callsPerChoice) !== choice) continue
      const text = call.end(isCut)
      if (text === null) return false
      this.grow('tool_arguments', choice, key % callsPerChoice, text)
      // An incomplete response may end inside of a call.
      if (isCut) this.calls.delete(key)
    }
    return true
  }
}

const callsPerChoice = maximumIndex + 1

function callKey(choice: number, index: number): number {
  return choice * callsPerChoice + index
}

/** An event whose text grows while it is in the queue. */
function textEvent({ type, choice, index, phase, block }: Channel, text: string): TextDelta & { text: string } {
  switch (type) {
    case 'text':
      if (phase !== null) return { type, choice, text, phase }
      return block === 0 ? { type, choice, text } : { type, choice, text, block }
    case 'tool_arguments':
      return { type, choice, index, text }
    default:
      return { type, choice, text }
  }
}

/** Returns what prevents a call from being passed on; null = nothing. */
function wrongIn(index: number, name: string): string | null {
  if (index > maximumIndex) return 'too_many_tool_calls'
  // A client could not send it back.
  if (name.length > maximumNameLength) return 'tool_name_too_long'
  return name === '' ? 'nameless_tool_call' : null
}

function endsInHalf(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800
}

/** Replaces an unpaired surrogate. */
const replacement = '\ufffd'

/** Returns the client's stop sequence: a server can have others of its own. */
function findStopSequence(named: string | null | undefined, stops: readonly string[]): string | null {
  if (named === undefined) return null
  const stop = named === null && stops.length === 1 ? stops[0] : stops.find(text => text === named)
  return stop ?? null
}
