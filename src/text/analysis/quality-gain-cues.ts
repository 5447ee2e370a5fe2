import { type Features, featureSieveSize, getHash, getSieve, maximumWords } from './features.ts'
import vocabulary from './lexicon/cues.json'

/** Number of cues. The first `plainCues` are logarithms and shares that a linear model can use. */
export const plainCues = 21

/** Reads the cues of a text. The result is overwritten by the next reading. */
type CueReader = (features: Features) => Float64Array

/**
 * Creates a reader of topic-independent cues that a stronger model would do better: length and shape, numbers and
 * formulas, answer options, and the frequency of words from about twenty subjects. None depends on case, white space,
 * final punctuation or a polite opening.
 */
export function createCueReader(): CueReader {
  const cues = new Float64Array(cueCount)
  const groups = new Int32Array(groupCount)
  const groupsTable = groupTable()
  const sieve = getSieve(groupsTable.keys())
  // One bit per word hash, for the approximate number of distinct words.
  const met = new Int32Array(differentWords / 32)
  const grouped = new Int32Array(maximumWords)
  const groupedAt = new Uint16Array(maximumWords)

  return features => {
    const { count, words, symbols, digits, numbers } = features
    const start = courtesyWords(features)
    const letters = features.letters - courtesyLetters(features, start)
    const length = Math.max(1, count - start)
    met.fill(0)
    let distinct = 0
    // Branchless: which words have a group or repeat is unpredictable.
    let found = 0
    for (let at = start; at < count; at++) {
      const word = words[at] ?? 0
      const place = (word ^ (word >>> 12)) & (differentWords - 1)
      const known = met[place >>> 5] ?? 0
      distinct += 1 - ((known >>> place) & 1)
      met[place >>> 5] = known | (1 << place)
      grouped[found] = word
      groupedAt[found] = at
      found += sieve[word & (featureSieveSize - 1)] ?? 0
    }
    groups.fill(0)
    let option = 0
    let optionsAt = count
    for (let index = 0; index < found; index++) {
      const entry = groupsTable.get(grouped[index] ?? 0) ?? 0
      for (let bits = entry & groupMask; bits !== 0; bits &= bits - 1) {
        const group = 31 - Math.clz32(bits & -bits)
        groups[group] = (groups[group] ?? 0) + 1
      }
      // Answer options are single letters in order. They start at the last "a" before "b", since "a" is an article too.
      const letter = entry >>> letterShift
      if (letter === 1 && option <= 1) {
        optionsAt = groupedAt[index] ?? 0
        option = 1
      } else if (letter > 1 && letter === option + 1) option = letter
    }
    const hasOptions = option >= 3
    const asked = hasOptions ? optionsAt - start : length
    const of = (characters: readonly number[]) => {
      let sum = 0
      for (const character of characters) sum += symbols[character] ?? 0
      return sum
    }
    let at = 0
    cues[at++] = log(length)
    cues[at++] = log(digits)
    for (const characters of weighed) cues[at++] = log(of(characters))
    cues[at++] = (groups[asking] ?? 0) > 0 ? 1 : 0
    cues[at++] = log(groups[negating] ?? 0)
    cues[at++] = log(groups[stepping] ?? 0)
    cues[at++] = log(groups[comparing] ?? 0)
    cues[at++] = distinct / length
    cues[at++] = letters / length
    cues[at++] = digits / length
    cues[at++] = hasOptions ? 1 : 0
    // The following cues are for the trees, which only compare a cue to a threshold.
    cues[at++] = asked
    cues[at++] = hasOptions ? length - asked : 0
    cues[at++] = option
    cues[at++] = numbers
    cues[at++] = numbers === 0 ? 0 : digits / numbers
    cues[at++] = numbers / length
    cues[at++] = of(marks.point)
    cues[at++] = of(marks.question)
    cues[at++] = of(marks.less)
    cues[at++] = (groups[functional] ?? 0) / length
    const root = 1 / Math.sqrt(length)
    for (let index = 0; index < subjectCount; index++) cues[at++] = groups[index] ?? 0
    for (let index = 0; index < subjectCount; index++) cues[at++] = (groups[index] ?? 0) * root
    return cues
  }
}

/** Returns the number of words in an opening phrase that does not affect the question: "Could you", "Can you". */
export function courtesyWords({ count, words }: Features): number {
  return count > 2 && words[1] === you && willing.has(words[0] ?? 0) ? 2 : 0
}

/** Returns the number of letters in these words. */
export function courtesyLetters({ words }: Features, courtesy: number): number {
  return courtesy === 0 ? 0 : (willing.get(words[0] ?? 0) ?? 0) + 'you'.length
}

const willing = new Map(['can', 'could', 'would', 'will'].map(word => [getHash(word), word.length]))
const you = getHash('you')

/** Returns log(1 + x), from a table for small integers. */
function log(value: number): number {
  return logarithms[value] ?? Math.log1p(value)
}

const logarithms = Float64Array.from({ length: 1024 }, (_, value) => Math.log1p(value))

function codes(characters: string): readonly number[] {
  return Array.from(characters, character => character.charCodeAt(0))
}

/**
 * Symbol groups in the order of their cues: full stops, formulas, brackets, operators, commas, percents, quotes, gaps,
 * colons, bars, dashes.
 */
const weighed = ['.?!', '$\\^{', '()', '=+*/', ',', '%', '"\'`', '_', ':', '|', '-'].map(codes)
const marks = {
  point: codes('.'),
  question: codes('?'),
  less: codes('<>[]}#'),
}

/** Groups of related words in the order of their bits. The first 21 are counted absolutely and relative to length. */
const groupWords = Object.values(vocabulary)

const differentWords = 4096
const groupCount = groupWords.length
const asking = 0
const negating = 1
const comparing = 2
const stepping = groupCount - 2
const functional = groupCount - 1
const subjectCount = groupCount - 2
const cueCount = plainCues + 10 + 2 * subjectCount

const groupMask = 0x0fff_ffff & (2 ** groupCount - 1)
const letterShift = 28

/**
 * Returns by signed word hash the bits of its groups, and above them the alphabetical index of an answer option's
 * letter.
 */
function groupTable(): ReadonlyMap<number, number> {
  const table = new Map<number, number>()
  const put = (hash: number, bits: number) => table.set(hash | 0, (table.get(hash | 0) ?? 0) | bits)
  for (const [index, words] of groupWords.entries())
    for (const word of words.join(' ').split(' ')) put(getHash(word), 1 << index)
  for (const [index, letter] of [...'abcdefgh'].entries()) put(getHash(letter), (index + 1) << letterShift)
  return table
}
