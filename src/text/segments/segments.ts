/**
 * Divides a message into the request itself, its material (fences, quotations, tables, logs, mails, documents) and the
 * frame that a client program puts around both. Judges of the request would otherwise judge its material. Linear; a text
 * of one line without marks is the request as it stands.
 */

import { isTokenUnit } from '../code-units.ts'
import type { SegmentKind } from '../dry-run-names.ts'
import { getLineKind, isMaterialLine, lineKinds, mayBeLabeled } from './lines.ts'
import { getPayloads } from './payload.ts'
import { type Ask, asksFor, getLabel, isFrameTag, isWrapperTag } from './phrases.ts'

/** A part of a message: UTF-16 positions, without its text. */
export type Segment = { readonly kind: SegmentKind; readonly from: number; readonly to: number }

export type Segments = {
  /** In order, without overlap; blanks between them belong to none. */
  readonly parts: readonly Segment[]
  /** The text of the request; empty = the message is only material. */
  readonly request: string
  /** Characters of the material. */
  readonly material: number
  /** Characters of the material that is program text. */
  readonly code: number
}

/** Consecutive lines of one sort. `fixed`: decided by a label, tag or form. */
type Block = {
  kind: SegmentKind | null
  readonly form: number
  readonly from: number
  to: number
  readonly isHeading: boolean
  /** Only the look of its lines makes it material. */
  readonly isByForm: boolean
}

const longestLine = 280
/** A shorter run of lines is no material by its looks. */
const leastRun = 60

/** The segments of messages, for as long as the messages are there: moderation reads what routing has read. */
const known = new WeakMap<object, { readonly text: string; readonly segments: Segments }>()

/** Returns the segments of a text of a message, which may have others. */
export function getSegments(message: object, text: string): Segments {
  const before = known.get(message)
  if (before?.text === text) return before.segments
  const segments = readSegments(text)
  known.set(message, { text, segments })
  return segments
}

export function readSegments(text: string): Segments {
  if (text.length <= longestLine && !text.includes('\n'))
    return withoutPayload(text, [{ kind: 'request', form: lineKinds.prose, from: 0, to: text.length }])
  const blocks = readBlocks(text)
  // A stray line is no material.
  for (const block of blocks) if (block.isByForm && !isRun(text, block)) block.kind = null
  // An exam's passage, question and options are one question.
  if (isExamQuestion(blocks, text))
    return { parts: [{ kind: 'request', from: 0, to: text.length }], request: text, material: 0, code: 0 }
  chooseRequest(blocks, text)
  return withoutPayload(text, blocks)
}

/** Lines that look like material, or one that looks like data from its first character on. */
function isRun(text: string, { from, to }: Block): boolean {
  if (to - from < leastRun) return false
  const next = text.indexOf('\n', from)
  return (next !== -1 && next < to) || '{[<|'.includes(text[from] ?? ' ')
}

/** Cuts a text into blocks: paragraphs, and runs of material of one form. */
function readBlocks(text: string): Block[] {
  const blocks: Block[] = []
  let open: Block | null = null
  let label: SegmentKind | null = null
  for (let from = 0; from < text.length; ) {
    const end = lineEnd(text, from)
    let first = from
    while (first < end && text.charCodeAt(first) <= 32) first++
    const closed = enclosing.has(text.charCodeAt(first)) ? readEnclosed(text, from, first, end) : null
    if (closed !== null) {
      open = null
      blocks.push(...closed.blocks)
      from = closed.next
      continue
    }
    const kind = getLineKind(text, from, first, end)
    if (kind === lineKinds.blank) {
      if (open !== null && !isMaterialLine(open.form)) open = null
      from = end + 1
      continue
    }
    const mayBeLabel = kind === lineKinds.heading || (kind === lineKinds.prose && mayBeLabeled())
    const named = mayBeLabel ? getLabel(text, from, end) : null
    if (named !== null) label = named
    // What follows the head of a mail is its body.
    else if (kind === lineKinds.mail) label = 'material'
    // A comment or text within a program belongs to it.
    const isWithin: boolean =
      open?.form === lineKinds.code &&
      open.to + 1 === from &&
      open.to - open.from >= leastRun &&
      text.charCodeAt(from) <= 32
    const form: number = isWithin ? lineKinds.code : isMaterialLine(kind) ? kind : lineKinds.prose
    if (open === null || open.form !== form || named !== null) {
      const fixed: SegmentKind | null = form !== lineKinds.prose || label === 'material' ? 'material' : label
      // The label itself is no part of the question.
      const start = named === 'request' ? labelEnd(text, from, end) : from
      open = {
        kind: fixed,
        form,
        from: start,
        to: end,
        isHeading: kind === lineKinds.heading,
        isByForm: form !== lineKinds.prose && label !== 'material',
      }
      // A labeled question ends where its paragraph ends; a labeled document goes on.
      if (label === 'request') label = null
      blocks.push(open)
    } else open.to = end
    from = end + 1
  }
  return blocks
}

function labelEnd(text: string, from: number, to: number): number {
  for (let at = from; at < to; at++) if (text[at] === ':' || text[at] === '：') return at + 1
  return from
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end === -1 ? text.length : end
}

/** What a fence or a tag begins with. */
const enclosing = new Set(Array.from('`~<', mark => mark.charCodeAt(0)))

/** A fence or a pair of tags that begins with this line, and where the text goes on; null = neither. */
function readEnclosed(
  text: string,
  from: number,
  start: number,
  end: number,
): { readonly blocks: readonly Block[]; readonly next: number } | null {
  if (text.startsWith('```', start) || text.startsWith('~~~', start)) {
    const mark = `\n${text.slice(start, start + 3)}`
    const close = text.indexOf(mark, Math.max(start, end - 1))
    const to = close === -1 ? unclosedEnd(text, end) : lineEnd(text, close + 1)
    return {
      blocks: [{ kind: 'material', form: lineKinds.code, from, to, isHeading: false, isByForm: false }],
      next: to + 1,
    }
  }
  if (text[start] !== '<') return null
  let nameEnd = start + 1
  while (nameEnd < end && isTokenUnit(text.charCodeAt(nameEnd))) nameEnd++
  const name = text.slice(start + 1, nameEnd)
  const opened = text.indexOf('>', nameEnd)
  if (name === '' || opened === -1 || opened > end) return null
  const close = text.indexOf(`</${name}>`, opened)
  if (close === -1) return null
  const to = close + name.length + 3
  if (isWrapperTag(name)) return { blocks: readBlocksIn(text, opened + 1, close), next: to }
  const kind = isFrameTag(name) ? 'frame' : 'material'
  return { blocks: [{ kind, form: lineKinds.quote, from: start, to, isHeading: false, isByForm: false }], next: to }
}

/** A document that was cut within a fence takes all that follows, except a last paragraph that asks. */
function unclosedEnd(text: string, from: number): number {
  const last = text.lastIndexOf('\n\n')
  const tail = text.slice(last + 2)
  return last > from && tail.length <= longestLine && asksFor(tail, tail).score >= 3 ? last : text.length
}

/** What a client program wraps as the user's own words. */
function readBlocksIn(text: string, from: number, to: number): Block[] {
  return readBlocks(text.slice(from, to)).map(block => ({
    ...block,
    kind: block.kind ?? 'request',
    from: block.from + from,
    to: block.to + from,
  }))
}

/** Returns true if a text has options `A` to `C` at the start of lines. */
function isExamQuestion(blocks: readonly Block[], text: string): boolean {
  let wanted = 65
  for (const { from, to, form } of blocks) {
    if (form === lineKinds.code) continue
    for (let at = from; at < to && wanted < 68; at = lineEnd(text, at) + 1) {
      const first = text[at] === '(' ? at + 1 : at
      const mark = text[first + 1]
      if ((text.charCodeAt(first) & ~32) === wanted && (mark === '.' || mark === ')' || mark === ':')) wanted++
    }
  }
  return wanted === 68
}

/** A longer block is a document, unless it speaks as its author. */
const longestAsk = 700
/** Less than this around a request is its own explanation. */
const leastMaterial = 160
/** A first paragraph up to this length may be an order without a verb. */
const longestTerse = 40
/** A task to solve, write or build comes with its statement; more than this is a document. */
const longestStatement = 1_500

/** Decides which of the blocks without a fixed kind are the request: the first or the last, or all of them. */
function chooseRequest(blocks: readonly Block[], text: string): void {
  const free = blocks.filter(({ kind }) => kind === null)
  const isLabeled = blocks.some(({ kind }) => kind === 'request')
  const rescued = isLabeled ? null : askingTail(blocks, text, free.length === 0 ? 2 : 3)
  if (free.length === 0) {
    if (rescued !== null) rescued.kind = 'request'
    return
  }
  // A text of one paragraph is the request, whatever it says.
  if (free.length === blocks.length && free.length === 1) {
    for (const block of free) block.kind = 'request'
    return
  }
  const knownAsks = new Map<Block, Ask>()
  const getAsk = (block: Block) => {
    const known =
      knownAsks.get(block) ??
      asksFor(
        text.slice(block.from, Math.min(block.to, block.from + longestAsk)),
        text.slice(Math.max(block.from, block.to - longestAsk), block.to),
      )
    knownAsks.set(block, known)
    return known
  }
  const [head] = free
  const tail = free.at(-1)
  if (head === undefined || tail === undefined) return
  const isFirst = head === blocks.find(({ kind }) => kind !== 'frame')
  const isLast = tail === blocks.findLast(({ kind }) => kind !== 'frame')
  const fixed = getTotalSize(blocks.filter(({ kind }) => kind === 'material'))
  const prose = getTotalSize(free)
  const canAsk = (block: Block, least: number) =>
    !block.isHeading &&
    (block === blocks[0] || text.charCodeAt(block.from) > 32) &&
    block.to - block.from <= longestAsk &&
    getAsk(block).score >= least
  const headAsks = isFirst && canAsk(head, 2)
  const tailAsks = tail !== head && isLast && canAsk(tail, !headAsks ? 2 : getAsk(head).announces ? 5 : 3)
  if (rescued !== null) rescued.kind = 'request'
  // `tl;dr` above a document says what to do with it.
  const isTerse = isFirst && head.to - head.from <= longestTerse && prose > longestStatement && canAsk(head, 1)
  const asks = free.filter(
    block => (block === head && (headAsks || (isTerse && !tailAsks))) || (block === tail && tailAsks),
  )
  const isStatement = headAsks && getAsk(head).works && prose <= longestStatement
  const isAnnounced = isLabeled || (headAsks && getAsk(head).announces && !getAsk(head).works)
  if (
    (fixed + prose < leastMaterial && !isAnnounced) ||
    isStatement ||
    (fixed === 0 && (isLabeled || asks.length === 0))
  ) {
    for (const block of free) block.kind = 'request'
  } else if (asks.length > 0 || isLabeled || rescued !== null) {
    // What stands beside is the user's explanation, unless it was announced or speaks for no one.
    // A problem comes before its question, a document as well: only a long one is material.
    const least = headAsks || fixed > 0 ? leastMaterial : longestAsk
    const isOwn = !isAnnounced && prose - getTotalSize(asks) < least
    for (const block of free) {
      const isSaid = isOwn || (!isAnnounced && isVoiced(getAsk(block), block))
      block.kind = asks.includes(block) || isSaid ? 'request' : 'material'
    }
  } else {
    // Beside material of another form a short paragraph is the request, whatever it says.
    for (const block of free) {
      const isAtEdge = (block === head && isFirst && !head.isHeading) || (block === tail && isLast)
      block.kind = (isAtEdge && canAsk(block, 1)) || isVoiced(getAsk(block), block) ? 'request' : 'material'
    }
    // A long description beside a program is the request, unless it is a document of its own.
    if (free.every(({ kind }) => kind === 'material'))
      for (const block of free) if (!block.isHeading) block.kind = 'request'
  }
}

const leastVoice = 0.03

/** Paragraphs of their author say `I`, `we` and `you`. */
function isVoiced({ voice, speaks }: Ask, { from, to, isHeading }: Block): boolean {
  return !isHeading && (speaks || voice >= (leastVoice * Math.min(longestAsk, to - from)) / 6)
}

/** The last paragraph of a labeled document, if it asks. A mail below a request asks its own reader. */
function askingTail(blocks: readonly Block[], text: string, least: number): Block | null {
  const last = blocks.at(-1)
  if (blocks.findIndex(({ form }) => form === lineKinds.mail) > 0) return null
  if (last === undefined || last.kind !== 'material' || last.form !== lineKinds.prose || blocks.length < 2) return null
  if (last.to - last.from > longestLine) return null
  const own = text.slice(last.from, last.to)
  return getLabel(text, last.from, last.to) === null && asksFor(own, own).score >= least ? last : null
}

function getTotalSize(blocks: readonly Block[]): number {
  return blocks.reduce((sum, { from, to }) => sum + to - from, 0)
}

/** Takes quotations, and what follows the colon of a task on a text, out of the request. */
function withoutPayload(text: string, blocks: readonly Pick<Block, 'kind' | 'form' | 'from' | 'to'>[]): Segments {
  const parts: Segment[] = []
  let request = ''
  let material = 0
  let code = 0
  const add = (kind: SegmentKind, from: number, to: number) => {
    const last = parts.at(-1)
    if (last !== undefined && last.kind === kind && kind !== 'request') parts[parts.length - 1] = { ...last, to }
    else parts.push({ kind, from, to })
    if (kind === 'request')
      request +=
        request === '' ? text.slice(from, to) : `${text[from - 1] === '\n' ? '\n' : ' '}${text.slice(from, to)}`
    else if (kind === 'material') material += to - from
  }
  for (const { kind, from, to, form } of blocks) {
    if (kind !== 'request') {
      add(kind ?? 'material', from, to)
      if (form === lineKinds.code) code += to - from
      continue
    }
    let start = from
    for (const [open, close] of getPayloads(text, from, to)) {
      if (open > start) add('request', start, open)
      add('material', open, close)
      start = close
    }
    if (start < to) add('request', start, to)
  }
  const isWhole = parts.every(({ kind }) => kind === 'request')
  return { parts, request: isWhole ? text : request.trim(), material, code }
}
