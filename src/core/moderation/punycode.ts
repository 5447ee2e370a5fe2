/** Punycode for labels of host names (RFC 3492, with the parameters of section 5). */

/** Maximum length of a DNS label in octets. */
export const maximumLabel = 63

const base = 36
const leastThreshold = 1
const mostThreshold = 26
const skew = 38
const damping = 700
const startBias = 72
const startCode = 128
/** Upper bound; larger than any difference between codes. */
const noGap = 0x7fff_ffff

const codes = new Int32Array(maximumLabel)
/** Output buffer: a label, and room for the excess of one that is too long. */
const written = Buffer.alloc(2 * maximumLabel)
const prefix = written.write('xn--', 'latin1')
const hyphen = 45
const digits = Buffer.from('abcdefghijklmnopqrstuvwxyz0123456789', 'latin1')

/**
 * Returns the ASCII form of a lower-case non-ASCII label; null if it would exceed the length of a label. Stops as soon
 * as that is certain, which bounds the cost to some thousand steps.
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
  /** Number of unused codes between this one and the next. */
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
      // Branchless, since the order of letters is unpredictable: counts a lower code, and tracks the next higher one.
      delta += distance >>> 31
      gap = Math.min(gap, (distance - 1) & noGap)
    }
    delta++
  }
  return written.toString('latin1', 0, length)
}

/** Fills `codes` and returns their number; −1 = too many, since each takes at least one digit. */
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

/** Writes a number in digits of increasing weight, ending with the first one below its threshold. Returns the end. */
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

/** Returns the Unicode form of an `xn--` label in lower case; null if it is invalid. */
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
