/**
 * Distinguishes truncated tool calls from complete ones by their arguments: text that ends inside a string or an open
 * bracket lacks its end, and text that ends like an object without beginning like one lacks its beginning. Otherwise
 * invalid text is the model's own mistake and passed to clients unchanged.
 */
export class ArgumentsScan {
  private depth = 0
  private inString = false
  private isEscaped = false
  private first = 0
  private last = 0

  /** Adds a part of the text. */
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
      // A closing bracket without an opening one does not cancel a later one, so parts in the wrong order count as
      // unfinished.
      else if (unit === closeBrace || unit === closeBracket) this.depth = Math.max(0, this.depth - 1)
    }
  }

  /** Returns true if the text so far cannot be complete. */
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
