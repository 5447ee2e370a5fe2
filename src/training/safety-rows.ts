import { Type } from '@sinclair/typebox'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createHarmReader } from '../text/harm/harm-features.ts'
import type { HarmHead } from '../text/harm/harm-slots.ts'
import { eachPart } from '../text/harm/parts.ts'
import { readRows } from './data.ts'
import { type ModerationExample, moderationExamples } from './frames.ts'

/** A labeled text: the target of each classifier, and its weight (0 = unlabeled). */
export type Row = {
  readonly text: string
  readonly set: string
  readonly source: string
  readonly truth: Readonly<Record<HarmHead, number>>
  readonly weight: Readonly<Record<HarmHead, number>>
  /** A sincere prompt that must never be blocked. */
  readonly real: boolean
  readonly slots: Int32Array
  /** Number of words of each kind. */
  readonly kinds: Uint16Array
  /** Its sentences, if it has several. */
  readonly parts: readonly Pick<Row, 'slots' | 'kinds'>[]
}

/** The set of the project's sentences: used for training, never for evaluation. */
export const ownSet = 'own'
/** Sets on which a block counts as a false positive. */
export const judgedSets: ReadonlySet<string> = new Set([
  'query-types',
  'query-families',
  'enhance-gate',
  'prompt-injection',
])

/** The set of prompts by users. Parts of it are also in other sets, which are the source of its rows. */
export const realUsers = 'real-user-prompts'

/** Returns all training rows in a fixed order. */
export async function labelledRows(): Promise<Row[]> {
  const read = createRowReader()
  const rows = [
    ...(await harmfulRequests()),
    ...(await contrasts()),
    ...(await flaggedTexts()),
    ...(await injections()),
    ...(await hotWords()),
    ...(await everydayPrompts()),
    ...moderationExamples().map(rowOfExample),
  ]
  return rows.map(row => {
    // A template's placeholder identifies the collection, not the attack.
    return { ...row, ...read(row.text.replace('[INSERT PROMPT HERE]', '')) }
  })
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

const prompt = { prompt: Type.String() }
const harmful = Type.Object({ ...prompt, unsafe: Type.Number(), source: Type.String() })
const contrast = Type.Object({ ...prompt, unsafe: Type.Number() })
const flagged = Type.Object({ ...prompt, flagged: Type.Number() })
const injected = Type.Object({ ...prompt, injection: Type.Number(), source: Type.String() })
const everyday = Type.Object(prompt)

/** Returns a row. Real prompts are never harmful. */
function labelled(
  [text, set, source = '']: readonly [text: string, set: string, source?: string],
  is: Row['truth'],
  counts: Row['weight'],
  real = false,
): Labelled {
  return { text, set, source, real, truth: is, weight: counts }
}

const nothing = truth(0, 0, 0)

/** Few, but phrased as in practice, so they weigh more than all of the project's sentences. */
async function harmfulRequests(): Promise<Labelled[]> {
  return (await readRows('harmful-requests', harmful)).map(({ prompt: text, unsafe, source }) =>
    labelled(
      [text, 'harmful-requests', source],
      truth(unsafe, 0, 0),
      unsafe === 1 ? weight(7, 0, 1) : weight(1, 0.5, 1),
    ),
  )
}

async function contrasts(): Promise<Labelled[]> {
  return (await readRows('xstest', contrast)).map(({ prompt: text, unsafe }) =>
    labelled([text, 'xstest'], truth(unsafe, 0, 0), weight(1, unsafe === 1 ? 0 : 0.5, 0.5)),
  )
}

async function flaggedTexts(): Promise<Labelled[]> {
  return (await readRows('moderation-openai', flagged)).map(({ prompt: text, flagged: is }) =>
    labelled([text, 'moderation-openai'], truth(is, is, 0), weight(is === 1 ? 0.1 : 2, 1, 0.5)),
  )
}

async function injections(): Promise<Labelled[]> {
  return (await readRows('prompt-injection', injected)).map(({ prompt: text, injection, source }) => {
    const isAttack = injection === 1
    const isMislabelled = !isAttack && isKnownJailbreak(text)
    const counts = isMislabelled ? nothing : weight(isAttack ? 0 : 1, 0.3, 1)
    return labelled([text, 'prompt-injection', source], truth(0, 0, injection), counts, !isAttack && !isMislabelled)
  })
}

/** Returns true for a known jailbreak that some sets label as harmless, which would be a wrong label. */
function isKnownJailbreak(text: string): boolean {
  return text.includes('known as DAN')
}

const sourced = Type.Object({ ...prompt, source: Type.String(), lang: Type.String() })

/** Harmless requests that sound alarming. Some of the first source are borderline, so they weigh less. */
async function hotWords(): Promise<Labelled[]> {
  return (await readRows('honest-hot-words', sourced)).map(({ prompt: text, source }) =>
    labelled([text, 'honest-hot-words', source], nothing, weight(source === 'or-bench-hard' ? 1 : 2, 0.3, 0.5)),
  )
}

/** Exam questions cover every topic, including morals and crime, but are not requests for harm. */
const examSet = 'routellm-mmlu'
/**
 * Sets of prompts by users or tests, which must not be dominated by the project's sentences; every fourth prompt of the
 * large ones.
 */
const everydaySets = [
  'query-types',
  'query-types-2',
  'query-families',
  'enhance-gate',
  'freshqa',
  'retrievalqa',
  'routellm-mtbench',
  'real-user-prompts',
]
const largeSets = ['evergreenqa', 'llmrouter-9models', examSet]

async function everydayPrompts(): Promise<Labelled[]> {
  const rows: Labelled[] = []
  const users = new Set((await readRows(realUsers, everyday)).map(({ prompt: text }) => text))
  const seen = new Set<string>()
  for (const set of [...everydaySets, ...largeSets]) {
    const isLarge = largeSets.includes(set)
    const counts = isLarge ? weight(set === examSet ? 0 : 0.5, 0.1, 0.3) : weight(3, 0.3, 1)
    for (const [index, { prompt: text }] of (await readRows(set, everyday)).entries()) {
      if ((isLarge && index % 4 !== 0) || seen.has(text) || isKnownJailbreak(text)) continue
      seen.add(text)
      rows.push(labelled([text, set, users.has(text) ? realUsers : ''], nothing, counts, true))
    }
  }
  return rows
}

function rowOfExample({ text, lesson, harmful: isHarmful }: ModerationExample): Labelled {
  const is = isHarmful ? 1 : 0
  const own = [text, ownSet, lesson] as const
  switch (lesson) {
    case 'request':
      // The real prompts decide what is harmful; the project's only add vocabulary.
      return labelled(own, truth(is, 0, 0), isHarmful ? weight(0.25, 0, 0.1) : weight(0.9, 0.06, 0.3))
    case 'everyday':
      return labelled(own, nothing, weight(3, 0, 0.05))
    case 'content':
      return labelled(own, truth(is, is, 0), weight(isHarmful ? 0 : 0.2, 0.3, 0.1))
    case 'jailbreak':
      return labelled(own, truth(0, 0, is), isHarmful ? weight(0, 0, 0.3) : weight(0.2, 0.05, 0.5))
  }
}
