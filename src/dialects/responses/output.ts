/**
 * Builds the output items of one response. Each item is announced before its content, keeps its ID and index, and is
 * reported as done once. A JSON body and a stream use the same code.
 */

import type {
  FinishReason,
  ResponsePart,
  ResponseSink,
  TextChannel,
  TokenLogprob,
  TypedPart,
} from '../../core/chat/chat-events.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { CustomInput } from '../custom-tools.ts'
import { type Fields, isFields } from '../foreign-objects.ts'
import { findCarrier } from './carried-items.ts'
import {
  type Base,
  type CallOutput,
  type Item,
  isWholeCall,
  lastPart,
  type MessageOutput,
  type OutputOptions,
  type Part,
  type ReasoningOutput,
  type Status,
  shortLogprob,
  shown,
  shownCitation,
  shownPart,
  signingProviders,
  summaryPart,
  type WholeOutput,
} from './output-items.ts'

export class OutputItems implements ResponseSink {
  private readonly items: Item[] = []
  /** Calls by index. */
  private readonly calls = new Map<number, Base & CallOutput>()
  /** The open message or reasoning. */
  private current: (Base & (MessageOutput | ReasoningOutput)) | null = null
  private phase: string | null = null
  /** Deltas of the text, which become one event, and the log probabilities of their tokens. */
  private pending = ''
  private tokens: TokenLogprob[] = []
  /** Code points of the text parts that have ended. */
  private points = 0
  /** Whether its provider accepts reasoning without a signature in later turns. */
  private isPlainAccepted = false
  private finish: FinishReason = 'stop'

  constructor(private readonly options: OutputOptions) {}

  text({ type, index, phase }: TextChannel, text: string): void {
    if (type === 'text') {
      if (phase !== this.phase) {
        this.flush()
        this.phase = phase
        // Each phase is a separate message.
        if (this.current?.kind === 'message') this.endCurrent('completed')
      }
      this.pending += text
      return
    }
    this.flush()
    if (type === 'refusal') this.addText('refusal', text, [])
    else if (type === 'tool_arguments') this.addArguments(index, text)
    else if (text !== '') this.addReasoning(text)
  }

  add(part: ResponsePart): void {
    if (part.type !== 'logprobs') this.flush()
    switch (part.type) {
      case 'logprobs':
        this.tokens.push(...part.tokens)
        break
      case 'opened':
        this.isPlainAccepted = !signingProviders.has(part.opening.provider)
        break
      case 'reasoning_end':
        this.endReasoning(part)
        break
      case 'tool_call':
        this.openCall(part)
        break
      case 'provider_item':
        this.addWhole(part)
        break
      case 'citation':
        this.annotate(part)
        break
      case 'finish':
        this.finish = part.reason
        break
    }
  }

  /** Adds the pending text. */
  flush(): void {
    const { pending, tokens } = this
    if (pending === '' && tokens.length === 0) return
    this.pending = ''
    this.tokens = []
    this.addText('output_text', pending, tokens)
  }

  private addText(type: Part['type'], text: string, tokens: readonly TokenLogprob[]): void {
    const item = this.message()
    const part = this.getPart(item, type)
    part.text += text
    for (const token of tokens) part.tokens.push(token)
    const within = `"content_index":${item.parts.length - 1},`
    if (type === 'refusal') this.emitDelta('response.refusal.delta', item, within, text)
    else {
      const logprobs = tokens.length === 0 ? '[]' : JSON.stringify(tokens.map(shortLogprob))
      this.emitDelta('response.output_text.delta', item, `${within}"logprobs":${logprobs},`, text)
    }
  }

  /** Ends all items and returns why. An item that a limit truncated is incomplete. */
  close(): FinishReason {
    this.flush()
    const reason = this.finish
    const isCut = reason === 'length' || reason === 'content_filter'
    const last = this.items.at(-1)
    this.endCurrent(isCut && last === this.current ? 'incomplete' : 'completed')
    // With calls side by side, the cap can truncate one that is not the last.
    for (const call of this.calls.values())
      this.endCall(call, isCut && (call === last || !isWholeCall(call)) ? 'incomplete' : 'completed')
    const carrier = this.options.refersToItems ? findCarrier(this.output(), this.options.seal) : null
    if (carrier !== null) this.end(this.place<WholeOutput>('rs', { kind: 'whole', json: carrier }), 'completed')
    return reason
  }

  /** Returns the present items; open items are incomplete. */
  output(): readonly Fields[] {
    return this.items.map(item => shown(item, item.status === 'in_progress' ? 'incomplete' : item.status))
  }

  private emit(type: string, fields: Fields): void {
    this.options.emit?.(type, JSON.stringify(fields).slice(1, -1))
  }

  /** Emits a text delta. Most events are deltas and only the delta needs escaping, so a template is faster than JSON. */
  private emitDelta(type: string, { id, place }: Base, within: string, delta: string): void {
    this.options.emit?.(type, `"item_id":"${id}","output_index":${place},${within}"delta":${JSON.stringify(delta)}`)
  }

  private place<Kind extends MessageOutput | ReasoningOutput | CallOutput | WholeOutput>(
    prefix: string,
    kind: Kind,
  ): Base & Kind {
    const place = this.items.length
    const item = {
      id: `${prefix}_${this.options.stem}${place.toString(16).padStart(4, '0')}`,
      place,
      status: 'in_progress' as Status,
      ...kind,
    }
    this.items.push(item)
    this.emit('response.output_item.added', { output_index: place, item: shown(item, item.status) })
    return item
  }

  private message(): Base & MessageOutput {
    if (this.current?.kind === 'message') return this.current
    this.endCurrent('completed')
    const item = this.place<MessageOutput>('msg', { kind: 'message', phase: this.phase, parts: [] })
    this.current = item
    return item
  }

  private getPart(item: Base & MessageOutput, type: Part['type']): Part {
    const last = item.parts.at(-1)
    if (last?.type === type) return last
    if (last !== undefined) this.endPart(item, last)
    const part: Part = { type, from: this.points, text: '', annotations: [], tokens: [] }
    item.parts.push(part)
    this.emit('response.content_part.added', { ...lastPart(item), part: shownPart(part) })
    return part
  }

  private endPart(item: Base & MessageOutput, part: Part): void {
    const at = lastPart(item)
    if (part.type === 'refusal') this.emit('response.refusal.done', { ...at, refusal: part.text })
    else {
      this.points += [...part.text].length
      this.emit('response.output_text.done', { ...at, text: part.text, logprobs: part.tokens.map(shortLogprob) })
    }
    this.emit('response.content_part.done', { ...at, part: shownPart(part) })
  }

  private addReasoning(text: string): void {
    const item = this.reasoning()
    const at = { item_id: item.id, output_index: item.place, summary_index: 0 }
    if (item.text === '') this.emit('response.reasoning_summary_part.added', { ...at, part: summaryPart('') })
    item.text += text
    this.emitDelta('response.reasoning_summary_text.delta', item, '"summary_index":0,', text)
  }

  private reasoning(): Base & ReasoningOutput {
    if (this.current?.kind === 'reasoning') return this.current
    this.endCurrent('completed')
    const item = this.place<ReasoningOutput>('rs', { kind: 'reasoning', text: '', sealed: null })
    this.current = item
    return item
  }

  private endReasoning({ family, kind, data, id }: TypedPart<'reasoning_end'>): void {
    const item = this.reasoning()
    // Google's signature needs no text.
    item.sealed = this.options.seal({ family, kind, text: family === 'google' ? '' : item.text, data, id })
    this.endCurrent('completed')
  }

  private openCall({ index, id, name, signature }: TypedPart<'tool_call'>): void {
    if (signature === null) this.endCurrent('completed')
    else
      this.endReasoning({ type: 'reasoning_end', choice: 0, family: 'google', kind: 'signature', data: signature, id })
    const origin = this.options.origins.get(name) ?? { kind: 'function', name, namespace: null }
    const input = origin.kind === 'custom' ? new CustomInput() : null
    const prefix = origin.kind === 'function' ? 'fc' : origin.kind === 'custom' ? 'ctc' : 'tsc'
    this.calls.set(index, this.place<CallOutput>(prefix, { kind: 'call', origin, callId: id, text: '', input }))
  }

  private addArguments(index: number, delta: string): void {
    const call = this.calls.get(index)
    if (call === undefined) return
    if (call.input === null) {
      call.text += delta
      if (call.origin.kind === 'function') this.emitDelta('response.function_call_arguments.delta', call, '', delta)
      return
    }
    const added = call.input.add(delta)
    call.text += added
    if (added !== '') this.emitDelta('response.custom_tool_call_input.delta', call, '', added)
  }

  private endCall(call: Base & CallOutput, status: Status): void {
    const at = { item_id: call.id, output_index: call.place }
    if (call.input !== null) {
      const { whole, rest } = call.input.end()
      if (rest !== '') this.emitDelta('response.custom_tool_call_input.delta', call, '', rest)
      call.text = whole
      this.emit('response.custom_tool_call_input.done', { ...at, input: whole })
    } else if (call.origin.kind === 'function')
      this.emit('response.function_call_arguments.done', { ...at, name: call.origin.name, arguments: call.text })
    this.end(call, status)
  }

  private addWhole({ json, dialect }: TypedPart<'provider_item'>): void {
    const value = dialect === 'responses' ? parseUntrustedJson(json) : null
    if (!isFields(value)) return
    this.endCurrent('completed')
    this.end(this.place<WholeOutput>('it', { kind: 'whole', json: value }), 'completed')
  }

  private annotate(cite: TypedPart<'citation'>): void {
    const cited = this.items
      .flatMap(item => (item.kind === 'message' ? item.parts.map(part => ({ item, part })) : []))
      .findLast(({ part }) => part.type === 'output_text' && part.from <= cite.source.start)
    if (cited === undefined) return
    const { item, part } = cited
    const annotation = shownCitation(cite, part)
    if (annotation === null) return
    part.annotations.push(annotation)
    // A completed item is only in the response at the end.
    if (item !== this.current || part !== item.parts.at(-1)) return
    const annotation_index = part.annotations.length - 1
    this.emit('response.output_text.annotation.added', { ...lastPart(item), annotation_index, annotation })
  }

  /** Ends the open item. */
  private endCurrent(status: Status): void {
    const item = this.current
    if (item === null) return
    if (item.kind === 'message') {
      const part = item.parts.at(-1)
      if (part !== undefined) this.endPart(item, part)
    } else this.endThought(item)
    this.current = null
    this.end(item, status)
  }

  private endThought(item: Base & ReasoningOutput): void {
    if (item.text === '') return
    if (item.sealed === null && this.isPlainAccepted && this.options.includesReasoning)
      item.sealed = this.options.seal({ family: 'compatible', kind: 'signature', text: item.text, data: '', id: null })
    const at = { item_id: item.id, output_index: item.place, summary_index: 0 }
    this.emit('response.reasoning_summary_text.done', { ...at, text: item.text })
    this.emit('response.reasoning_summary_part.done', { ...at, part: summaryPart(item.text) })
  }

  private end(item: Item, status: Status): void {
    item.status = status
    this.emit('response.output_item.done', { output_index: item.place, item: shown(item, status) })
  }
}
