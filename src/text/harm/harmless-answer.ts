/**
 * Whether a whole answer holds no sentence that the classifier would refuse, told from its words read once: of each
 * sentence with the one before it, the most that the content head could say. Where that is too much, or a sentence
 * would be cut, the answer has to be heard sentence by sentence.
 */
import { behindCourtesy, type FeatureReader, maximumWords } from '../analysis/features.ts'
import { blockUnits } from '../code-units.ts'
import { sentenceKindCount, sentenceKinds, sentenceOpen, sentenceOver, sentenceSteps } from '../sentence-ends.ts'
import type { HarmJudge } from './harm-features.ts'

/** In UTF-16 units: a longer sentence is judged in pieces. */
export const longestSentence = 400

/** Makes the check; `most` is what the content head may say. The buffers of the reader and the judge are overwritten. */
export function createAnswerCheck(
  read: FeatureReader,
  contentAtMost: HarmJudge['contentAtMost'],
  most: number,
): (text: string) => boolean {
  return text => {
    if (text.length > blockUnits) return false
    const features = read(text)
    const { words, offsets, count, units, unitCount } = features
    if (count === maximumWords) return false
    const isBelow = (first: number, to: number) => contentAtMost(features, behindCourtesy(words, first, to), to) <= most
    let ended: number = sentenceOpen
    let sentence = 0
    /** Words before this one are of earlier sentences, and those before `before` of even earlier ones. */
    let from = 0
    let before = 0
    for (let at = 0; at < unitCount; at++) {
      const kind = sentenceKinds[units[at] ?? 0] ?? sentenceOpen
      // Within a sentence, as nearly everywhere.
      if (kind === sentenceOpen && ended === sentenceOpen) continue
      const step = sentenceSteps[ended * sentenceKindCount + kind] ?? sentenceOpen
      ended = step & (sentenceOver - 1)
      if (step < sentenceOver) continue
      if (at - sentence > longestSentence) return false
      let to = from
      while (to < count && (offsets[to] ?? 0) < at) to++
      const saysSomething = to > from || text.slice(sentence, at).trim() !== ''
      if (saysSomething && !isBelow(before, to)) return false
      before = from
      from = to
      sentence = at
    }
    // What closes a text is no unit of its features: marks, which may be a sentence behind its last words.
    return text.length - sentence <= longestSentence && isBelow(before, count) && isBelow(from, count)
  }
}
