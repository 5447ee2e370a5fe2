import { bits, foldCount, type GainRow } from './gain-rows.ts'
import { predict, type SparseRow, solveRidge } from './ridge.ts'

/**
 * Evaluates whether a prompt predicts the best of nine models. Linear models over the gain classifier's words and cues
 * predict the similarity to each kind of task; the model with the highest quality, averaged over the kinds by
 * similarity, is chosen. All is learned without the prompt's fold. It tests the router's method (quality by query type)
 * on known outcomes. Nothing is stored, since the catalog has other models and types.
 */
export function chooseAmongNine(rows: readonly GainRow[]): { chosen: number; single: number; oracle: number } {
  const models = Object.keys(rows[0]?.scores ?? {})
  const sparse = sparseRows(rows)
  let chosen = 0
  for (let fold = 0; fold < foldCount; fold++) {
    const seen = [...rows.keys()].filter(index => rows[index]?.fold !== fold)
    const kinds = getKinds(rows, sparse, seen, models)
    for (const [index, row] of rows.entries()) {
      const values = sparse[index]
      if (row.fold === fold && values !== undefined) chosen += scoreFor(row, bestModel(kinds, values, models))
    }
  }
  const means = models.map(model => getMean(rows, model))
  const oracle = rows.reduce((sum, row) => sum + Math.max(...models.map(model => scoreFor(row, model))), 0)
  return { chosen: chosen / rows.length, single: Math.max(...means), oracle: oracle / rows.length }
}

/** Regularization of the linear models, with a row weight of 1. */
const ridge = { word: 10, cue: 30, all: 1e-3 }

/** Difference of two predictions at which one kind counts e times as much as the other. */
const softness = 0.08

type Kind = { readonly line: Float64Array; readonly quality: readonly number[] }

/** Returns each kind of task in the given rows: a linear model that detects it, and the quality of each model on it. */
function getKinds(
  rows: readonly GainRow[],
  sparse: readonly SparseRow[],
  seen: readonly number[],
  models: readonly string[],
): Kind[] {
  const width = rows[0]?.cues.length ?? 0
  const held = new Float64Array(2 ** bits + width + 1).fill(ridge.word, 0, 2 ** bits)
  held.fill(ridge.cue, 2 ** bits)
  held[2 ** bits + width] = ridge.all
  const weights = new Float64Array(seen.length).fill(1)
  return [...new Set(seen.map(index => rows[index]?.group))].map(group => ({
    line: solveRidge({
      rows: seen.flatMap(index => sparse[index] ?? []),
      targets: Float64Array.from(seen, index => (rows[index]?.group === group ? 1 : 0)),
      weights,
      ridge: held,
    }),
    quality: models.map(model =>
      getMean(
        seen.flatMap(index => rows[index] ?? []).filter(row => row.group === group),
        model,
      ),
    ),
  }))
}

/** Returns the model of the highest quality, averaged over kinds by similarity to the prompt. */
function bestModel(kinds: readonly Kind[], values: SparseRow, models: readonly string[]): string {
  const nearness = kinds.map(({ line }) => Math.exp(predict(values, line) / softness))
  const expected = models.map((_, model) =>
    kinds.reduce((sum, { quality }, kind) => sum + (nearness[kind] ?? 0) * (quality[model] ?? 0), 0),
  )
  return models[expected.indexOf(Math.max(...expected))] ?? ''
}

function getMean(rows: readonly GainRow[], model: string): number {
  return rows.reduce((sum, row) => sum + scoreFor(row, model), 0) / rows.length
}

function scoreFor(row: GainRow, model: string): number {
  return row.scores?.[model] ?? 0
}

/** Returns words by rarity, cues by standard score, and a column of ones. */
function sparseRows(rows: readonly GainRow[]): SparseRow[] {
  const found = new Float64Array(2 ** bits)
  for (const { slots } of rows) for (const slot of slots) found[slot] = (found[slot] ?? 0) + 1
  const width = rows[0]?.cues.length ?? 0
  const kinds = Array.from({ length: width }, (_, cue) => {
    const mean = rows.reduce((sum, { cues }) => sum + (cues[cue] ?? 0), 0) / rows.length
    const square = rows.reduce((sum, { cues }) => sum + ((cues[cue] ?? 0) - mean) ** 2, 0) / rows.length
    return { mean, spread: Math.sqrt(square) || 1 }
  })
  return rows.map(({ slots, cues }) => {
    const columns = new Uint32Array(slots.length + width + 1)
    const values = new Float32Array(columns.length)
    columns.set(slots)
    const each = 1 / Math.sqrt(Math.max(1, slots.length))
    for (const [at, slot] of slots.entries()) values[at] = each * Math.log(rows.length / (found[slot] ?? 1))
    for (const [cue, { mean, spread }] of kinds.entries()) {
      columns[slots.length + cue] = 2 ** bits + cue
      values[slots.length + cue] = Math.max(-3, Math.min(3, ((cues[cue] ?? 0) - mean) / spread))
    }
    columns[slots.length + width] = 2 ** bits + width
    values[slots.length + width] = 1
    return { columns, values }
  })
}
