/**
 * Trains the three classifiers of `text/harm/harm-features.ts`. In addition to the labeled sets they use the
 * project's sentences (`data/frames.json`) and, as harmless, all other prompts, since everyday prompts must not be
 * blocked.
 */
import { createFeatureReader } from '../text/analysis/features.ts'
import { createDeedReader } from '../text/harm/deeds.ts'
import { blocksPart, isBlocked } from '../text/harm/harm-classifier.ts'
import { featureWeight, getRegion, type HarmHead, harmHeads, harmSlots } from '../text/harm/harm-slots.ts'
import { compileRules, findBlockingRule, moderationRules } from '../text/rules/pattern-rules.ts'
import { encodeWeights } from '../text/weights/stored-weights.ts'
import { type Example, train } from './linear.ts'
import { labelledRows, type Row } from './safety-rows.ts'
import { leftOut, type ReportRow, shares, type Trained, type TrainingJob, trainingDigest } from './training-job.ts'

type Tuning = {
  /** Weights of words, neighbors and kinds. */
  readonly regions: readonly [number, number, number]
  readonly decay: number
  readonly rate: number
}

/** Set by cross-validation. Content depends on word kinds; requests and jailbreaks on words too. */
const tuning: Readonly<Record<HarmHead, Tuning>> = {
  request: { regions: [1, 0.4, 1.2], decay: 4e-3, rate: 0.1 },
  content: { regions: [0.3, 0.1, 1], decay: 1e-2, rate: 0.3 },
  jailbreak: { regions: [1, 0.5, 2], decay: 2e-3, rate: 0.1 },
}
const epochs = 12
/**
 * Weight of a sentence of a harmless text relative to the whole, and of a sentence of a text that is not a request as a
 * whole.
 */
const partWeight = 0.3
const examWeight = 0.5

/** Reads the training data of the classifiers. */
export async function readModeration(): Promise<TrainingJob> {
  const rows = await labelledRows()
  const parts = rows.map(({ slots, parts, truth, weight }) => [slots, ...parts.map(part => part.slots), truth, weight])
  return { examples: trainingDigest({ tuning, epochs }, parts), learn: async () => trained(rows) }
}

function trained(rows: readonly Row[]): Trained {
  const models = harmHeads.map((head, index) => fit(rows, head, index + 1))
  const scales = models.map(
    ({ weights }) => weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0) / 127,
  )
  const bytes = new Int8Array(harmSlots * harmHeads.length)
  for (const [index, { weights }] of models.entries())
    for (let slot = 0; slot < harmSlots; slot++)
      bytes[slot * harmHeads.length + index] = Math.round((weights[slot] ?? 0) / (scales[index] ?? 1))
  return {
    weights: {
      source:
        'bun run train: harmful-requests, xstest, moderation-openai, prompt-injection, the sets of everyday prompts, and data/frames.json',
      scale: Object.fromEntries(harmHeads.map((head, index) => [head, scales[index] ?? 1])),
      bias: Object.fromEntries(harmHeads.map((head, index) => [head, models[index]?.bias ?? 0])),
      weights: encodeWeights(bytes),
    },
    figures: getFigures(rows),
  }
}

type Model = { readonly weights: Float32Array; readonly bias: number }

/** Trains one classifier. The bias is a slot that every text has. */
function fit(rows: readonly Row[], head: HarmHead, seed: number): Model {
  const { regions, decay, rate } = tuning[head]
  const getExample = (slots: Int32Array, truth: number, weight: number): Example => {
    const loud = featureWeight(slots.length)
    const values = new Float32Array(slots.length + 1).fill(1)
    for (let at = 0; at < slots.length; at++) values[at] = loud * (regions[getRegion(slots[at] ?? 0)] ?? 0)
    const all = new Int32Array(slots.length + 1)
    all.set(slots)
    all[slots.length] = harmSlots
    return { slots: all, values, classes: [truth], weight }
  }
  const examples: Example[] = []
  for (const { slots, parts, truth, weight } of rows) {
    if (weight[head] > 0) examples.push(getExample(slots, truth[head], weight[head]))
    // Every part of a harmless text is harmless, but a harmful text may have only one harmful part.
    if (head !== 'request' || truth.request === 1) continue
    for (const part of parts)
      examples.push(getExample(part.slots, 0, Math.max(examWeight, weight.request) * partWeight))
  }
  const trained = train(examples, { size: harmSlots + 1, epochs, rate, decay, seed })
  const weights = trained.subarray(0, harmSlots).map((value, slot) => value * (regions[getRegion(slot)] ?? 0))
  return { weights, bias: trained[harmSlots] ?? 0 }
}

function logOdds({ weights, bias }: Model, slots: Int32Array): number {
  let sum = 0
  for (const slot of slots) sum += weights[slot] ?? 0
  return sum * featureWeight(slots.length) + bias
}

/**
 * Evaluates patterns and classifier together, as in the service, by models that learned nothing of the source; there are no
 * labeled texts for URLs.
 */
function getFigures(rows: readonly Row[]): ReportRow[] {
  const rules = compileRules(moderationRules)
  const readFeatures = createFeatureReader()
  const readDeeds = createDeedReader()
  const told = leftOut(
    rows,
    row => row.source,
    (learned, seed) => harmHeads.map((head, index) => ({ head, model: fit(learned, head, seed * 10 + index + 1) })),
    (models, row) => ({
      row,
      blocked:
        findBlockingRule(rules, row.text, 'prompt') !== null ||
        isBlocked(getOdds(models, row)) ||
        readDeeds(readFeatures(row.text)) !== null ||
        row.parts.some(part => blocksPart(getOdds(models, part), row.parts.length)),
    }),
  )
  const blocked = (name: string, goal: string, isHarm: boolean) =>
    shares(
      `${name}, source left out`,
      goal,
      told.filter(({ row: { truth } }) => (truth.request === 1 || truth.jailbreak === 1) === isHarm),
      ({ row }) => row.source ?? '',
      ({ blocked: isBlocked }) => isBlocked,
    )
  return [...blocked('harm caught', '≥ .65', true), ...blocked('honest refused', '≤ .005', false)]
}

type Models = readonly { readonly head: HarmHead; readonly model: Model }[]

function getOdds(models: Models, { slots, kinds }: Pick<Row, 'slots' | 'kinds'>) {
  const odds = { request: 0, content: 0, jailbreak: 0, evidence: slots.length, kinds }
  for (const { head, model } of models) odds[head] = logOdds(model, slots)
  return odds
}
