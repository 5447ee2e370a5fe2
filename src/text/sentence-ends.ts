/** Where the sentences of an output end: at a line break, at white space behind a mark that ends one, and behind a full-width mark. */

/** What a UTF-16 unit is to a sentence. */
const open = 0
/** Ends a sentence once white space follows, since `3.` may go on as `3.14`. */
const mayEnd = 1
/** Full-width marks are followed by no space. */
const wideEnd = 2
/** Stands behind the mark and belongs to the sentence: `."`, `.)`, `.**`. */
const closer = 3
const blank = 4
const newline = 5

/** Of every UTF-16 unit. */
export const sentenceKinds = new Uint8Array(65_536)
for (const [kind, marks] of [
  [mayEnd, '.!?…؟।'],
  [wideEnd, '。！？'],
  [closer, '"\')]*_`”’»」』）'],
  [blank, ' \t\r'],
  [newline, '\n'],
] as const)
  for (const mark of marks) sentenceKinds[mark.charCodeAt(0)] = kind

/** What a sentence begins with: it may not end yet. */
export const sentenceOpen = open

/** Number of kinds, and the bit of a step by which a sentence is over. */
export const sentenceKindCount = 6
export const sentenceOver = 8

/**
 * By what closed the units before (`sentenceOpen` or a mark) times `sentenceKindCount`, plus the kind of the next unit: what
 * closes them then, and `sentenceOver` if a sentence ends before that unit.
 */
export const sentenceSteps = new Uint8Array(4 * sentenceKindCount)
for (let ended = 0; ended < 4; ended++)
  for (let kind = 0; kind < sentenceKindCount; kind++) {
    const isOver = kind >= blank ? kind === newline || ended !== open : ended === wideEnd && kind === open
    const next = kind === closer ? ended : kind >= blank ? open : kind
    sentenceSteps[ended * sentenceKindCount + kind] = next | (isOver ? sentenceOver : 0)
  }
