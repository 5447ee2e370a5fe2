/**
 * Trains the heads of harm: of requests for it and of harmful content (`text/harm/harm-features.ts`), and of requests in any
 * language (`text/harm/world.ts`), where all languages share notions, while words belong to one.
 */
import { createSlots, encodeWeights } from '../text/analysis/feature-slots.ts'
import { createFeatureReader, type Features } from '../text/analysis/features.ts'
import { createNotionReader, englishLanguage, type Notions } from '../text/analysis/notions.ts'
import { createDeedReader } from '../text/harm/deeds.ts'
import { blocksPart, isBlocked } from '../text/harm/harm-classifier.ts'
import { createHarmJudge, type Harm } from '../text/harm/harm-features.ts'
import { featureWeight, findParts, getRegion, type HarmHead, harmHeads, harmSlots } from '../text/harm/harm-slots.ts'
import { asksForHarm, fillWorldSlots, worldBits } from '../text/harm/world.ts'
import { compileRules, findBlockingRule, moderationRules } from '../text/rules/pattern-rules.ts'
import { type HarmText, type HeadWeights, readHarmTexts } from './harm-texts.ts'
import { countUses, type Example, type FeatureVector, filledFeatures, predict, quantised, train } from './linear.ts'
import { leftOut, shares, stored, type TrainingJob } from './training-job.ts'

/**
 * Per head: its slots; the regularization, by example that has a slot, of words, neighbors, kinds and the bias; and the
 * weight of a sentence of a harmless text: relative to the whole, and of a text that is not of the head at least. Set by
 * cross-validation. Content depends on word kinds; requests on words too.
 */
const heads = {
  request: { size: harmSlots + 1, decay: [2e-3, 5.6e-3, 1.4e-3, 2e-3], steps: 60, part: 0.3, least: 0.5 },
  content: { size: harmSlots + 1, decay: [0.22, 2, 2e-2, 2e-2], steps: 60, part: 0, least: 0 },
  world: { size: 2 ** worldBits, decay: [1e-2, 1e-2, 1e-2, 1e-2], steps: 40, part: 0.5, least: 0 },
} as const satisfies Record<keyof HeadWeights, object>

/** A text: the features of the whole, then those of its sentences if it has several. */
type Row<Part extends FeatureVector = FeatureVector> = HarmText & { readonly parts: readonly Part[] }

/** FeatureVector of some words, and what a verdict depends on beside them. */
type Spoken = FeatureVector & Pick<Harm, 'kinds'>
type Noted = FeatureVector & { readonly notions: Notions }

/** Reads the training data of the heads of requests and of content. */
export async function readModeration(): Promise<TrainingJob> {
  const { judge, slots } = createHarmJudge()
  const rows = await readHarmRows(['request', 'content'], (features, from, to): Spoken => {
    const { evidence, kinds } = judge(features, from, to)
    const values = new Float32Array(evidence + 1).fill(featureWeight(evidence))
    // The bias is a slot that every text has.
    values[evidence] = 1
    return { slots: Int32Array.of(...slots.subarray(0, evidence), harmSlots), values, kinds: kinds.slice() }
  })
  return {
    settings: heads,
    examples: harmHeads.flatMap(head => getExamples(rows, head)),
    learn: async () => ({ weights: storedPair(fitPair(rows)), figures: getFigures(rows) }),
  }
}

/** Reads the training data of the head for all languages. */
export async function readWorld(): Promise<TrainingJob> {
  const readNotions = createNotionReader()
  const slots = createSlots(worldBits)
  const rows = await readHarmRows(['world'], (features, from, to): Noted => {
    if (to - from === features.count) readNotions.begin(features)
    const notions = readNotions.read(from, to)
    fillWorldSlots(slots, notions, features, [from, to])
    return { ...filledFeatures(slots), notions: { ...notions, found: notions.found.slice(0, notions.count) } }
  })
  return {
    settings: heads.world,
    examples: getExamples(rows, 'world'),
    learn: async () => ({ weights: stored(fit(rows, 'world'), 4), figures: getWorldFigures(rows) }),
  }
}

async function readHarmRows<Part extends FeatureVector>(
  names: readonly (keyof HeadWeights)[],
  read: (features: Features, from: number, to: number) => Part,
): Promise<Row<Part>[]> {
  const readFeatures = createFeatureReader()
  const texts = (await readHarmTexts()).filter(({ weights }) => names.some(name => weights[name] !== undefined))
  return texts.map(row => {
    // A template's placeholder identifies the collection, not the attack.
    const features = readFeatures(row.text.replace('[INSERT PROMPT HERE]', ''))
    const ranges = [[0, features.count] as const, ...findParts(features)]
    return { ...row, parts: ranges.map(([from, to]) => read(features, from, to)) }
  })
}

/** Every part of a harmless text is harmless, but a harmful text may have only one harmful part. */
function getExamples(rows: readonly Row[], head: keyof HeadWeights): Example[] {
  const { part, least } = heads[head]
  return rows.flatMap(({ parts, isHarm, isContent, weights }) => {
    const whole = weights[head] ?? 0
    const classes = [(head === 'content' ? isContent : isHarm) ? 1 : 0]
    return parts
      .slice(0, isHarm ? 1 : parts.length)
      .map(({ slots, values }, index) => {
        return { slots, values, classes, weight: index === 0 ? whole : Math.max(least, whole) * part }
      })
      .filter(({ weight }) => weight > 0)
  })
}

function fit(rows: readonly Row[], head: keyof HeadWeights): Float32Array {
  const { size, decay, steps } = heads[head]
  const examples = getExamples(rows, head)
  const ridge = countUses(examples, size).map((uses, slot) => uses * (decay[getRegion(slot)] ?? 0))
  return train(examples, { size, classes: 1, steps, ridge })
}

type Pair = Readonly<Record<HarmHead, Float32Array>>

const fitPair = (rows: readonly Row[]): Pair => ({ request: fit(rows, 'request'), content: fit(rows, 'content') })

/** Returns both heads in stored form, the weights of a slot side by side. */
function storedPair(models: Pair) {
  const tables = harmHeads.map(head => quantised(models[head].subarray(0, harmSlots), Number.POSITIVE_INFINITY))
  const bytes = Int8Array.from({ length: harmSlots * tables.length }, (_, at) => {
    return tables[at % tables.length]?.bytes[Math.floor(at / tables.length)] ?? 0
  })
  return {
    scale: Object.fromEntries(harmHeads.map((head, index) => [head, tables[index]?.scale ?? 1])),
    bias: Object.fromEntries(harmHeads.map(head => [head, models[head][harmSlots] ?? 0])),
    weights: encodeWeights(bytes),
  }
}

/**
 * Evaluates patterns and heads together, as in the service, by models that learned nothing of the source; there are no
 * labeled texts for URLs.
 */
function getFigures(rows: readonly Row<Spoken>[]): string[] {
  const rules = compileRules(moderationRules)
  const readFeatures = createFeatureReader()
  const readDeeds = createDeedReader()
  const told = leftOut(
    rows,
    row => row.source,
    fitPair,
    (models, row) => {
      const [whole, ...parts] = row.parts.map(part => ({
        request: predict(models.request, part),
        content: predict(models.content, part),
        evidence: part.slots.length - 1,
        kinds: part.kinds,
      }))
      const isStopped =
        findBlockingRule(rules, row.text, 'prompt') !== null ||
        readDeeds(readFeatures(row.text)) !== null ||
        (whole !== undefined && isBlocked(whole)) ||
        parts.some(part => blocksPart(part, parts.length))
      return { row, isStopped }
    },
  )
  return [...stopped(told, true, '≥ .65'), ...stopped(told, false, '≤ .005')]
}

/** Judges texts in other languages by models that saw neither their source nor a translation of them. */
function getWorldFigures(rows: readonly Row<Noted>[]): string[] {
  const told = leftOut(
    rows,
    ({ source, language }) => (language === 'en' ? null : source),
    learned => fit(learned, 'world'),
    (weights, row) => {
      const isStopped = row.parts.some(part => {
        const { language, count } = part.notions
        return language !== englishLanguage && count > 0 && asksForHarm(predict(weights, part), part.notions)
      })
      return { row, isStopped }
    },
    ({ key }) => key,
  )
  const getLanguage = ({ language }: HarmText) => language
  return [
    ...stopped(told, true, '≥ .72', getLanguage),
    ...stopped(told, true, ''),
    ...stopped(told, false, '≤ .005', getLanguage),
  ]
}

/** Returns the shares of harmful or of honest texts that were blocked. */
function stopped(
  told: readonly { readonly row: HarmText; readonly isStopped: boolean }[],
  isHarm: boolean,
  goal: string,
  getGroup: (row: HarmText) => string = ({ source }) => source ?? '',
): string[] {
  const name = `${isHarm ? 'harm caught' : 'honest refused'}, source left out`
  const of = told.filter(({ row }) => row.isHarm === isHarm)
  return shares(
    name,
    goal,
    of,
    ({ row }) => getGroup(row),
    ({ isStopped }) => isStopped,
  )
}
