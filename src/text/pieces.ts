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
    const to = cutNear(text, from + pieceLength, 1)
    const isLast = to + overlap >= text.length
    yield text.slice(from, isLast ? text.length : to)
    if (isLast) return
    from = Math.max(cutNear(text, to - overlap, -1), from + overlap)
    if (splitsPair(text, from)) from--
  }
}

/** Returns the place nearest to `start`, in steps of 1 or -1, that is not within a word or a run of base64. */
function cutNear(text: string, start: number, step: 1 | -1): number {
  let at = start
  for (let steps = 0; steps < longestRun && at < text.length; steps++, at += step)
    if (!inRun.test(text.charAt(at - 1))) return at
  const end = step === 1 ? at : start
  return splitsPair(text, end) ? end - 1 : end
}

/** Letters, digits and signs of base64, and the first half of a surrogate pair. */
const inRun = /[A-Za-z0-9+/=\ud800-\udbff]/

function splitsPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00
}
