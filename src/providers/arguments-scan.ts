/**
 * Tells a truncated tool call from a complete one by its arguments: text that ends inside a string or an open bracket lacks
 * its end, and text that ends like an object without beginning like one lacks its beginning. Text that is invalid in another
 * way is the model's own mistake, which callers get unchanged.
 */
export class ArgumentsScan {
  private depth = 0
  private inString = false
  private isEscaped = false
  private first = 0
  private last = 0

  /** Reads one more piece of the text. */
  add(piece: string): void {
    for (let at = 0; at < piece.length; at += 1) {
      const unit = piece.charCodeAt(at)
      if (unit > space) {
        this.last = unit
        if (this.first === 0) this.first = unit
      }
      if (this.isEscaped) this.isEscaped = false
      else if (this.inString) {
        if (unit === quote) this.inString = false
        else if (unit === backslash) this.isEscaped = true
      } else if (unit === quote) this.inString = true
      else if (unit === openBrace || unit === openBracket) this.depth += 1
      // A close without an open does not cancel a later open: pieces in the wrong order stay unfinished.
      else if (unit === closeBrace || unit === closeBracket) this.depth = Math.max(0, this.depth - 1)
    }
  }

  /** True where the text read so far cannot be the whole. */
  isUnfinished(): boolean {
    return this.inString || this.depth > 0 || (this.last === closeBrace && this.first !== openBrace)
  }
}

const space = 0x20
const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
