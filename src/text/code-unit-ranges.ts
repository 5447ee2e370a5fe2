/** Case-insensitive sets of UTF-16 units: ordered inclusive ranges that do not touch. */
export type CodeUnitRanges = readonly (readonly [from: number, to: number])[]

const last = 0xffff

export const everyUnit: CodeUnitRanges = [[0, last]]

/** Returns the units from `from` to `to`, with their other case. */
export function unitsOf(from: number, to: number): CodeUnitRanges {
  const ranges: [number, number][] = [[from, to]]
  for (let unit = from; unit <= to; unit++) {
    const character = String.fromCharCode(unit)
    // The upper case of "ß" is two letters.
    for (const form of [character.toLowerCase(), character.toUpperCase()])
      if (form.length === 1 && form !== character) ranges.push([form.charCodeAt(0), form.charCodeAt(0)])
  }
  return union([ranges])
}

/** Returns the units that are in any of the sets. */
export function union(sets: readonly CodeUnitRanges[]): CodeUnitRanges {
  const ranges: [number, number][] = []
  for (const [from, to] of sets.flat().sort(([one], [two]) => one - two)) {
    const before = ranges.at(-1)
    if (before !== undefined && from <= before[1] + 1) before[1] = Math.max(before[1], to)
    else ranges.push([from, to])
  }
  return ranges
}

/** Returns the units that are not in the set. */
export function complement(set: CodeUnitRanges): CodeUnitRanges {
  const ranges: [number, number][] = []
  let next = 0
  for (const [from, to] of set) {
    if (from > next) ranges.push([next, from - 1])
    next = to + 1
  }
  if (next <= last) ranges.push([next, last])
  return ranges
}
