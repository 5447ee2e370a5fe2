/**
 * Takes the text out of `{"input":"…"}`, as which models write the input of a free-text tool, while its JSON arrives: a client that
 * waits for a long patch sees it come.
 */
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { isFields } from './check.ts'

const opening = /^\s*\{\s*"input"\s*:\s*"/
/** Longer than any opening with the blank space that models write. */
const longestOpening = 64

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

export class CustomInput {
  /** JSON that has come. */
  private json = ''
  /** How far it was read; -1 = its opening has not come whole, -2 = it has another shape, to be read at the end. */
  private at = -1
  private isClosed = false
  /** Half a surrogate pair that waits for its other half. */
  private half = ''
  private text = ''

  /** The next piece of the JSON; returns what it adds to the text. */
  add(piece: string): string {
    this.json += piece
    if (this.at === -1) {
      const found = opening.exec(this.json)
      if (found !== null) this.at = found[0].length
      else if (this.json.length > longestOpening) this.at = -2
    }
    if (this.at < 0 || this.isClosed) return ''
    const added = this.decoded()
    this.text += added
    return added
  }

  /** The whole text, and what of it was not handed out yet. */
  end(): { readonly whole: string; readonly rest: string } {
    const whole = wholeInput(this.json)
    if (this.isClosed || !whole.startsWith(this.text)) return { whole: this.text, rest: '' }
    return { whole, rest: whole.slice(this.text.length) }
  }

  private decoded(): string {
    const { json } = this
    let out = ''
    while (this.at < json.length) {
      const next = json.charCodeAt(this.at)
      if (next === quote) {
        this.isClosed = true
        break
      }
      if (next !== backslash) {
        const end = plainEnd(json, this.at)
        out += json.slice(this.at, end)
        this.at = end
        continue
      }
      const kind = json[this.at + 1]
      const length = kind === 'u' ? 6 : 2
      if (kind === undefined || this.at + length > json.length) break
      out +=
        kind === 'u'
          ? String.fromCharCode(Number.parseInt(json.slice(this.at + 2, this.at + 6), 16))
          : (escapes[kind] ?? kind)
      this.at += length
    }
    const joined = this.half + out
    const last = joined.charCodeAt(joined.length - 1)
    const isCut = !this.isClosed && last >= 0xd800 && last < 0xdc00
    this.half = isCut ? joined.slice(-1) : ''
    return isCut ? joined.slice(0, -1) : joined
  }
}

const quote = 34
const backslash = 92

function plainEnd(json: string, from: number): number {
  let end = from
  while (end < json.length && json.charCodeAt(end) !== quote && json.charCodeAt(end) !== backslash) end++
  return end
}

/** Of arguments in another shape the one text that they hold; else they themselves. */
function wholeInput(json: string): string {
  const value = parseUntrustedJson(json)
  if (typeof value === 'string') return value
  if (!isFields(value)) return json
  if (typeof value.input === 'string') return value.input
  const texts = Object.values(value)
  const [only] = texts
  return texts.length === 1 && typeof only === 'string' ? only : json
}
