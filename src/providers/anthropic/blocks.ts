import { argumentsText, isEmptyArguments } from '../call-arguments.ts'
import { CitedText, webAddress } from '../citations.ts'
import { badAnswer, truncated } from '../failure.ts'
import { findName, getText, isRecord, isText, type Json, objectIn, record, records } from '../json.ts'
import type { AnswerPart } from '../provider.ts'
import { uniqueNames } from '../tool-names.ts'
import { jsonAnswerTool } from './json-answer.ts'

/** Content blocks of a message, indexed as on the wire; returns their parts in order. */
type Blocks = {
  open(index: unknown, block: unknown): readonly AnswerPart[]
  add(index: unknown, delta: Json): readonly AnswerPart[]
  close(index: unknown): readonly AnswerPart[]
  closeAll(): readonly AnswerPart[]
  /** Starts another message in the same stream, whose blocks count from 0 again. */
  recount(): void
  /** Returns true if a visible block was opened and not closed. */
  hasOpen(): boolean
  /** Returns true if a call or the JSON answer ended with input that is not a complete JSON object. */
  hasTruncated(): boolean
  /** Returns true if one of the client's tools was called. */
  hasCalls(): boolean
}

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
const nothing: readonly AnswerPart[] = []

/**
 * Creates a reader for the blocks of one message. Unknown kinds, and tools that Anthropic runs itself, are passed on
 * complete.
 */
export function blockReader(): Blocks {
  const blocks = new Map<unknown, OpenBlock>()
  /** Indexes of all calls so far, including closed ones. */
  const calls = new Set<unknown>()
  const unique = uniqueNames()
  let hasJsonAnswer = false
  let hasBrokenInput = false
  let callCount = 0
  let textCount = 0
  const text = new CitedText(0)

  const opened = (block: Json): OpenBlock => {
    const { type, name, input } = block
    if (type === 'text')
      return {
        ...ignored,
        kind: 'text',
        number: textCount++,
        from: text.text().length,
        cited: records(block.citations),
      }
    if (type === 'thinking') return { ...ignored, kind: 'reasoning', signature: findSignature(block) }
    if (type === 'redacted_thinking' || !isText(type)) return ignored
    if (type !== 'tool_use') return { ...ignored, kind: 'item', block }
    if (name !== jsonAnswerTool) return { ...ignored, kind: 'call', toolIndex: callCount++, input }
    // A second simultaneous JSON answer would make the output invalid; only the first counts.
    if (hasJsonAnswer) return ignored
    hasJsonAnswer = true
    return { ...ignored, kind: 'json', input }
  }
  const toolCall = (index: number, block: Json): AnswerPart => {
    const wireId = findName(block.id) ?? 'call'
    const id = unique(wireId, count => `${wireId}_${count}`)
    const caller = isRecord(block.caller) ? { caller: block.caller } : {}
    return {
      type: 'tool_call',
      choice: 0,
      index,
      id,
      name: getText(block.name).toWellFormed(),
      signature: null,
      ...caller,
    }
  }
  const said = (wire: unknown, block: OpenBlock | undefined): readonly AnswerPart[] => {
    if (!isText(wire)) return nothing
    text.add(wire)
    const { number = 0 } = block ?? {}
    return [{ type: 'text', choice: 0, text: wire, ...(number === 0 ? {} : { block: number }) }]
  }
  /** Returns the citations of a complete block, each of which belongs to all of its text. */
  const citations = ({ cited, from }: OpenBlock): readonly AnswerPart[] => {
    if (cited.length === 0) return nothing
    const place = { start: text.points(from), end: text.points() }
    return cited.flatMap(wire => {
      // Clients link to `url`. A `source` is a name that the client itself gave.
      if (wire.url != null && webAddress(wire.url) === null) return nothing
      const own = { dialect: 'messages', json: JSON.stringify(wire) } as const
      const title = wire.title ?? wire.document_title
      return text.cite({ url: wire.url ?? wire.source, title, quote: wire.cited_text }, place, own)
    })
  }
  const beginning = (open: OpenBlock, block: Json): readonly AnswerPart[] => {
    const { kind, toolIndex } = open
    switch (kind) {
      case 'text':
        return said(block.text, open)
      case 'reasoning':
        return piece('reasoning', block.thinking)
      case 'call':
        return [toolCall(toolIndex, block)]
      case 'ignored':
        return block.type === 'redacted_thinking' && isText(block.data)
          ? [reasoningEnd('redacted', block.data)]
          : nothing
      case 'json':
      case 'item':
        return nothing
    }
  }
  const close = (index: unknown): readonly AnswerPart[] => {
    const block = blocks.get(index)
    blocks.delete(index)
    if (block === undefined) return nothing
    if (block.kind === 'reasoning')
      return block.signature === null ? nothing : [reasoningEnd('signature', block.signature)]
    if (block.kind === 'item') return [providerItem(block)]
    if (block.kind === 'text') return citations(block)
    // Relays write the input into the opening event, and perhaps an empty one into the deltas.
    if (block.written === null || isEmptyArguments(block.written)) return inputPiece(block, argumentsText(block.input))
    hasBrokenInput ||= isTruncated(block)
    return nothing
  }

  return {
    open(index, block) {
      const open = blocks.get(index)
      // Two blocks under one index: one of them is incomplete.
      if (calls.has(index) || (open !== undefined && showsInAll(open))) return [truncated('block_reopened')]
      if (!isRecord(block)) return nothing
      if (blocks.size >= maximumOpen) return [badAnswer('too_many_blocks')]
      const next = opened(block)
      blocks.set(index, next)
      if (takesInput(next)) calls.add(index)
      return beginning(next, block)
    },
    add(index, delta) {
      const block = blocks.get(index)
      if (block?.kind === 'ignored') return nothing
      if (block?.kind === 'item') return gather(block, delta)
      if (delta.type === 'text_delta') return said(delta.text, block)
      if (delta.type === 'thinking_delta') return piece('reasoning', delta.thinking)
      if (delta.type === 'citations_delta') {
        if (block !== undefined && isRecord(delta.citation)) block.cited = [...block.cited, delta.citation]
        return nothing
      }
      if (delta.type === 'signature_delta') {
        if (block !== undefined) block.signature = (block.signature ?? '') + getText(delta.signature)
        return nothing
      }
      if (delta.type !== 'input_json_delta' || !isText(delta.partial_json)) return nothing
      // Its block was closed before, or never opened: some call lacks this input.
      if (block === undefined) return [truncated('input_without_block')]
      const before = block.written ?? ''
      block.written = (isEmptyArguments(before) ? '' : before) + delta.partial_json
      return inputPiece(block, delta.partial_json)
    },
    close,
    closeAll: () => [...blocks.keys()].flatMap(close),
    recount: () => calls.clear(),
    hasOpen: () => blocks.values().some(showsInAll),
    hasTruncated: () => hasBrokenInput || blocks.values().some(isUnclosedCall),
    hasCalls: () => callCount > 0,
  }
}

/** Returns true if clients of every API form see the block. */
function showsInAll({ kind }: OpenBlock): boolean {
  return kind !== 'ignored' && kind !== 'item'
}

function findSignature({ signature }: Json): string | null {
  return isText(signature) ? signature : null
}

function reasoningEnd(kind: 'signature' | 'redacted', data: string): AnswerPart {
  return { type: 'reasoning_end', choice: 0, family: 'anthropic', kind, data, id: null }
}

/** Adds a delta to a block of any kind: texts are appended, other fields replaced. */
function gather(open: OpenBlock, { type, partial_json, ...fields }: Json): readonly AnswerPart[] {
  if (type === 'input_json_delta') open.written = (open.written ?? '') + getText(partial_json)
  const grown = Object.entries(fields).map(([name, value]) => {
    const known = open.block[name]
    return [name, typeof known === 'string' && typeof value === 'string' ? known + value : value]
  })
  open.block = { ...open.block, ...Object.fromEntries(grown) }
  return nothing
}

/** Returns a complete block; the input of a provider-side tool arrived in parts. */
function providerItem({ block, written }: OpenBlock): AnswerPart {
  const input = written === null ? null : objectIn(written)
  const whole = input === null ? block : { ...block, input }
  return { type: 'provider_item', choice: 0, dialect: 'messages', json: JSON.stringify(whole) }
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

function piece(type: 'text' | 'reasoning', text: unknown): readonly AnswerPart[] {
  return isText(text) ? [{ type, choice: 0, text }] : nothing
}

/**
 * Returns the parts of an input delta: arguments of a client's tool, text of the JSON answer, nothing for other blocks.
 */
function inputPiece(block: OpenBlock, text: string): readonly AnswerPart[] {
  if (block.kind === 'json') return [{ type: 'text', choice: 0, text }]
  return block.kind === 'call' ? [{ type: 'tool_arguments', choice: 0, index: block.toolIndex, text }] : nothing
}
