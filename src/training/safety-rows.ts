import { Type } from '@sinclair/typebox'
import { createFeatureReader } from '../core/analysis/features.ts'
import { createHarmReader } from '../core/moderation/harm-features.ts'
import type { HarmHead } from '../core/moderation/harm-slots.ts'
import { eachPart } from '../core/moderation/parts.ts'
import { readRows } from './data.ts'
import { type Example, lessons } from './safety-examples.ts'

/** A labelled text: what each head is to say of it, and how much that counts (0 = it is not asked). */
export type Row = {
  readonly text: string
  readonly set: string
  readonly source: string
  readonly truth: Readonly<Record<HarmHead, number>>
  readonly weight: Readonly<Record<HarmHead, number>>
  /** A prompt that someone meant and that must never be refused. */
  readonly real: boolean
  readonly slots: Uint32Array
  /** How often a word of each kind was read. */
  readonly kinds: Uint16Array
  /** Its sentences, where it has several. */
  readonly parts: readonly Pick<Row, 'slots' | 'kinds'>[]
}

/** The set of our own sentences: learned from, never judged by. */
export const ownSet = 'own'
/** Sets on which a refusal counts as a false one. */
export const judgedSets: ReadonlySet<string> = new Set([
  'query-types',
  'query-families',
  'enhance-gate',
  'prompt-injection',
])

/** The set of prompts that people wrote, parts of which stand in other sets too: the source of its rows. */
export const realUsers = 'real-user-prompts'

/** All that the heads learn from, always in the same order. */
export async function labelledRows(): Promise<Row[]> {
  const read = createSlotReader()
  const labelled = [
    ...(await harmfulRequests()),
    ...(await contrasts()),
    ...(await flaggedTexts()),
    ...(await injections()),
    ...(await hotWords()),
    ...(await everydayPrompts()),
    ...lessons().map(rowOfLesson),
  ]
  return labelled.map(row => {
    // A template's placeholder marks the collection, not the attack.
    return { ...row, ...read(row.text.replace('[INSERT PROMPT HERE]', '')) }
  })
}

/** Reads what the heads see of a text. */
export function createSlotReader(): (text: string) => Pick<Row, 'slots' | 'kinds' | 'parts'> {
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

/** Few, and as people really ask: they count more than all sentences of our own. */
async function harmfulRequests(): Promise<Labelled[]> {
  return (await readRows('harmful-requests', harmful)).map(({ prompt: text, unsafe, source }) => ({
    text,
    set: 'harmful-requests',
    source,
    real: false,
    truth: truth(unsafe, 0, 0),
    weight: weight(unsafe === 1 ? 7 : 1, unsafe === 1 ? 0 : 0.5, 1),
  }))
}

async function contrasts(): Promise<Labelled[]> {
  return (await readRows('xstest', contrast)).map(({ prompt: text, unsafe }) => ({
    text,
    set: 'xstest',
    source: '',
    real: false,
    truth: truth(unsafe, 0, 0),
    weight: weight(1, unsafe === 1 ? 0 : 0.5, 0.5),
  }))
}

async function flaggedTexts(): Promise<Labelled[]> {
  return (await readRows('moderation-openai', flagged)).map(({ prompt: text, flagged: is }) => ({
    text,
    set: 'moderation-openai',
    source: '',
    real: false,
    truth: truth(is, is, 0),
    weight: weight(is === 1 ? 0.1 : 2, 1, 0.5),
  }))
}

async function injections(): Promise<Labelled[]> {
  return (await readRows('prompt-injection', injected)).map(({ prompt: text, injection, source }) => {
    const isAttack = injection === 1
    const isMislabelled = !isAttack && isKnownJailbreak(text)
    return {
      text,
      set: 'prompt-injection',
      source,
      real: !isAttack && !isMislabelled,
      truth: truth(0, 0, injection),
      weight: isMislabelled ? weight(0, 0, 0) : weight(isAttack ? 0 : 1, 0.3, 1),
    }
  })
}

/** Stands word for word in sets that call it harmless: nothing good is learnt from it. */
function isKnownJailbreak(text: string): boolean {
  return text.includes('known as DAN')
}

const sourced = Type.Object({ ...prompt, source: Type.String(), lang: Type.String() })

/** Honest requests that sound alarming. Some of the first source are borderline: they count less. */
async function hotWords(): Promise<Labelled[]> {
  return (await readRows('honest-hot-words', sourced)).map(({ prompt: text, source }) => ({
    text,
    set: 'honest-hot-words',
    source,
    real: false,
    truth: truth(0, 0, 0),
    weight: weight(source === 'or-bench-hard' ? 1 : 2, 0.3, 0.5),
  }))
}

/** Exam questions: about anything, morals and crime among it, yet nobody's way of asking for it. */
const examSet = 'routellm-mmlu'
/** Sets of prompts that people or tests really asked, which none of our own sentences may drown; of the large ones every fourth. */
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
      rows.push({
        text,
        set,
        source: users.has(text) ? realUsers : '',
        real: true,
        truth: truth(0, 0, 0),
        weight: counts,
      })
    }
  }
  return rows
}

function rowOfLesson({ text, lesson, harmful: isHarmful }: Example): Labelled {
  const is = isHarmful ? 1 : 0
  const own = { text, set: ownSet, source: lesson, real: false }
  switch (lesson) {
    case 'request':
      // Harmful ones are told apart by the real ones; ours only widen what they speak of.
      return {
        ...own,
        truth: truth(is, 0, 0),
        weight: weight(isHarmful ? 0.25 : 0.9, isHarmful ? 0 : 0.06, isHarmful ? 0.1 : 0.3),
      }
    case 'everyday':
      return { ...own, truth: truth(0, 0, 0), weight: weight(3, 0, 0.05) }
    case 'content':
      return { ...own, truth: truth(is, is, 0), weight: weight(isHarmful ? 0 : 0.2, 0.3, 0.1) }
    case 'jailbreak':
      return {
        ...own,
        truth: truth(0, 0, is),
        weight: weight(isHarmful ? 0 : 0.2, isHarmful ? 0 : 0.05, isHarmful ? 0.3 : 0.5),
      }
  }
}
