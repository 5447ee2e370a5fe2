import { createFeatureReader } from '../text/analysis/features.ts'
import { createHarmReader } from '../text/harm/harm-features.ts'
import type { HarmHead } from '../text/harm/harm-slots.ts'
import { eachPart } from '../text/harm/parts.ts'
import { readRows } from './data.ts'
import { type ModerationExample, moderationExamples } from './frames.ts'

/** A labeled text: the target of each classifier, and its weight (0 = unlabeled). */
export type Row = {
  readonly text: string
  /** Rows of one source are left out together; null = only learned from. */
  readonly source: string | null
  readonly truth: Readonly<Record<HarmHead, number>>
  readonly weight: Readonly<Record<HarmHead, number>>
  readonly slots: Int32Array
  /** Number of words of each kind. */
  readonly kinds: Uint16Array
  /** Its sentences, if it has several. */
  readonly parts: readonly Pick<Row, 'slots' | 'kinds'>[]
}

/** Returns all training rows in a fixed order. */
export async function labelledRows(): Promise<Row[]> {
  const read = createRowReader()
  const rows = [...(await labelledSets()), ...(await everydayPrompts()), ...moderationExamples().map(rowOfExample)]
  // A template's placeholder identifies the collection, not the attack.
  return rows.map(row => ({ ...row, ...read(row.text.replace('[INSERT PROMPT HERE]', '')) }))
}

/** Creates a reader of a text's features for the classifiers. */
function createRowReader(): (text: string) => Pick<Row, 'slots' | 'kinds' | 'parts'> {
  const read = createFeatureReader()
  const reader = createHarmReader()
  const told = (filled: number) => ({ slots: reader.slots.slice(0, filled), kinds: reader.kinds.slice() })
  return text => {
    const features = read(text)
    const whole = told(reader.read(features))
    const parts: Row['parts'][number][] = []
    eachPart(features, (from, to) => parts.push(told(reader.readPart(features, from, to))))
    return { ...whole, parts }
  }
}

type Labelled = Omit<Row, 'slots' | 'kinds' | 'parts'>

const truth = (request: number, content: number, jailbreak: number) => ({ request, content, jailbreak })
const weight = truth
const nothing = truth(0, 0, 0)

async function labelledSets(): Promise<Labelled[]> {
  const rows: Labelled[] = []
  const add = (text: string, source: string, truth: Row['truth'], weight: Row['weight']) =>
    rows.push({ text, source, truth, weight })
  // Few, but phrased as in practice, so they weigh more than all of the project's sentences.
  for (const { prompt, unsafe, source } of await readRows('harmful-requests', 'prompt', 'unsafe', 'source'))
    add(prompt, source, truth(unsafe, 0, 0), unsafe === 1 ? weight(7, 0, 1) : weight(1, 0.5, 1))
  for (const { prompt, unsafe } of await readRows('xstest', 'prompt', 'unsafe'))
    add(prompt, 'xstest', truth(unsafe, 0, 0), weight(1, unsafe === 1 ? 0 : 0.5, 0.5))
  for (const { prompt, flagged: is } of await readRows('moderation-openai', 'prompt', 'flagged'))
    add(prompt, 'moderation-openai', truth(is, is, 0), weight(is === 1 ? 0.1 : 2, 1, 0.5))
  for (const { prompt, injection: is } of await readRows('prompt-injection', 'prompt', 'injection')) {
    const counts = is === 0 && isKnownJailbreak(prompt) ? nothing : weight(is === 1 ? 0 : 1, 0.3, 1)
    add(prompt, 'prompt-injection', truth(0, 0, is), counts)
  }
  // Harmless requests that sound alarming. Some of the first source are borderline, so they weigh less.
  for (const { prompt, source } of await readRows('honest-hot-words', 'prompt', 'source'))
    add(prompt, source, nothing, weight(source === 'or-bench-hard' ? 1 : 2, 0.3, 0.5))
  return rows
}

/** Returns true for a known jailbreak that some sets label as harmless, which would be a wrong label. */
function isKnownJailbreak(text: string): boolean {
  return text.includes('known as DAN')
}

/** Exam questions cover every topic, including morals and crime, but are not requests for harm. */
const examSet = 'routellm-mmlu'
/**
 * Sets of prompts by users or tests, which must not be dominated by the project's sentences; every fourth prompt of the
 * large ones.
 */
const realUsers = 'real-user-prompts'
const everydaySets = [
  'query-types',
  'query-types-2',
  'query-families',
  'enhance-gate',
  'freshqa',
  'retrievalqa',
  'routellm-mtbench',
  realUsers,
]
const largeSets = ['evergreenqa', 'llmrouter-9models', examSet]

async function everydayPrompts(): Promise<Labelled[]> {
  const rows: Labelled[] = []
  // Parts of it are also in other sets.
  const users = new Set((await readRows(realUsers, 'prompt')).map(({ prompt: text }) => text))
  const seen = new Set<string>()
  for (const set of [...everydaySets, ...largeSets]) {
    const isLarge = largeSets.includes(set)
    const counts = isLarge ? weight(set === examSet ? 0 : 0.5, 0.1, 0.3) : weight(3, 0.3, 1)
    for (const [index, { prompt: text }] of (await readRows(set, 'prompt')).entries()) {
      if ((isLarge && index % 4 !== 0) || seen.has(text) || isKnownJailbreak(text)) continue
      seen.add(text)
      rows.push({ text, source: users.has(text) ? realUsers : null, truth: nothing, weight: counts })
    }
  }
  return rows
}

function rowOfExample({ text, lesson, harmful: isHarmful }: ModerationExample): Labelled {
  const is = isHarmful ? 1 : 0
  const row = { text, source: null }
  switch (lesson) {
    case 'request':
      // The real prompts decide what is harmful; the project's only add vocabulary.
      return { ...row, truth: truth(is, 0, 0), weight: isHarmful ? weight(0.25, 0, 0.1) : weight(0.9, 0.06, 0.3) }
    case 'everyday':
      return { ...row, truth: nothing, weight: weight(3, 0, 0.05) }
    case 'content':
      return { ...row, truth: truth(is, is, 0), weight: weight(isHarmful ? 0 : 0.2, 0.3, 0.1) }
    case 'jailbreak':
      return { ...row, truth: truth(0, 0, is), weight: isHarmful ? weight(0, 0, 0.3) : weight(0.2, 0.05, 0.5) }
  }
}
