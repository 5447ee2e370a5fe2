/** Positions of values in a valid JSON text, so that parts can be replaced without rewriting the rest. */
import { closingQuote } from '../core/validation/untrusted-json.ts'

/** From `from` up to but excluding `to`. */
export type JsonSpan = { readonly from: number; readonly to: number }
/** A member of an object: its span begins at the key, `value` after the colon. */
export type Member = JsonSpan & { readonly key: string; readonly value: JsonSpan }

/** Returns the members of the object that begins at or after `at`, in order, including duplicates. */
export function membersAt(text: string, at: number): readonly Member[] {
  const members: Member[] = []
  let from = skipBlank(text, skipBlank(text, at) + 1)
  while (text[from] === '"') {
    const keyEnd = closingQuote(text, from) + 1
    // Compares decoded keys, since an escape spells the same key.
    const key = String(JSON.parse(text.slice(from, keyEnd)))
    const value = valueAt(text, skipBlank(text, keyEnd) + 1)
    members.push({ key, from, to: value.to, value })
    from = nextAfter(text, value.to)
  }
  return members
}

/** Returns the elements of the list that begins at or after `at`. */
export function elementsAt(text: string, at: number): readonly JsonSpan[] {
  const elements: JsonSpan[] = []
  let from = skipBlank(text, skipBlank(text, at) + 1)
  while (from < text.length && text[from] !== ']') {
    const element = valueAt(text, from)
    elements.push(element)
    from = nextAfter(text, element.to)
  }
  return elements
}

/** A replacement of a span's text; '' removes it. */
export type Edit = JsonSpan & { readonly text: string }

/**
 * Returns the edits that remove members or elements with one adjacent comma each. Removing all of them leaves an empty
 * list.
 */
export function removals(spans: readonly JsonSpan[], isRemoved: (index: number) => boolean): readonly Edit[] {
  const edits: Edit[] = []
  let hasKept = false
  for (const [index, span] of spans.entries()) {
    if (!isRemoved(index)) {
      hasKept = true
      continue
    }
    const from = hasKept ? (spans[index - 1]?.to ?? span.from) : span.from
    const to = hasKept ? span.to : (spans[index + 1]?.from ?? span.to)
    edits.push({ from, to, text: '' })
  }
  return edits
}

/** The text with all edits done; they must not overlap, but one may add where another begins. */
export function edited(text: string, edits: readonly Edit[]): string {
  let out = ''
  let at = 0
  for (const edit of [...edits].sort((item, other) => item.from - other.from)) {
    out += text.slice(at, edit.from) + edit.text
    at = Math.max(at, edit.to)
  }
  return out + text.slice(at)
}

function valueAt(text: string, at: number): JsonSpan {
  const from = skipBlank(text, at)
  return { from, to: endOfValue(text, from) }
}

function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from)
  if (first === quote) return closingQuote(text, from) + 1
  let at = from
  if (first !== openBracket && first !== openBrace) {
    while (at < text.length && !isScalarEnd(text.charCodeAt(at))) at++
    return at
  }
  for (let depth = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) at = closingQuote(text, at)
    else if (unit === openBracket || unit === openBrace) depth++
    else if ((unit === closeBracket || unit === closeBrace) && --depth === 0) return at + 1
  }
  return text.length
}

const [quote, openBracket, openBrace, closeBracket, closeBrace] = [0x22, 0x5b, 0x7b, 0x5d, 0x7d] as const

function isScalarEnd(unit: number): boolean {
  return unit === 0x2c || unit === closeBracket || unit === closeBrace || isBlank(unit)
}

function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09
}

function skipBlank(text: string, at: number): number {
  while (isBlank(text.charCodeAt(at))) at++
  return at
}

/** Returns the position after the next comma, or the end of the list. */
function nextAfter(text: string, at: number): number {
  const next = skipBlank(text, at)
  return text[next] === ',' ? skipBlank(text, next + 1) : next
}
