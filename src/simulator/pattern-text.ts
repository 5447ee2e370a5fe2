/**
 * Creates a text that a regular expression matches by parsing the expression, which comes from a client and is never
 * run. Supports literals, classes, groups, alternatives and quantifiers, and reports anything else.
 */

/** Maximum repetitions of an unbounded quantifier to reach a length. */
const mostRepeats = 64
const mostCharacters = 512
const mostNested = 16

/** Returns a text with `least` to `most` characters; null = unsupported expression, or no such text. */
export function textMatching(pattern: string, least: number, most: number): string | null {
  for (let extra = 0; extra <= mostRepeats; extra++) {
    const reader = new PatternReader(pattern, extra)
    const text = reader.read()
    if (text === null) return null
    const isOpen = !/(^|[^\\])\$$/.test(pattern)
    const padded = isOpen && pattern !== '' ? text.padEnd(Math.min(least, mostCharacters), 'a') : text
    if ([...padded].length >= least) return [...padded].length <= most ? padded : null
  }
  return null
}

class Unknown extends Error {}

class PatternReader {
  #at = 0
  #nested = 0
  readonly #pattern: string
  readonly #extra: number

  constructor(pattern: string, extra: number) {
    this.#pattern = pattern
    this.#extra = extra
  }

  read(): string | null {
    try {
      const text = this.#alternatives()
      return this.#at === this.#pattern.length ? text : null
    } catch (cause) {
      if (cause instanceof Unknown) return null
      throw cause
    }
  }

  /** Returns the first alternative. */
  #alternatives(): string {
    const first = this.#sequence()
    while (this.#take('|')) this.#sequence()
    return first
  }

  #sequence(): string {
    let text = ''
    while (this.#at < this.#pattern.length && !'|)'.includes(this.#pattern[this.#at] ?? '')) {
      const atom = this.#atom()
      const times = this.#quantifier()
      text += atom.repeat(times)
      if (text.length > mostCharacters) throw new Unknown()
    }
    return text
  }

  #atom(): string {
    const sign = this.#pattern[this.#at++] ?? ''
    switch (sign) {
      case '^':
      case '$':
        return ''
      case '.':
        return 'a'
      case '(':
        return this.#group()
      case '[':
        return this.#class()
      case '\\':
        return this.#escape()
      case '*':
      case '+':
      case '?':
        throw new Unknown()
      default:
        return sign
    }
  }

  #group(): string {
    if (++this.#nested > mostNested) throw new Unknown()
    if (this.#take('?')) {
      if (this.#take('<')) {
        // A group name, or a look-behind.
        if ('=!'.includes(this.#pattern[this.#at] ?? '=')) throw new Unknown()
        const end = this.#pattern.indexOf('>', this.#at)
        if (end === -1) throw new Unknown()
        this.#at = end + 1
      } else if (!this.#take(':')) throw new Unknown()
    }
    const text = this.#alternatives()
    if (!this.#take(')')) throw new Unknown()
    this.#nested--
    return text
  }

  #escape(): string {
    const sign = this.#pattern[this.#at++] ?? ''
    const one = escapes[sign]
    if (one !== undefined) return one
    if (/[a-zA-Z0-9]/.test(sign)) throw new Unknown()
    return sign
  }

  /** Returns the first character of a class. */
  #class(): string {
    const isNegated = this.#take('^')
    const ranges: [string, string][] = []
    while (this.#pattern[this.#at] !== ']') {
      if (this.#at >= this.#pattern.length) throw new Unknown()
      const low = this.#classSign()
      if (this.#pattern[this.#at] === '-' && (this.#pattern[this.#at + 1] ?? ']') !== ']') {
        this.#at++
        ranges.push([low, this.#classSign()])
      } else ranges.push([low, low])
    }
    this.#at++
    const [first] = ranges
    if (!isNegated) {
      if (first === undefined) throw new Unknown()
      return first[0]
    }
    const wide = ranges.flatMap(([low, high]) =>
      low === high && classes[low] !== undefined ? (classes[low] ?? []) : [[low, high] as const],
    )
    const free = [...'aA0_ -~'].find(sign => !wide.some(([low, high]) => low <= sign && sign <= high))
    if (free === undefined) throw new Unknown()
    return free
  }

  #classSign(): string {
    const sign = this.#pattern[this.#at++] ?? ''
    if (sign !== '\\') return sign
    if (this.#pattern[this.#at] === 'b') throw new Unknown()
    return this.#escape()
  }

  #quantifier(): number {
    const sign = this.#pattern[this.#at] ?? ''
    const counted = /^\{(\d{1,4})(,?)(\d{0,4})\}/.exec(this.#pattern.slice(this.#at, this.#at + 12))
    let times = 1
    if (sign === '*' || sign === '+' || sign === '?') {
      this.#at++
      const least = sign === '+' ? 1 : 0
      times = sign === '?' ? Math.min(1, this.#extra) : least + this.#extra
    } else if (counted !== null) {
      const [whole, low = '0', comma, high = ''] = counted
      this.#at += whole.length
      const most = comma === '' ? Number(low) : high === '' ? Number.POSITIVE_INFINITY : Number(high)
      times = Math.min(Number(low) + this.#extra, most)
    } else return 1
    this.#take('?')
    return times
  }

  #take(sign: string): boolean {
    if (this.#pattern[this.#at] !== sign) return false
    this.#at++
    return true
  }
}

const escapes: Readonly<Record<string, string>> = {
  d: '0',
  w: 'a',
  s: ' ',
  D: 'a',
  S: 'a',
  W: '-',
  n: '\n',
  t: '\t',
  r: '\r',
}

/** Characters that `\d`, `\w` and `\s` exclude from a negated class, by their letter. */
const classes: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  '0': [['0', '9']],
  a: [
    ['0', '9'],
    ['A', 'Z'],
    ['_', '_'],
    ['a', 'z'],
  ],
  ' ': [[' ', ' ']],
}
