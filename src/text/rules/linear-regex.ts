/**
 * Operators' regular expressions compiled to one transition table: each text is read once, one step per character, for
 * any expression and text. Compilation rejects what cannot run this way: back references, look-around, lazy or
 * possessive quantifiers, and expressions whose table would be too large.
 *
 * Supported: literals, `.`, classes, `\d \w \s \b` and their negations, groups, `|`, `?`, `*`, `+`, `{n}`, `{n,m}`, `^`
 * and `$` at the ends. Case-insensitive in all scripts. `\d \w \s \b` are ASCII only; classes cannot contain characters
 * beyond U+FFFF.
 */

import { type CodeUnitRanges, complement, everyUnit, union, unitsOf } from '../code-unit-ranges.ts'

export type LinearRegex = {
  /** Returns true if the text contains a match. */
  test(text: string): boolean
}

/** Compiles an expression. Throws a TypeError with the reason if it is rejected. */
export function compileLinearRegex(source: string): LinearRegex {
  const parser = createParser(source)
  const machine = startMachine()
  const end = machine.state()
  const start = parser.parse(machine, end)
  const alphabet = alphabetOf(machine)
  const table = tableOf(machine, alphabet, start, end, source)
  const { symbolOf, count, rest } = alphabet
  return {
    test(text) {
      let state = table.start
      for (let at = 0; at < text.length; at++) {
        const unit = text.charCodeAt(at)
        state = table.next[state * count + (unit < symbolOf.length ? (symbolOf[unit] ?? rest) : rest)] ?? 0
        if (table.accepts[state] === 1) return true
      }
      return table.acceptsAtEnd[state] === 1
    },
  }
}

const maximumStates = 2_048
const maximumParts = 4_096
const maximumRepeat = 256

type Condition = 'boundary' | 'inside' | 'start' | 'end'
type Part =
  | { readonly kind: 'step'; readonly accepts: CodeUnitRanges; readonly to: number }
  | { readonly kind: 'free'; readonly to: readonly number[] }
  | { readonly kind: 'check'; readonly condition: Condition; readonly to: number }

type Machine = { readonly parts: (Part | null)[]; state(): number; set(state: number, part: Part): void }

function startMachine(): Machine {
  const parts: (Part | null)[] = []
  return {
    parts,
    state() {
      if (parts.length >= maximumParts) throw new TypeError('the expression is too large to be run in linear time')
      return parts.push(null) - 1
    },
    set(state, part) {
      parts[state] = part
    },
  }
}

const simpleBounds: Readonly<Record<string, readonly [number, number | null]>> = {
  '?': [0, 1],
  '*': [0, null],
  '+': [1, null],
}

/** Builds an expression backwards: each part receives its target state and returns its start state. */
type Build = (machine: Machine, to: number) => number

function createParser(source: string) {
  let at = 0
  const refuse = (why: string): never => {
    throw new TypeError(`${why} (in "${source}"); only what runs in linear time is taken`)
  }

  const alternatives = (): Build => {
    const options = [sequence()]
    while (source[at] === '|') {
      at++
      options.push(sequence())
    }
    return (machine, to) => {
      const starts = options.map(option => option(machine, to))
      return free(machine, starts)
    }
  }

  const sequence = (): Build => {
    const pieces: Build[] = []
    while (at < source.length && source[at] !== '|' && source[at] !== ')') pieces.push(repeated())
    return (machine, to) => pieces.reduceRight((next, piece) => piece(machine, next), to)
  }

  const repeated = (): Build => {
    let piece = atom()
    for (;;) {
      const [least, most] = bounds()
      if (least === null) return piece
      if (source[at] === '?' || source[at] === '+') refuse('lazy and possessive marks are not known')
      piece = repeat(piece, least, most)
    }
  }

  const bounds = (): readonly [least: number, most: number | null] | readonly [null, null] => {
    const mark = source[at] ?? ''
    const simple = simpleBounds[mark]
    if (simple !== undefined) {
      at++
      return simple
    }
    const found = /^\{(\d+)(?:(,)(\d*))?\}/.exec(source.slice(at, at + 16))
    if (mark !== '{' || found === null) return [null, null]
    at += found[0].length
    const least = Number(found[1])
    const most = found[2] === undefined ? least : found[3] === '' ? null : Number(found[3])
    if (Math.max(least, most ?? 0) > maximumRepeat || (most !== null && most < least))
      refuse('a repetition out of bounds')
    return [least, most]
  }

  const atom = (): Build => {
    const mark = source[at]
    if (mark === undefined || mark === '*' || mark === '+' || mark === '?') return refuse('nothing to repeat')
    at++
    switch (mark) {
      case '(': {
        if (source[at] === '?') {
          if (source[at + 1] !== ':') return refuse('look-around and named groups are not known')
          at += 2
        }
        const inner = alternatives()
        if (source[at] !== ')') return refuse('a group is not closed')
        at++
        return inner
      }
      case '[':
        return step(classOf())
      case '.':
        return step(everyUnit)
      case '^':
        return check('start')
      case '$':
        return check('end')
      case '\\':
        return escapedPiece()
      default:
        return literal(mark)
    }
  }

  /** A character beyond U+FFFF is two units, but repeats as one. */
  const literal = (mark: string): Build => {
    const first = step(only(mark))
    if (!isHalf(mark)) return first
    const second = step(only(source[at++] ?? refuse('half a character')))
    return (machine, to) => first(machine, second(machine, to))
  }

  const escapedPiece = (): Build => {
    const mark = source[at++] ?? refuse('a backslash at the end')
    if (/[1-9k]/.test(mark)) return refuse('back references are not known')
    if (mark === 'b') return check('boundary')
    if (mark === 'B') return check('inside')
    return step(escaped(mark))
  }

  const escaped = (mark: string): CodeUnitRanges => {
    const known = classes[mark.toLowerCase()]
    if (known !== undefined) return mark === mark.toLowerCase() ? known : complement(known)
    const control = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v' }[mark]
    if (control !== undefined) return only(control)
    if (/[a-z0-9]/i.test(mark)) return refuse(`\\${mark} is not known`)
    return only(mark)
  }

  const classOf = (): CodeUnitRanges => {
    const isNot = source[at] === '^'
    if (isNot) at++
    const found: CodeUnitRanges[] = []
    for (let isFirst = true; source[at] !== ']' || isFirst; isFirst = false) {
      let mark = source[at++] ?? refuse('a class is not closed')
      let members: CodeUnitRanges | null = null
      if (mark === '\\') {
        mark = source[at++] ?? refuse('a class is not closed')
        members = escaped(mark)
      }
      if (isHalf(mark)) refuse('a class knows no character beyond U+FFFF: write a choice, (a|b)')
      const upTo = source[at] === '-' && source[at + 1] !== ']' && source[at + 1] !== undefined ? source[at + 1] : null
      if (upTo !== null && upTo !== undefined && members === null) {
        at += 2
        if (upTo < mark) refuse('a range whose end comes before its beginning')
        found.push(unitsOf(mark.charCodeAt(0), upTo.charCodeAt(0)))
      } else found.push(members ?? only(mark))
    }
    at++
    return isNot ? complement(union(found)) : union(found)
  }

  return {
    parse(machine: Machine, end: number): number {
      const build = alternatives()
      if (at < source.length) refuse('a group is closed that was not opened')
      return build(machine, end)
    },
  }
}

function step(accepts: CodeUnitRanges): Build {
  return (machine, to) => {
    const state = machine.state()
    machine.set(state, { kind: 'step', accepts, to })
    return state
  }
}

function check(condition: Condition): Build {
  return (machine, to) => {
    const state = machine.state()
    machine.set(state, { kind: 'check', condition, to })
    return state
  }
}

function free(machine: Machine, to: readonly number[]): number {
  const state = machine.state()
  machine.set(state, { kind: 'free', to })
  return state
}

function repeat(piece: Build, least: number, most: number | null): Build {
  return (machine, to) => {
    let next = to
    if (most === null) {
      const loop = machine.state()
      machine.set(loop, { kind: 'free', to: [piece(machine, loop), to] })
      next = loop
    } else for (let count = least; count < most; count++) next = free(machine, [piece(machine, next), to])
    for (let count = 0; count < least; count++) next = piece(machine, next)
    return next
  }
}

function only(mark: string): CodeUnitRanges {
  return unitsOf(mark.charCodeAt(0), mark.charCodeAt(0))
}

function isHalf(mark: string): boolean {
  return mark >= '\ud800' && mark <= '\udfff'
}

const digits = unitsOf(48, 57)
const wordLike = union([digits, unitsOf(97, 122), unitsOf(95, 95)])
const classes: Readonly<Record<string, CodeUnitRanges>> = {
  d: digits,
  w: wordLike,
  s: union([unitsOf(9, 13), unitsOf(32, 32)]),
}

/** Units that no part of a machine distinguishes share one symbol. */
type Alphabet = {
  readonly count: number
  /** By unit, up to the last one that an expression names. */
  readonly symbolOf: Uint16Array
  /** The symbol of all later units. */
  readonly rest: number
  /** By symbol. */
  readonly isWord: readonly boolean[]
  /** By set, then by symbol. */
  readonly takenBy: ReadonlyMap<CodeUnitRanges, readonly boolean[]>
}

function alphabetOf({ parts }: Machine): Alphabet {
  const sets = [wordLike, ...new Set(parts.flatMap(part => (part?.kind === 'step' ? [part.accepts] : [])))]
  // Units at which set membership changes.
  const turns = new Map<number, number[]>([[0, []]])
  for (const [index, set] of sets.entries())
    for (const [from, to] of set)
      for (const place of [from, to + 1]) turns.set(place, [...(turns.get(place) ?? []), index])
  const places = [...turns.keys()].filter(place => place <= 0xffff).sort((one, two) => one - two)
  const symbolOf = new Uint16Array(places.at(-1) ?? 0)
  const symbols = new Map<string, number>()
  const takers: ReadonlySet<number>[] = []
  const inside = new Set<number>()
  let rest = 0
  for (const [at, place] of places.entries()) {
    for (const index of turns.get(place) ?? []) if (!inside.delete(index)) inside.add(index)
    const key = [...inside].sort((one, two) => one - two).join(',')
    rest = symbols.get(key) ?? symbols.size
    if (rest === symbols.size) {
      symbols.set(key, rest)
      takers.push(new Set(inside))
    }
    symbolOf.fill(rest, place, places[at + 1] ?? place)
  }
  const takenBy = new Map(sets.map((set, index) => [set, takers.map(taker => taker.has(index))]))
  return { count: symbols.size, symbolOf, rest, isWord: takenBy.get(wordLike) ?? [], takenBy }
}

/** Computes every reachable set of states in advance. */
function tableOf(machine: Machine, alphabet: Alphabet, begin: number, end: number, source: string) {
  const { parts } = machine
  const keys = new Map<string, number>()
  const sets: { readonly places: readonly number[]; readonly afterWord: boolean; readonly atStart: boolean }[] = []
  const accepts: number[] = []
  const acceptsAtEnd: number[] = []
  const next: number[] = []

  /** Returns the states reachable without a character. The units before and after decide which assertions pass. */
  const closure = (
    from: readonly number[],
    atStart: boolean,
    afterWord: boolean,
    beforeWord: boolean,
    atEnd: boolean,
  ) => {
    const seen = new Set<number>()
    const open = [...from]
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      if (seen.has(place)) continue
      seen.add(place)
      const part = parts[place] ?? null
      if (part?.kind === 'free') open.push(...part.to)
      else if (part?.kind === 'check') {
        const isBoundary = afterWord !== beforeWord
        const holds = { boundary: isBoundary, inside: !isBoundary, start: atStart, end: atEnd }[part.condition]
        if (holds) open.push(part.to)
      }
    }
    return seen
  }

  const numberOf = (places: ReadonlySet<number>, afterWord: boolean, atStart: boolean): number => {
    const sorted = [...places].sort((one, two) => one - two)
    const key = `${afterWord} ${atStart} ${sorted.join(',')}`
    const known = keys.get(key)
    if (known !== undefined) return known
    if (sets.length >= maximumStates)
      throw new TypeError(`the expression has too many states (in "${source}"); make repetitions shorter or fewer`)
    const number = sets.push({ places: sorted, afterWord, atStart }) - 1
    keys.set(key, number)
    accepts.push(closure(sorted, false, false, false, false).has(end) && !needsMore(sorted, afterWord, atStart) ? 1 : 0)
    acceptsAtEnd.push(closure(sorted, atStart, afterWord, false, true).has(end) ? 1 : 0)
    return number
  }
  const needsMore = (places: readonly number[], afterWord: boolean, atStart: boolean) =>
    ![false, true].every(beforeWord => closure(places, atStart, afterWord, beforeWord, false).has(end))

  const start = numberOf(new Set([begin]), false, true)
  for (let number = 0; number < sets.length; number++) {
    const set = sets[number]
    if (set === undefined) break
    const [beforeOther, beforeWord] = [false, true].map(isWord =>
      closure(set.places, set.atStart, set.afterWord, isWord, false),
    )
    for (let symbol = 0; symbol < alphabet.count; symbol++) {
      const isWord = alphabet.isWord[symbol] === true
      const reached = (isWord ? beforeWord : beforeOther) ?? new Set()
      // A match is final: if an assertion completes it here, no further character is needed.
      const to = new Set<number>(reached.has(end) ? [end] : [begin])
      if (!reached.has(end))
        for (const place of reached) {
          const part = parts[place] ?? null
          if (part?.kind === 'step' && alphabet.takenBy.get(part.accepts)?.[symbol] === true) to.add(part.to)
        }
      next.push(numberOf(to, isWord, false))
    }
  }
  return {
    start,
    next: Uint16Array.from(next),
    accepts: Uint8Array.from(accepts),
    acceptsAtEnd: Uint8Array.from(acceptsAtEnd),
  }
}
