/** Text longer than this no longer waits for its sentence. */
const longestWait = 160

/**
 * How much of a text may be shown as a whole, in UTF-16 units from its start: up to the last sentence or line that has
 * ended; 0 = none has. A full stop ends a sentence only once white space follows, since `3.` may go on as `3.14`.
 *
 * Of text that is long or whose patience is over (code, lists, a slow writer): up to the last clause if that is most of
 * it, or the last word, or all of it where words have no spaces between (Chinese, Japanese).
 */
export function completeTextLength(text: string, patient: boolean): number {
  let clause = 0
  let word = 0
  for (let end = text.length; end > 0; end--) {
    const code = text.charCodeAt(end - 1)
    if (code === newline || wideEnds.has(code)) return end
    if (isSpace(code)) {
      if (word === 0) word = end
      const mark = markBefore(text, end - 1)
      if (sentenceEnds.has(mark)) return end
      if (clause === 0 && clauseEnds.has(mark)) clause = end
    } else if (clause === 0 && wideClauseEnds.has(code)) clause = end
  }
  if (patient && text.length < longestWait) return 0
  if (clause * 2 > text.length) return clause
  return word > 0 ? word : wholeCharacters(text)
}

/** Length of a text without the first half of a surrogate pair that it may end in, unless that is all there is. */
function wholeCharacters(text: string): number {
  const code = text.charCodeAt(text.length - 1)
  return code >= 0xd800 && code <= 0xdbff && text.length > 1 ? text.length - 1 : text.length
}

/** The mark before white space at `end`, looking through what closes after it: `."`, `.)`, `.**`. */
function markBefore(text: string, end: number): number {
  let at = end - 1
  for (let seen = 0; seen < 4 && closers.has(text.charCodeAt(at)); seen++) at--
  return text.charCodeAt(at)
}

function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === newline || code === 13 || code === 0xa0
}

const codes = (characters: string) => new Set(Array.from(characters, character => character.charCodeAt(0)))
const newline = 10
const sentenceEnds = codes('.!?…؟।')
const clauseEnds = codes(',;:–—')
/** Full-width marks are followed by no space. */
const wideEnds = codes('。！？')
const wideClauseEnds = codes('，、；：')
const closers = codes('"\'”’»)]*_`')
