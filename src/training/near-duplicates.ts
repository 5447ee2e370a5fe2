/** Jaccard index of two texts' words from which they count as duplicates. */
const leastShared = 0.6

/** Returns for each text the first one that it is a near duplicate of, transitively; itself if there is none. */
export function getOriginals(texts: readonly string[]): readonly string[] {
  const words = texts.map(text => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu)))
  const origin = texts.map((_, index) => index)
  const getRoot = (index: number): number => {
    let at = index
    while ((origin[at] ?? at) !== at) at = origin[at] ?? at
    return at
  }
  for (const [index, own] of words.entries())
    for (let other = 0; other < index; other++) {
      if (!isNear(own, words[other] ?? own)) continue
      const [first, second] = [getRoot(index), getRoot(other)].sort((value, two) => value - two)
      origin[second ?? index] = first ?? index
    }
  return texts.map((text, index) => texts[getRoot(index)] ?? text)
}

function isNear(left: ReadonlySet<string>, right: ReadonlySet<string>): boolean {
  const [fewer, more] = left.size < right.size ? [left, right] : [right, left]
  if (fewer.size < leastShared * more.size) return false
  let shared = 0
  for (const word of fewer) if (more.has(word)) shared++
  return shared >= leastShared * (fewer.size + more.size - shared)
}
