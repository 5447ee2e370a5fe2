/**
 * Extracts the text of `{"input":"…"}` while its JSON arrives. Models write the input of a free-text tool in this form, and clients
 * show long patches as they stream.
 */
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import { isFields } from './check.ts'

const opening = /^\s*\{\s*"input"\s*:\s*"/
/** Maximum characters of an opening, with the white space that models write. */
const longestOpening = 64

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

export class CustomInput {
  /** JSON received so far. */
  private json = ''
  /** Next position to read; -1 = the opening is incomplete, -2 = other JSON, which `end` parses. */
  private at = -1
  private isClosed = false
  /** First half of a surrogate pair whose second half is missing. */
  private half = ''
  private text = ''

  /** Adds a delta of the JSON and returns the text that it contains. */
  add(delta: string): string {
    this.json += delta
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

  /** Returns whether the JSON has arrived whole. */
  isComplete(): boolean {
    return isFields(parseUntrustedJson(this.json))
  }

  /** Returns the complete text and the part that `add` has not returned. */
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

/** Returns the input text; for other arguments their only string, or else the JSON. */
function wholeInput(json: string): string {
  const value = parseUntrustedJson(json)
  if (typeof value === 'string') return value
  if (!isFields(value)) return json
  if (typeof value.input === 'string') return value.input
  const texts = Object.values(value)
  const [only] = texts
  return texts.length === 1 && typeof only === 'string' ? only : json
}
