/**
 * Writes the content blocks of a Messages response, one after the other for any order of the events. If a provider writes several
 * calls in parallel, one block is open and the events of the others wait. A stream and a JSON body use the same code.
 */

import type { ReasoningFamily, ReasoningItem } from '../../core/chat/chat.ts'
import type { CitedSource, ContentEvent } from '../../core/chat/chat-events.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { type BlockFields, isBlockFields } from './blocks.ts'

/** Receives the blocks. Blocks never overlap: `close` precedes the next `open`. */
export type BlockSink = {
  open(block: BlockFields): void
  delta(delta: BlockFields): void
  close(): void
}

type BlockWriterOptions = {
  readonly sink: BlockSink
  /** Seals reasoning of another provider, so that the client can return it. */
  readonly seal: (item: ReasoningItem) => string
  /** Family of reasoning events, which do not name one. */
  readonly family: () => ReasoningFamily
  /** False omits reasoning of providers other than Anthropic. */
  readonly showsThinking: boolean
}

type Call = Extract<ContentEvent, { type: 'tool_call' }>
type CallState = { readonly index: number; readonly scan: ObjectScan }

/** Writes the blocks of one response. It keeps state, so each response needs its own. */
export class BlockWriter {
  private readonly options: BlockWriterOptions
  private current: 'none' | 'text' | 'thinking' | 'call' = 'none'
  private call: CallState | null = null
  /** Events of other blocks that arrived before the open call was complete. */
  private waiting: ContentEvent[] = []
  private called = false
  /** Number of the provider's text block that is open. */
  private textBlock = 0

  constructor(options: BlockWriterOptions) {
    this.options = options
  }

  /** Returns whether the output calls a tool of the client. */
  hasCalls(): boolean {
    return this.called
  }

  add(event: ContentEvent): void {
    // A Messages response has one choice.
    if (event.choice !== 0 || event.type === 'logprobs') return
    if (this.call !== null && !this.call.scan.isWhole && !isOfCall(this.call, event)) this.waiting.push(event)
    else this.write(event)
    if (this.waiting.length > 0 && this.call?.scan.isWhole) this.release()
  }

  /** Writes the waiting events and closes the open block. */
  end(): void {
    while (this.waiting.length > 0) this.release()
    this.close()
  }

  /** Closes the complete call and adds the waiting events again. Events of a further call can wait once more. */
  private release(): void {
    this.close()
    const events = this.waiting
    this.waiting = []
    for (const event of events) this.add(event)
  }

  private write(event: ContentEvent): void {
    switch (event.type) {
      case 'text':
      case 'refusal':
        this.enterText(event.type === 'text' ? (event.block ?? 0) : this.textBlock)
        this.options.sink.delta({ type: 'text_delta', text: event.text })
        break
      case 'citation':
        this.cite(event)
        break
      case 'reasoning':
        if (!this.shows(this.options.family())) break
        this.begin('thinking', emptyThinking)
        this.options.sink.delta({ type: 'thinking_delta', thinking: event.text })
        break
      case 'reasoning_end':
        this.endReasoning(event)
        break
      case 'tool_call':
        this.openCall(event)
        break
      case 'tool_arguments':
        // A closed call is complete: later deltas of it are only white space.
        if (this.call?.index !== event.index) break
        this.call.scan.add(event.text)
        this.options.sink.delta({ type: 'input_json_delta', partial_json: event.text })
        break
      case 'provider_item':
        if (event.dialect === 'messages') this.writeItem(event.json)
        break
    }
  }

  private shows(family: ReasoningFamily): boolean {
    return this.options.showsThinking || family === 'anthropic'
  }

  private begin(kind: 'text' | 'thinking', block: BlockFields): void {
    if (this.current === kind) return
    this.close()
    this.options.sink.open(block)
    this.current = kind
  }

  /** Opens a text block, unless the one of this number is open: its citations belong to all of its text. */
  private enterText(number: number): void {
    if (this.current === 'text' && number !== this.textBlock) this.close()
    this.textBlock = number
    this.begin('text', emptyText)
  }

  /** Adds a citation to the open text block. A later one is left out: a block without text would be rejected as history. */
  private cite({ source, own }: Extract<ContentEvent, { type: 'citation' }>): void {
    const citation = own?.dialect === 'messages' ? parseUntrustedJson(own.json) : pageCitation(source)
    if (this.current === 'text' && citation !== null) this.options.sink.delta({ type: 'citations_delta', citation })
  }

  private endReasoning({ family, kind, data, id }: Extract<ContentEvent, { type: 'reasoning_end' }>): void {
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
    return this.options.seal({ ...item, text: '' })
  }

  private sign(signature: string): void {
    this.options.sink.delta({ type: 'signature_delta', signature })
    this.options.sink.close()
    this.current = 'none'
  }

  private openCall({ index, id, name, signature, caller }: Call): void {
    this.close()
    this.called = true
    // The next turn needs the signature, and a call block has no field for it.
    if (signature !== null)
      this.whole({
        type: 'redacted_thinking',
        data: this.sealed({ family: 'google', kind: 'signature', data: signature, id }),
      })
    this.options.sink.open({ type: 'tool_use', id, name, input: {}, ...(caller === undefined ? {} : { caller }) })
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
    this.options.sink.open({ ...block, input: {} })
    this.options.sink.delta({ type: 'input_json_delta', partial_json: JSON.stringify(block.input) })
    this.options.sink.close()
  }

  private whole(block: BlockFields): void {
    this.close()
    this.options.sink.open(block)
    this.options.sink.close()
  }

  private close(): void {
    if (this.current === 'none') return
    const family = unsigned(this.options.family())
    if (this.current === 'thinking') this.sign(this.sealed({ family, kind: 'signature', data: '', id: null }))
    else this.options.sink.close()
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

function isOfCall({ index }: CallState, event: ContentEvent): boolean {
  return event.type === 'tool_arguments' && event.index === index
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
