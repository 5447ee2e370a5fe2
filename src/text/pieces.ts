/**
 * Cuts a huge text into pieces. Moderation judges them one by one, so that other requests run in between. Pieces overlap,
 * so that a phrase at a border is whole in one of them.
 */

/** A text up to this length is judged in one piece. */
const longestWhole = 8_192
const pieceLength = 8_192
const overlap = 512
/** A run without a place to cut, such as base64, is kept whole up to this length. */
const longestRun = 8_192

/** Returns true for a text of several pieces. */
export function isLong({ length }: string): boolean {
  return length > longestWhole
}

/** Yields the text itself, or its pieces: at least `pieceLength` characters, except the last, and one run more at most. */
export function* getPieces(text: string): Generator<string, void, void> {
  if (!isLong(text)) {
    yield text
    return
  }
  for (let from = 0; ; ) {
    const to = cutAfter(text, from + pieceLength)
    const isLast = to + overlap >= text.length
    yield text.slice(from, isLast ? text.length : to)
    if (isLast) return
    from = Math.max(cutBefore(text, to - overlap), from + overlap)
    if (splitsPair(text, from)) from--
  }
}

/** Yields parts of at most `length` characters, each of which begins with the end of the part before. */
export function* getWindows(text: string, length: number, shared: number): Generator<string, void, void> {
  for (let from = 0; ; from += length - shared) {
    yield text.slice(from, from + length)
    if (from + length >= text.length) return
  }
}

/** Returns the first place at or after `start` that is not within a word or a run of base64. */
function cutAfter(text: string, start: number): number {
  const most = Math.min(text.length, start + longestRun)
  for (let at = start; at < most; at++) if (!isInRun(text.charCodeAt(at - 1))) return at
  return splitsPair(text, most) ? most - 1 : most
}

/** Returns the last place at or before `end` that is not within a word or a run of base64. */
function cutBefore(text: string, end: number): number {
  const least = end - longestRun
  for (let at = end; at > least; at--) if (!isInRun(text.charCodeAt(at - 1))) return at
  return splitsPair(text, end) ? end - 1 : end
}

/** Returns true for letters, digits and signs of base64, and for the first half of a surrogate pair. */
function isInRun(unit: number): boolean {
  return (
    (unit >= 0x30 && unit <= 0x39) ||
    (unit >= 0x41 && unit <= 0x5a) ||
    (unit >= 0x61 && unit <= 0x7a) ||
    unit === 0x2b ||
    unit === 0x2f ||
    unit === 0x3d ||
    (unit & 0xfc00) === 0xd800
  )
}

function splitsPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00
}
