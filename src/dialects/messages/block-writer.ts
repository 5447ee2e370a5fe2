/**
 * The content blocks of a Messages answer, one after the other, whatever order their pieces come in: of calls that a provider writes
 * side by side only one is open, and the others wait. Blocks are written the same way into a stream and into one JSON body.
 */
import type { ContentEvent, ReasoningFamily, ReasoningItem } from '../../core/chat/chat.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { isJson, type Json } from './blocks.ts'

/** Where blocks are written. Between `open` and `close` of one block there is no other. */
export type BlockSink = {
  open(block: Json): void
  delta(delta: Json): void
  close(): void
}

export type BlockWriter = {
  add(event: ContentEvent): void
  /** Closes what is open, and writes what waits. */
  end(): void
  /** Whether a tool of the client's was called. */
  hasCalls(): boolean
}

type BlockWriterOptions = {
  readonly sink: BlockSink
  /** Makes of a foreign provider's reasoning what the client can send back. */
  readonly seal: (item: ReasoningItem) => string
  /** Whose reasoning comes without a mark of its origin. */
  readonly family: () => ReasoningFamily
  /** False: reasoning of other providers than Anthropic is left out. */
  readonly showsThinking: boolean
}

/** Writes one answer; made per answer. */
export function createBlockWriter(options: BlockWriterOptions): BlockWriter {
  return new OrderedBlocks(options)
}

type Call = Extract<ContentEvent, { type: 'tool_call' }>
type CallState = { readonly index: number; readonly scan: ObjectScan }

class OrderedBlocks implements BlockWriter {
  private readonly options: BlockWriterOptions
  private current: 'none' | 'text' | 'thinking' | 'call' = 'none'
  private call: CallState | null = null
  /** What came for other blocks while a call was not whole. */
  private waiting: ContentEvent[] = []
  private called = false

  constructor(options: BlockWriterOptions) {
    this.options = options
  }

  hasCalls(): boolean {
    return this.called
  }

  add(event: ContentEvent): void {
    // This form has one answer.
    if (event.choice !== 0 || event.type === 'logprobs') return
    if (this.call !== null && !this.call.scan.isWhole && !isOf(this.call, event)) this.waiting.push(event)
    else this.write(event)
    if (this.waiting.length > 0 && this.call?.scan.isWhole) this.release()
  }

  end(): void {
    while (this.waiting.length > 0) this.release()
    this.close()
  }

  /** Closes the call that the others wait for, and writes them in their order, as far as they are not in each other's way. */
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
        this.begin('text', emptyText)
        this.options.sink.delta({ type: 'text_delta', text: event.text })
        break
      case 'citation':
        if (event.dialect !== 'messages') break
        this.begin('text', emptyText)
        this.options.sink.delta({ type: 'citations_delta', citation: parseUntrustedJson(event.json) })
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
        // A call that is closed is whole: what still comes for it is blank.
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

  private begin(kind: 'text' | 'thinking', block: Json): void {
    if (this.current === kind) return
    this.close()
    this.options.sink.open(block)
    this.current = kind
  }

  private endReasoning({ family, kind, data, id }: Extract<ContentEvent, { type: 'reasoning_end' }>): void {
    if (!this.shows(family)) return
    if (kind === 'redacted') {
      const isOwn = family === 'anthropic'
      this.whole({ type: 'redacted_thinking', data: isOwn ? data : this.sealed({ family, kind, data, id }) })
      return
    }
    // An upstream that signs nothing under Anthropic's form: on its way back Anthropic would refuse it.
    const isForeign = family !== 'anthropic' || data === ''
    // A signature alone stands for thinking whose text was not asked for.
    this.begin('thinking', emptyThinking)
    this.sign(isForeign ? this.sealed({ family: data === '' ? unsigned(family) : family, kind, data, id }) : data)
  }

  /** The text goes beside it, in the block. */
  private sealed(item: Omit<ReasoningItem, 'text'>): string {
    return this.options.seal({ ...item, text: '' })
  }

  private sign(signature: string): void {
    this.options.sink.delta({ type: 'signature_delta', signature })
    this.options.sink.close()
    this.current = 'none'
  }

  private openCall({ index, id, name, signature }: Call): void {
    this.close()
    this.called = true
    // The next turn needs it, and a call has no place for it.
    if (signature !== null)
      this.whole({
        type: 'redacted_thinking',
        data: this.sealed({ family: 'google', kind: 'signature', data: signature, id }),
      })
    this.options.sink.open({ type: 'tool_use', id, name, input: {} })
    this.current = 'call'
    this.call = { index, scan: new ObjectScan() }
  }

  private writeItem(json: string): void {
    const block = parseUntrustedJson(json)
    if (!isJson(block)) return
    // As the API itself streams the calls of its own tools: clients gather the input from the pieces.
    if (typeof block.type !== 'string' || !block.type.endsWith('_tool_use') || !isJson(block.input)) {
      this.whole(block)
      return
    }
    this.close()
    this.options.sink.open({ ...block, input: {} })
    this.options.sink.delta({ type: 'input_json_delta', partial_json: JSON.stringify(block.input) })
    this.options.sink.close()
  }

  private whole(block: Json): void {
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

const emptyText: Json = { type: 'text', text: '', citations: null }
const emptyThinking: Json = { type: 'thinking', thinking: '', signature: '' }

/** Who takes reasoning back that nobody signed: never Anthropic, to whom it would be forged. */
function unsigned(family: ReasoningFamily): ReasoningFamily {
  return family === 'anthropic' ? 'compatible' : family
}

function isOf({ index }: CallState, event: ContentEvent): boolean {
  return event.type === 'tool_arguments' && event.index === index
}

/** Tells where the JSON object that comes in pieces is whole, without keeping it. */
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
