/**
 * Whether a whole answer holds no sentence that the classifier would refuse, told from its words read once: of each
 * sentence with the one before it, the most that the content head could say. Where that is too much, or a sentence
 * would be cut, the answer has to be heard sentence by sentence.
 */
import { behindCourtesy, type FeatureReader, type Features, maximumWords } from '../analysis/features.ts'
import { blockUnits } from '../code-units.ts'
import { sentenceKindCount, sentenceKinds, sentenceOpen, sentenceOver, sentenceSteps } from '../sentence-ends.ts'
import type { HarmJudge } from './harm-features.ts'
import type { WordRange } from './harm-slots.ts'

/** In UTF-16 units: a longer sentence is judged in pieces. */
export const longestSentence = 400

/** Makes the check; `most` is what the content head may say. The buffers of the reader and the judge are overwritten. */
export function createAnswerCheck(
  read: FeatureReader,
  { measure, atMost, judge }: HarmJudge,
  most: number,
): (text: string) => boolean {
  return text => {
    if (text.length > blockUnits) return false
    const features = read(text)
    if (features.count === maximumWords) return false
    const sentences = findSentences(text, features)
    if (sentences === null) return false
    measure(features, 'content', sentences)
    const loud: WordRange[] = []
    for (const [index, [from, to]] of sentences.entries()) {
      const before = sentences[index - 1]?.[0] ?? from
      for (const begin of index < sentences.length - 1 || before === from ? [before] : [before, from]) {
        const first = behindCourtesy(features.words, begin, to)
        if (atMost(first, to) > most) loud.push([first, to])
      }
    }
    return loud.every(([from, to]) => judge(features, from, to).content <= most)
  }
}

/** Returns the words of each sentence of an answer, the last of which may be empty; null = a sentence would be cut. */
function findSentences(text: string, { offsets, count, units, unitCount }: Features): readonly WordRange[] | null {
  const sentences: WordRange[] = []
  let ended: number = sentenceOpen
  let sentence = 0
  let from = 0
  for (let at = 0; at < unitCount; at++) {
    const kind = sentenceKinds[units[at] ?? 0] ?? sentenceOpen
    // Within a sentence, as nearly everywhere.
    if (kind === sentenceOpen && ended === sentenceOpen) continue
    const step = sentenceSteps[ended * sentenceKindCount + kind] ?? sentenceOpen
    ended = step & (sentenceOver - 1)
    if (step < sentenceOver) continue
    if (at - sentence > longestSentence) return null
    let to = from
    while (to < count && (offsets[to] ?? 0) < at) to++
    sentences.push([from, to])
    from = to
    sentence = at
  }
  sentences.push([from, count])
  // What closes a text is no unit of its features: marks, which may be a sentence behind its last words.
  return text.length - sentence <= longestSentence ? sentences : null
}
