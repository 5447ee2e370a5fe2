/**
 * How much work a request is, by what it speaks of: design, proof, constraints and the depth of a field against lists, rewriting,
 * facts and courtesy, in any language of the lexicon. The weights are set by hand: nothing was fitted to examples of hard and easy.
 */
import { type Features, hashOf } from './features.ts'
import { createNotionReader, notionOf, notions } from './notions.ts'

const weights: Readonly<Record<string, number>> = {
  design: 0.9,
  optimize: 0.6,
  systems: 0.9,
  science: 0.7,
  medicine: 0.6,
  legal: 0.6,
  finance: 0.6,
  ml: 0.7,
  philosophy: 0.7,
  constraint: 0.35,
  deep: 0.6,
  risk: 0.5,
  prove: 1.3,
  mathterm: 0.5,
  algo: 0.5,
  bug: 0.4,
  analyze: 0.6,
  compare: 0.1,
  plan: 0.2,
  simple: -0.7,
  routine: -1.2,
  list: -0.6,
  translate: -1,
  summary: -0.6,
  rewrite: -0.9,
  what: -0.5,
  fact: -1,
  hello: -0.6,
  advice: -0.3,
  creative: -0.3,
  text: -0.3,
  food: -0.7,
  volatile: -0.4,
}
const weightOf = Float64Array.from(notions, name => weights[name] ?? 0)
for (const name of Object.keys(weights)) notionOf(name)

/** Where a text starts that says nothing of either. */
const base = 0.05
/** A notion counts anew, at half of what it did before, so many times. */
const mostTimes = 4
const wordsRead = 320

/** A reader with buffers of its own: below 0 routine, above it demanding. */
export function createEffortReader(): (features: Features) => number {
  const reader = createNotionReader()
  const times = new Uint8Array(notions.length)
  return features => {
    reader.begin(features)
    const { found, count } = reader.read(0, Math.min(features.count, wordsRead))
    times.fill(0)
    let score = base
    for (let at = 0; at < count; at++) {
      const notion = found[at] ?? 0
      const before = times[notion] ?? 0
      if (before >= mostTimes) continue
      times[notion] = before + 1
      score += (weightOf[notion] ?? 0) / 2 ** before
    }
    return score
  }
}

/** How strongly effort and the gain on exams speak. */
const effortPart = 1.8
const examPart = 1.6
/** Sets the share of prompts at each level to the target shares, on the reference mixture. */
const levelPart = 0.4
/** A plain question is never a demanding one; among themselves they stand as exams rank them. */
const questionPart = 0.65

/** What a strong model gains, 0 to 1: an exam's question by what models did on exams, all else by its effort as far as that is plain. */
export function gainOfBoth(exam: number, score: number, built: 'exam' | 'question' | 'task'): number {
  if (built === 'exam') return exam
  if (built === 'question' && score <= base) return exam * questionPart
  return 1 / (1 + Math.exp(-effortPart * score - examPart * (exam - 0.5) - levelPart))
}

const options = ['a', 'b', 'c', 'd'].map(letter => hashOf(letter))
/** Fewer numbers are no sum. */
const fewestNumbers = 2
const calc = hashOf('how')
const many: ReadonlySet<number> = new Set(['many', 'much', 'long', 'far', 'old'].map(hashOf))

/** Words that an exam is set in. */
const frameWords: ReadonlySet<number> = new Set(
  'question answer answers passage options option choose choice correct context paragraph premise hypothesis sentence input output'
    .split(' ')
    .map(hashOf),
)
const fewestFrames = 3
const questionWords: ReadonlySet<number> = new Set('who what when where which whose whom'.split(' ').map(hashOf))

/** How a text is built: like a question of an exam (options to choose from, a sum told as a story), a question, or a task. */
export function builtAs({ words, count, numbers }: Features): 'exam' | 'question' | 'task' {
  let option = 0
  let asks = false
  let frames = 0
  for (let at = 0; at < count; at++) {
    const word = words[at] ?? 0
    if (word === options[option]) option++
    if (frameWords.has(word)) frames++
    if (word === calc && many.has(words[at + 1] ?? 0)) asks = true
  }
  if (option >= options.length || frames >= fewestFrames || (asks && numbers >= fewestNumbers)) return 'exam'
  return questionWords.has(words[0] ?? 0) ? 'question' : 'task'
}
