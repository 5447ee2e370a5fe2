import type { SourceBody } from '../../core/chat/chat.ts'
import type { Model } from '../../core/models/models.ts'
import { CitedText, webAddress } from '../citations.ts'
import { badAnswer, truncated } from '../failure.ts'
import { findName, getText, isRecord, isText, type Json, objectIn, record, records } from '../json.ts'
import { type Edit, elementsAt, type Member } from '../json-spans.ts'
import { callInstruction } from '../parameters.ts'
import type { AnswerSink, ProviderFailure } from '../provider.ts'
import { argumentsText, isEmptyArguments, uniqueNames } from '../tool-names.ts'
import { jsonAnswerTool } from './schema.ts'

type OpenBlock = {
  readonly kind: 'text' | 'reasoning' | 'call' | 'json' | 'item' | 'ignored'
  /** Index among calls from 0; the wire's own index counts blocks of all kinds. */
  readonly toolIndex: number
  /** Input in the opening event of a call. */
  readonly input: unknown
  /** Streamed input of a call so far; null = none. */
  written: string | null
  /** Proof by which the provider recognizes its reasoning; null = not received yet. */
  signature: string | null
  /** Content of a block that is passed on complete. */
  block: Json
  /** Of a text block: its number, where its text begins in UTF-16 units, and what it cites. */
  readonly number: number
  readonly from: number
  cited: readonly Json[]
}

/** Blocks normally do not overlap: this many unclosed ones are invalid. */
const maximumOpen = 256
const ignored: OpenBlock = {
  kind: 'ignored',
  toolIndex: 0,
  input: null,
  written: null,
  signature: null,
  block: {},
  number: 0,
  from: 0,
  cited: [],
}
/**
 * Reads the blocks of one message, indexed as on the wire. Unknown kinds, and tools that Anthropic runs itself, are passed on
 * complete.
 */
export class BlockReader {
  private readonly blocks = new Map<unknown, OpenBlock>()
  /** Indexes of all calls so far, including closed ones. */
  private readonly calls = new Set<unknown>()
  private readonly unique = uniqueNames()
  private readonly cited = new CitedText(0)
  private hasJsonAnswer = false
  private hasBrokenInput = false
  private callCount = 0
  private textCount = 0

  open(index: unknown, block: unknown, sink: AnswerSink): ProviderFailure | null {
    const open = this.blocks.get(index)
    // Two blocks under one index: one of them is incomplete.
    if (this.calls.has(index) || (open !== undefined && showsInAll(open))) return truncated('block_reopened')
    if (!isRecord(block)) return null
    if (this.blocks.size >= maximumOpen) return badAnswer('too_many_blocks')
    const next = this.opened(block)
    this.blocks.set(index, next)
    if (takesInput(next)) this.calls.add(index)
    this.begin(next, block, sink)
    return null
  }

  add(index: unknown, delta: Json, sink: AnswerSink): ProviderFailure | null {
    const block = this.blocks.get(index)
    if (block?.kind === 'ignored') return null
    if (block?.kind === 'item') {
      gather(block, delta)
      return null
    }
    switch (delta.type) {
      case 'text_delta':
        this.say(delta.text, block, sink)
        return null
      case 'thinking_delta':
        if (isText(delta.thinking)) sink.addReasoning(0, delta.thinking)
        return null
      case 'citations_delta':
        if (block !== undefined && isRecord(delta.citation)) block.cited = [...block.cited, delta.citation]
        return null
      case 'signature_delta':
        if (block !== undefined) block.signature = (block.signature ?? '') + getText(delta.signature)
        return null
      case 'input_json_delta': {
        if (!isText(delta.partial_json)) return null
        // Its block was closed before, or never opened: some call lacks this input.
        if (block === undefined) return truncated('input_without_block')
        const before = block.written ?? ''
        block.written = (isEmptyArguments(before) ? '' : before) + delta.partial_json
        addInput(block, delta.partial_json, sink)
        return null
      }
      default:
        return null
    }
  }

  close(index: unknown, sink: AnswerSink): void {
    const block = this.blocks.get(index)
    this.blocks.delete(index)
    if (block === undefined) return
    if (block.kind === 'reasoning') {
      if (block.signature !== null) endReasoning('signature', block.signature, sink)
    } else if (block.kind === 'item') addItem(block, sink)
    else if (block.kind === 'text') this.cite(block, sink)
    // Relays write the input into the opening event, and perhaps an empty one into the deltas.
    else if (block.written === null || isEmptyArguments(block.written))
      addInput(block, argumentsText(block.input), sink)
    else this.hasBrokenInput ||= isTruncated(block)
  }

  closeAll(sink: AnswerSink): void {
    for (const index of [...this.blocks.keys()]) this.close(index, sink)
  }

  /** Starts another message in the same stream, whose blocks count from 0 again. */
  recount(): void {
    this.calls.clear()
  }

  /** Returns true if a visible block was opened and not closed. */
  hasOpen(): boolean {
    return this.blocks.values().some(showsInAll)
  }

  /** Returns true if a call or the JSON answer ended with input that is not a complete JSON object. */
  hasTruncated(): boolean {
    return this.hasBrokenInput || this.blocks.values().some(isUnclosedCall)
  }

  /** Returns true if one of the client's tools was called. */
  hasCalls(): boolean {
    return this.callCount > 0
  }

  private opened(block: Json): OpenBlock {
    const { type, name, input } = block
    if (type === 'text')
      return {
        ...ignored,
        kind: 'text',
        number: this.textCount++,
        from: this.cited.text().length,
        cited: records(block.citations),
      }
    if (type === 'thinking') return { ...ignored, kind: 'reasoning', signature: findSignature(block) }
    if (type === 'redacted_thinking' || !isText(type)) return ignored
    if (type !== 'tool_use') return { ...ignored, kind: 'item', block }
    if (name !== jsonAnswerTool) return { ...ignored, kind: 'call', toolIndex: this.callCount++, input }
    // A second simultaneous JSON answer would make the output invalid; only the first counts.
    if (this.hasJsonAnswer) return ignored
    this.hasJsonAnswer = true
    return { ...ignored, kind: 'json', input }
  }

  private begin(open: OpenBlock, block: Json, sink: AnswerSink): void {
    switch (open.kind) {
      case 'text':
        this.say(block.text, open, sink)
        break
      case 'reasoning':
        if (isText(block.thinking)) sink.addReasoning(0, block.thinking)
        break
      case 'call': {
        const wireId = findName(block.id) ?? 'call'
        const id = this.unique(wireId, count => `${wireId}_${count}`)
        const caller = isRecord(block.caller) ? { caller: block.caller } : {}
        const name = getText(block.name).toWellFormed()
        sink.openCall(0, open.toolIndex, { id, name, signature: null, ...caller })
        break
      }
      case 'ignored':
        if (block.type === 'redacted_thinking' && isText(block.data)) endReasoning('redacted', block.data, sink)
        break
      case 'json':
      case 'item':
    }
  }

  private say(wire: unknown, block: OpenBlock | undefined, sink: AnswerSink): void {
    if (!isText(wire)) return
    this.cited.add(wire)
    sink.addText(0, wire, null, block?.number)
  }

  /** Reports the citations of a complete block, each of which belongs to all of its text. */
  private cite({ cited, from }: OpenBlock, sink: AnswerSink): void {
    if (cited.length === 0) return
    const text = this.cited
    const place = { start: text.points(from), end: text.points() }
    for (const wire of cited) {
      // Clients link to `url`. A `source` is a name that the client itself gave.
      if (wire.url != null && webAddress(wire.url) === null) continue
      const own = { dialect: 'messages', json: JSON.stringify(wire) } as const
      const title = wire.title ?? wire.document_title
      text.cite(sink, { url: wire.url ?? wire.source, title, quote: wire.cited_text }, place, own)
    }
  }
}

/** Returns true if clients of every API form see the block. */
function showsInAll({ kind }: OpenBlock): boolean {
  return kind !== 'ignored' && kind !== 'item'
}

function findSignature({ signature }: Json): string | null {
  return isText(signature) ? signature : null
}

function endReasoning(kind: 'signature' | 'redacted', data: string, sink: AnswerSink): void {
  sink.add({ type: 'reasoning_end', choice: 0, family: 'anthropic', kind, data, id: null })
}

/** Adds a delta to a block of any kind: texts are appended, other fields replaced. */
function gather(open: OpenBlock, { type, partial_json, ...fields }: Json): void {
  if (type === 'input_json_delta') open.written = (open.written ?? '') + getText(partial_json)
  const grown = Object.entries(fields).map(([name, value]) => {
    const known = open.block[name]
    return [name, typeof known === 'string' && typeof value === 'string' ? known + value : value]
  })
  open.block = { ...open.block, ...Object.fromEntries(grown) }
}

/** Adds a complete block; the input of a provider-side tool arrived in parts. */
function addItem({ block, written }: OpenBlock, sink: AnswerSink): void {
  const input = written === null ? null : objectIn(written)
  const whole = input === null ? block : { ...block, input }
  sink.add({ type: 'provider_item', choice: 0, dialect: 'messages', json: JSON.stringify(whole) })
}

function takesInput({ kind }: OpenBlock): boolean {
  return kind === 'call' || kind === 'json'
}

/** Tool input is one JSON object, so any other text is incomplete or has excess parts. */
function isTruncated(block: OpenBlock): boolean {
  return takesInput(block) && block.written !== null && objectIn(block.written) === null
}

/**
 * Returns true for an open call without all of its input. Some relays never close blocks and send the input with the
 * opening.
 */
function isUnclosedCall(block: OpenBlock): boolean {
  if (block.written !== null) return isTruncated(block)
  return takesInput(block) && Object.keys(record(block.input)).length === 0
}

/** Adds a part of an input: arguments of a client's tool, text of the JSON answer, nothing for other blocks. */
function addInput(block: OpenBlock, text: string, sink: AnswerSink): void {
  if (block.kind === 'json') sink.addText(0, text)
  else if (block.kind === 'call') sink.addArguments(0, block.toolIndex, text)
}

/** Asks for a tool call in a client's own Messages body, where its model rejects a forced one. */

/**
 * Returns the fields and the edits that replace the forced call by an instruction behind the system text; null = the model accepts the
 * choice. Marked blocks stay before the instruction, so that it does not change the cached prefix.
 */
export function askedCall(
  { text, fields }: SourceBody,
  members: readonly Member[],
  model: Model,
): { readonly values: Json; readonly edits: readonly Edit[] } | null {
  const choice = record(fields.tool_choice)
  if (model.parameters.forcedToolChoice !== 'rejected' || (choice.type !== 'any' && choice.type !== 'tool')) return null
  const line = callInstruction(isText(choice.name) ? choice.name : undefined)
  const { name: _, ...rest } = choice
  const tool_choice = { ...rest, type: 'auto' }
  const list = members.find(({ key }) => key === 'system')?.value
  const last = list === undefined || !Array.isArray(fields.system) ? undefined : elementsAt(text, list.from).at(-1)
  if (last !== undefined) {
    const block = `,${JSON.stringify({ type: 'text', text: line })}`
    return { values: { tool_choice }, edits: [{ from: last.to, to: last.to, text: block }] }
  }
  const own = isText(fields.system) && fields.system.trim() !== '' ? `${fields.system}\n\n` : ''
  return { values: { tool_choice, system: own + line }, edits: [] }
}
