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

/** Whether a sentence ends before a unit of this kind; `ended` is what `afterKind` returned for the units before. */
export function endsSentence(kind: number, ended: number): boolean {
  return kind >= blank ? kind === newline || ended !== open : ended === wideEnd && kind === open
}

/** Whether the sentence may be over behind a unit of this kind: open, or the sort of mark it had. */
export function afterKind(kind: number, ended: number): number {
  if (kind === closer) return ended
  return kind >= blank ? open : kind
}
