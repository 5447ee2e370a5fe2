/**
 * The texts of the heads of harm, each with a weight per head (`data/harm-sets.json`). Few harmful requests are labeled, but
 * they are phrased as in practice, so they weigh more than all of the project's sentences, which only add vocabulary. All
 * everyday prompts count as harmless. Exam questions cover every topic, including morals and crime, but are not requests for
 * harm; every fourth row of a large set is used, so that it does not dominate.
 */
import file from './data/harm-sets.json'
import honestWorld from './data/honest-world.json'
import { readRows, readTexts, type SetUse, type SourcedText } from './data.ts'
import { moderationExamples } from './templates.ts'

/** Heads that requests and contents are judged by, and the one of other languages. Absent = 0: the head does not learn from it. */
export type HeadWeights = { readonly request?: number; readonly content?: number; readonly world?: number }

/** How texts of one kind are used. */
type Use = {
  /** Harm is stated, not only asked for. */
  readonly isContent?: boolean
  readonly harm?: HeadWeights
  readonly honest?: HeadWeights
}

export type HarmText = SourcedText & {
  readonly isHarm: boolean
  readonly isContent: boolean
  readonly weights: HeadWeights
}

/** `label` is the column that is 1 for harm; absent = all are honest. */
const sets: readonly (Use & SetUse & { readonly label?: string })[] = file.sets
const own: Readonly<Record<string, Use>> = file.own
const labels = ['unsafe', 'flagged', 'injection', 'clear'] as const

/** Returns all texts in a fixed order, each once. */
export async function readHarmTexts(): Promise<HarmText[]> {
  const rows = new Map<string, HarmText>()
  const add = (text: string, isHarm: boolean, use: Use | undefined, origin: Partial<HarmText> = {}) => {
    const weights = isHarm ? use?.harm : use?.honest
    // Some sets label a known jailbreak as harmless.
    if (weights === undefined || rows.has(text) || (!isHarm && text.includes('known as DAN'))) return
    const isContent = isHarm && use?.isContent === true
    rows.set(text, { text, source: null, language: 'en', key: text, isHarm, isContent, weights, ...origin })
  }
  for (const use of sets)
    for (const { text, row, ...origin } of await readTexts(use, ...labels))
      add(
        text,
        labels.some(name => name === use.label && row[name] === 1),
        use,
        origin,
      )
  for (const [index, { prompt: key, texts }] of (await readRows('evergreenqa', 'prompt', 'texts')).entries())
    if (index % file.translated.every === 0)
      for (const [language, text] of Object.entries(texts)) add(text, false, file.translated, { language, key })
  for (const { text, lesson, harmful } of moderationExamples()) add(text, harmful, own[lesson])
  for (const [language, texts] of Object.entries(honestWorld))
    for (const text of texts) add(text, false, own.world, { language })
  return [...rows.values()]
}
