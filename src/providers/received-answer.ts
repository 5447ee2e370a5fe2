import type { ChatRequest, Vector } from '../core/chat/chat.ts'
import {
  type FinishReason,
  firstText,
  type ProviderFields,
  type ReportedUsage,
  type ResponsePart,
  type ResponseSink,
  type TextChannel,
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

/** Deltas of one text in a row. */
type HeldText = { readonly channel: TextChannel; text: string; readonly pieces: TextPieces }

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
  /** Content that was not released. */
  private queue: (ResponsePart | HeldText)[] = []
  /** The text at the end of the queue, which its next delta continues. */
  private growing: HeldText | null = null
  private readonly textPieces = new TextPieces()
  private readonly reasoningPieces = new TextPieces()
  /** By their fields. */
  private readonly channels = new Map([[channelKey(firstText), firstText]])
  /** Of the last delta. */
  private channel = firstText
  /** Where the last text belongs. */
  textChannel = firstText
  /** Arguments of each open call. */
  private readonly calls = new Map<TextChannel, CallArguments>()
  /** A surrogate at the end of a delta, which the next may complete, also in another block. */
  private readonly halves = new Map<string, { readonly channel: TextChannel; readonly half: string }>()

  /** `request`: as sent, with the client's names. */
  constructor(readonly request: ChatRequest) {}

  isOver(): boolean {
    return this.ended || this.failure !== null
  }

  /** Passes on the content that has arrived since the last call. */
  release(sink: ResponseSink): void {
    const { queue } = this
    this.queue = []
    this.growing = null
    for (const held of queue)
      if ('channel' in held) sink.text(held.channel, held.text)
      else sink.add(held)
  }

  identify(id: string | null, model: string | null): void {
    if (this.isOver()) return
    this.upstreamModel = model ?? this.upstreamModel
    this.upstreamId = id ?? this.upstreamId
  }

  addText(choice: number, text: string, phase: string | null = null, block = 0): void {
    this.textChannel = this.at('text', choice, 0, phase, block)
    this.say(this.textChannel, text)
  }

  addReasoning(choice: number, text: string): void {
    this.say(this.at('reasoning', choice), text)
  }

  addRefusal(choice: number, text: string): void {
    this.say(this.at('refusal', choice), text)
  }

  addArguments(choice: number, index: number, text: string): void {
    this.say(this.at('tool_arguments', choice, index), text)
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
    this.calls.set(this.at('tool_arguments', choice, index), new CallArguments())
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

  private push(part: ResponsePart): void {
    this.growing = null
    this.queue.push(part)
  }

  private at(type: TextChannel['type'], choice: number, index = 0, phase: string | null = null, block = 0) {
    const last = this.channel
    const isLast = last.type === type && last.choice === choice && last.index === index
    if (!isLast || last.phase !== phase || last.block !== block) {
      const channel = { type, choice, index, phase, block }
      this.channel = this.channels.get(channelKey(channel)) ?? channel
      this.channels.set(channelKey(channel), this.channel)
    }
    return this.channel
  }

  /** Adds a delta of a text: its well-formed part. */
  private say(channel: TextChannel, text: string): void {
    this.received++
    if (text === '' || this.ignores(channel.choice)) return
    const isSound = this.halves.size === 0 && text.isWellFormed()
    this.grow(channel, this.ready(channel, isSound ? text : this.completed(channel, text)))
  }

  /** Returns what clients may receive now of a text: of arguments, not all. */
  private ready(channel: TextChannel, text: string): string {
    return channel.type === 'tool_arguments' ? (this.calls.get(channel)?.add(text) ?? text) : text
  }

  /** Returns a delta joined with the half that waited for it, without its own half at the end. */
  private completed(channel: TextChannel, piece: string): string {
    const key = `${channel.type} ${channel.choice} ${channel.index}`
    const text = (this.halves.get(key)?.half ?? '') + piece
    this.halves.delete(key)
    const end = text.length - (endsInHalf(text) ? 1 : 0)
    if (end < text.length) this.halves.set(key, { channel, half: text.slice(end) })
    return text.slice(0, end).toWellFormed()
  }

  /** Replaces the halves of a choice that nothing has completed. */
  private releaseHalves(choice: number): void {
    for (const [key, { channel }] of this.halves) {
      if (channel.choice !== choice) continue
      this.halves.delete(key)
      this.grow(channel, this.ready(channel, replacement))
    }
  }

  /** Appends text to the last part if it continues that, and to the counted text. */
  private grow(channel: TextChannel, text: string): void {
    if (text === '') return
    const { type } = channel
    if (type === 'reasoning') this.reasoning = this.reasoningPieces.add(this.reasoning, text)
    else this.text = this.textPieces.add(this.text, text)
    if (type === 'refusal') this.refused = true
    this.hasContent = true
    if (type !== 'text' && type !== 'reasoning') this.arrived = 'more'
    else if (this.arrived === 'nothing') this.arrived = 'text'
    const { growing } = this
    if (growing?.channel === channel) growing.text = growing.pieces.add(growing.text, text)
    else {
      this.growing = { channel, text, pieces: new TextPieces() }
      this.queue.push(this.growing)
    }
  }

  /** Adds the arguments that waited in the calls of a choice; returns false if a call has two. */
  private endCalls(choice: number, isCut: boolean): boolean {
    for (const [channel, call] of this.calls) {
      if (channel.choice !== choice) continue
      const text = call.end(isCut)
      if (text === null) return false
      this.grow(channel, text)
      // An incomplete response may end inside of a call.
      if (isCut) this.calls.delete(channel)
    }
    return true
  }
}

function channelKey({ type, choice, index, phase, block }: TextChannel): string {
  return `${type} ${choice} ${index} ${block} ${phase}`
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
