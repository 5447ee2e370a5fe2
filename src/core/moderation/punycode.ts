/** Labels of host names in ASCII (RFC 3492, with the parameters of its section 5). */

/** Longest label that DNS has, in octets. */
export const maximumLabel = 63

const base = 36
const leastThreshold = 1
const mostThreshold = 26
const skew = 38
const damping = 700
const startBias = 72
const startCode = 128
/** What a lower code comes to as well, without its sign. */
const noGap = 0x7fff_ffff

const codes = new Int32Array(maximumLabel)
/** What is written: a label, and what may be too much of it. */
const written = Buffer.alloc(2 * maximumLabel)
const prefix = written.write('xn--', 'latin1')
const hyphen = 45
const digits = Buffer.from('abcdefghijklmnopqrstuvwxyz0123456789', 'latin1')

/**
 * A label beyond ASCII, in lower case; null where it is longer in ASCII than a label can be. It stops as soon as that is
 * certain, so that no label costs more than some thousand steps.
 */
export function punycodeOf(label: string): string | null {
  const count = readCodes(label)
  if (count === -1) return null
  let length = prefix
  for (let at = 0; at < count; at++) {
    const code = codes[at] ?? 0
    if (code < startCode) written[length++] = code
  }
  let handled = length - prefix
  const plain = handled
  if (plain > 0) written[length++] = hyphen
  let delta = 0
  let bias = startBias
  let code = startCode - 1
  /** How many codes nobody has lie between this one and the next. */
  let gap = gapAbove(code, count)
  while (handled < count) {
    code += gap + 1
    delta += gap * (handled + 1)
    gap = noGap
    for (let at = 0; at < count; at++) {
      const distance = (codes[at] ?? 0) - code
      if (distance === 0) {
        length = writeNumber(delta, bias, length)
        if (length > maximumLabel) return null
        bias = adapted(delta, handled + 1, handled === plain)
        delta = 0
        handled++
      }
      // The order of letters cannot be guessed: a lower one counts, and a higher one may be next, without a branch.
      delta += distance >>> 31
      gap = Math.min(gap, (distance - 1) & noGap)
    }
    delta++
  }
  return written.toString('latin1', 0, length)
}

/** Fills `codes`; returns how many, −1 where they are too many: each takes a digit at least. */
function readCodes(label: string): number {
  let count = 0
  for (let at = 0; at < label.length; at++) {
    if (count > maximumLabel - prefix) return -1
    const code = label.codePointAt(at) ?? 0
    if (code > 0xffff) at++
    codes[count++] = code
  }
  return count
}

function gapAbove(code: number, count: number): number {
  let gap = noGap
  for (let at = 0; at < count; at++) gap = Math.min(gap, ((codes[at] ?? 0) - code - 1) & noGap)
  return gap
}

/** A number in digits of rising weight, the last of them the first below its threshold; returns where it ends. */
function writeNumber(delta: number, bias: number, from: number): number {
  let length = from
  let rest = delta
  for (let weight = base; ; weight += base) {
    const threshold = Math.max(leastThreshold, Math.min(mostThreshold, weight - bias))
    if (rest < threshold) break
    const above = rest - threshold
    written[length++] = digits[threshold + (above % (base - threshold))] ?? 0
    rest = Math.floor(above / (base - threshold))
  }
  written[length++] = digits[rest] ?? 0
  return length
}

/** The letters of a label that begins with `xn--`, in lower case; null where it is none that a name has. */
export function lettersOf(label: string): string | null {
  if (label.length > maximumLabel || !label.startsWith('xn--')) return null
  const lastHyphen = label.lastIndexOf('-')
  const letters = lastHyphen > prefix - 1 ? Array.from(label.slice(prefix, lastHyphen), mark => mark.charCodeAt(0)) : []
  let code = startCode
  let place = 0
  let bias = startBias
  for (let at = Math.max(prefix, lastHyphen + 1); at < label.length; ) {
    const before = place
    let weight = 1
    for (let step = base; ; step += base) {
      const digit = digits.indexOf(label.charCodeAt(at++))
      if (digit === -1) return null
      place += digit * weight
      const threshold = Math.max(leastThreshold, Math.min(mostThreshold, step - bias))
      if (digit < threshold) break
      weight *= base - threshold
    }
    const count = letters.length + 1
    bias = adapted(place - before, count, before === 0)
    code += Math.floor(place / count)
    place %= count
    if (code > 0x10ffff) return null
    letters.splice(place++, 0, code)
  }
  return String.fromCodePoint(...letters)
}

function adapted(delta: number, count: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? damping : 2))
  rest += Math.floor(rest / count)
  let weight = 0
  while (rest > ((base - leastThreshold) * mostThreshold) / 2) {
    rest = Math.floor(rest / (base - leastThreshold))
    weight += base
  }
  return weight + Math.floor(((base - leastThreshold + 1) * rest) / (rest + skew))
}
