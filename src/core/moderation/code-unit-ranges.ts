/** Sets of UTF-16 units, case not counting: ranges in order, both ends in them, none of which touches another. */
export type CodeUnitRanges = readonly (readonly [from: number, to: number])[]

const last = 0xffff

export const everyUnit: CodeUnitRanges = [[0, last]]

/** The units from one to another, and their other case. */
export function unitsOf(from: number, to: number): CodeUnitRanges {
  const ranges: [number, number][] = [[from, to]]
  for (let unit = from; unit <= to; unit++) {
    const character = String.fromCharCode(unit)
    // Of "ß" the upper case is two letters.
    for (const form of [character.toLowerCase(), character.toUpperCase()])
      if (form.length === 1 && form !== character) ranges.push([form.charCodeAt(0), form.charCodeAt(0)])
  }
  return union([ranges])
}

/** Units that are in any of the sets. */
export function union(sets: readonly CodeUnitRanges[]): CodeUnitRanges {
  const ranges: [number, number][] = []
  for (const [from, to] of sets.flat().sort(([one], [two]) => one - two)) {
    const before = ranges.at(-1)
    if (before !== undefined && from <= before[1] + 1) before[1] = Math.max(before[1], to)
    else ranges.push([from, to])
  }
  return ranges
}

/** Units that are not in the set. */
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
