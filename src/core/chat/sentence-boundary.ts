/** Longer text is sent without waiting for its sentence to end. */
const longestWait = 160

/**
 * Returns how much of a text can be shown, in UTF-16 units from its start: up to the end of the last complete sentence
 * or line; 0 = none. A full stop ends a sentence only before white space, since `3.` may continue as `3.14`.
 *
 * If the text is long or no longer `patient` (code, lists, a slow model), returns up to the last clause if that is most
 * of the text, else the last word, else all of it for scripts without spaces (Chinese, Japanese).
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

/** Returns the length of a text without an unpaired surrogate at its end, unless nothing else is left. */
function wholeCharacters(text: string): number {
  const code = text.charCodeAt(text.length - 1)
  return code >= 0xd800 && code <= 0xdbff && text.length > 1 ? text.length - 1 : text.length
}

/** Returns the punctuation mark before the white space at `end`, skipping closing marks: `."`, `.)`, `.**`. */
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
/** No space follows a full-width mark. */
const wideEnds = codes('。！？')
const wideClauseEnds = codes('，、；：')
const closers = codes('"\'”’»)]*_`')
