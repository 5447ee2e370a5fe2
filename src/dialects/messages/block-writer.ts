/**
 * Writes the content blocks of a Messages response, one after the other for any order of its parts. If a provider writes several
 * calls in parallel, one block is open and the parts of the others wait. A stream and a JSON body use the same code.
 */

import type { ReasoningFamily, ReasoningItem } from '../../core/chat/chat.ts'
import type {
  CitedSource,
  ResponsePart,
  ResponseSink,
  ResponseSummary,
  TextChannel,
  TypedPart,
} from '../../core/chat/chat-events.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { type BlockFields, isBlockFields } from './blocks.ts'
import { findExplanation, getEndFields, getEnding, getFamily, type MessageStyle, usageBody } from './reply.ts'

/** Receives the blocks. Blocks never overlap: `close` precedes the next `open`. */
export type BlockSink = {
  open(block: BlockFields): void
  /** Adds to a text of the open block: its own, or the JSON of its input. */
  say(field: 'text' | 'thinking' | 'partial_json', text: string): void
  sign(signature: string): void
  cite(citation: unknown): void
  close(): void
}

type CallState = { readonly index: number; readonly scan: ObjectScan }

/** Writes the blocks of one response. It keeps state, so each response needs its own. */
export class BlockWriter implements ResponseSink {
  private current: 'none' | 'text' | 'thinking' | 'call' = 'none'
  private call: CallState | null = null
  /** Writes parts of other blocks that arrived before the open call was complete. */
  private waiting: (() => void)[] = []
  /** The output calls a tool of the client. */
  private called = false
  /** Number of the provider's text block that is open. */
  private textBlock = 0
  /** Of reasoning, which does not name one. */
  private family: ReasoningFamily = 'compatible'
  private finish: Pick<TypedPart<'finish'>, 'reason' | 'stopSequence' | 'upstreamReason'> = { reason: 'stop' }
  private filtered: TypedPart<'filtered'> | undefined

  constructor(
    private readonly style: MessageStyle,
    private readonly sink: BlockSink,
  ) {}

  text(channel: TextChannel, text: string): void {
    // A Messages response has one choice.
    if (channel.choice !== 0) return
    const isOfCall = channel.type === 'tool_arguments' && channel.index === this.call?.index
    if (isOfCall || !this.isWithinCall()) this.write(channel, text)
    else this.waiting.push(() => this.text(channel, text))
    this.releaseDue()
  }

  add(part: ResponsePart): void {
    if (part.type === 'opened') this.family = getFamily(part.opening.provider)
    if (part.type === 'opened' || part.type === 'done' || part.type === 'logprobs' || part.choice !== 0) return
    if (part.type === 'finish') this.finish = part
    else if (part.type === 'filtered') this.filtered = part
    else if (!this.isWithinCall()) this.writePart(part)
    else this.waiting.push(() => this.add(part))
    this.releaseDue()
  }

  /** Writes what waits, closes the open block, and returns the other fields of the end. */
  end(receipt: ResponseSummary) {
    while (this.waiting.length > 0) this.release()
    this.close()
    const { details, container, others } = getEndFields(receipt.providerFields)
    const why = { explanation: findExplanation(this.filtered), details }
    return { ending: getEnding(this.finish, this.called, why), usage: usageBody(receipt), container, others }
  }

  private isWithinCall(): boolean {
    return this.call !== null && !this.call.scan.isWhole
  }

  private releaseDue(): void {
    if (this.waiting.length > 0 && this.call?.scan.isWhole) this.release()
  }

  /** Closes the complete call and writes what waits. Parts of a further call can wait once more. */
  private release(): void {
    this.close()
    const { waiting } = this
    this.waiting = []
    for (const write of waiting) write()
  }

  private write({ type, index, block }: TextChannel, text: string): void {
    switch (type) {
      case 'text':
      case 'refusal':
        this.enterText(type === 'text' ? block : this.textBlock)
        this.sink.say('text', text)
        break
      case 'reasoning':
        if (!this.shows(this.family)) break
        this.begin('thinking', emptyThinking)
        this.sink.say('thinking', text)
        break
      case 'tool_arguments':
        // A closed call is complete: later deltas of it are only white space.
        if (this.call?.index !== index) break
        this.call.scan.add(text)
        this.sink.say('partial_json', text)
        break
    }
  }

  private writePart(part: ResponsePart): void {
    switch (part.type) {
      case 'citation':
        this.cite(part)
        break
      case 'reasoning_end':
        this.endReasoning(part)
        break
      case 'tool_call':
        this.openCall(part)
        break
      case 'provider_item':
        if (part.dialect === 'messages') this.writeItem(part.json)
        break
    }
  }

  private shows(family: ReasoningFamily): boolean {
    return this.style.wantsThinking || family === 'anthropic'
  }

  private begin(kind: 'text' | 'thinking', block: BlockFields): void {
    if (this.current === kind) return
    this.close()
    this.sink.open(block)
    this.current = kind
  }

  /** Opens a text block, unless the one of this number is open: its citations belong to all of its text. */
  private enterText(number: number): void {
    if (this.current === 'text' && number !== this.textBlock) this.close()
    this.textBlock = number
    this.begin('text', emptyText)
  }

  /** Adds a citation to the open text block. A later one is left out: a block without text would be rejected as history. */
  private cite({ source, own }: TypedPart<'citation'>): void {
    const citation = own?.dialect === 'messages' ? parseUntrustedJson(own.json) : pageCitation(source)
    if (this.current === 'text' && citation !== null) this.sink.cite(citation)
  }

  private endReasoning({ family, kind, data, id }: TypedPart<'reasoning_end'>): void {
    // Proofs of a model behind OpenRouter, which requires them also if the client did not request thinking.
    const isHidden = !this.shows(family) && family === 'compatible' && kind === 'encrypted'
    if (!this.shows(family) && !isHidden) return
    if (kind === 'redacted' || isHidden) {
      const isOwn = family === 'anthropic'
      this.whole({ type: 'redacted_thinking', data: isOwn ? data : this.sealed({ family, kind, data, id }) })
      return
    }
    // Some upstreams use Anthropic's format without signatures. Anthropic would reject such a block later.
    const isForeign = family !== 'anthropic' || data === ''
    // A signature without text belongs to thinking whose text the client did not request.
    this.begin('thinking', emptyThinking)
    this.sign(isForeign ? this.sealed({ family: data === '' ? unsigned(family) : family, kind, data, id }) : data)
  }

  /** Seals an item without its text, which the block has in plain form. */
  private sealed(item: Omit<ReasoningItem, 'text'>): string {
    return this.style.seal({ ...item, text: '' })
  }

  private sign(signature: string): void {
    this.sink.sign(signature)
    this.sink.close()
    this.current = 'none'
  }

  private openCall({ index, id, name, signature, caller }: TypedPart<'tool_call'>): void {
    this.close()
    this.called = true
    // The next turn needs the signature, and a call block has no field for it.
    if (signature !== null)
      this.whole({
        type: 'redacted_thinking',
        data: this.sealed({ family: 'google', kind: 'signature', data: signature, id }),
      })
    this.sink.open({ type: 'tool_use', id, name, input: {}, ...(caller === undefined ? {} : { caller }) })
    this.current = 'call'
    this.call = { index, scan: new ObjectScan() }
  }

  private writeItem(json: string): void {
    const block = parseUntrustedJson(json)
    if (!isBlockFields(block)) return
    // Anthropic streams calls of its own tools in the same way: clients collect the input from deltas.
    if (typeof block.type !== 'string' || !block.type.endsWith('_tool_use') || !isBlockFields(block.input)) {
      this.whole(block)
      return
    }
    this.close()
    this.sink.open({ ...block, input: {} })
    this.sink.say('partial_json', JSON.stringify(block.input))
    this.sink.close()
  }

  private whole(block: BlockFields): void {
    this.close()
    this.sink.open(block)
    this.sink.close()
  }

  private close(): void {
    if (this.current === 'none') return
    const family = unsigned(this.family)
    if (this.current === 'thinking') this.sign(this.sealed({ family, kind: 'signature', data: '', id: null }))
    else this.sink.close()
    this.current = 'none'
    this.call = null
  }
}

const emptyText: BlockFields = { type: 'text', text: '' }
const emptyThinking: BlockFields = { type: 'thinking', thinking: '', signature: '' }

/**
 * Returns the citation of a page in the form that clients read. Its `encrypted_index` is Anthropic's own; the empty one tells the
 * gateway that Anthropic would reject the citation in a later turn.
 */
function pageCitation({ url, title, quote = '' }: CitedSource): BlockFields | null {
  return url === null
    ? null
    : { type: 'web_search_result_location', url, title, cited_text: quote, encrypted_index: '' }
}

/** Returns the family for unsigned reasoning: never Anthropic, which would reject it as forged. */
function unsigned(family: ReasoningFamily): ReasoningFamily {
  return family === 'anthropic' ? 'compatible' : family
}

/** Detects the end of a JSON object that arrives in deltas, without storing it. */
class ObjectScan {
  isWhole = false
  private depth = 0
  private isInText = false
  private isEscaped = false

  add(text: string): void {
    for (let at = 0; at < text.length && !this.isWhole; at++) {
      const unit = text.charCodeAt(at)
      if (this.isInText) {
        if (this.isEscaped) this.isEscaped = false
        else if (unit === 0x5c) this.isEscaped = true
        else if (unit === 0x22) this.isInText = false
      } else if (unit === 0x22) this.isInText = true
      else if (unit === 0x7b || unit === 0x5b) this.depth++
      else if ((unit === 0x7d || unit === 0x5d) && --this.depth <= 0) this.isWhole = true
    }
  }
}
