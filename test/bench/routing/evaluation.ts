/**
 * Evaluates routing on a table of graded outputs: ours, each single model, published routers, a random choice and the
 * best choice in hindsight. Ours is the choice of the service over the table's models instead of the catalog's.
 */
import { getTier, type Model } from '../../../src/core/models/models.ts'
import { defaultLevelShares, getLevel } from '../../../src/models/capability-levels.ts'
import { catalog } from '../../../src/models/catalog.ts'
import { score } from '../../../src/models/scoring.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'
import { areaRecovered } from '../../../src/training/gain.ts'
import { countTokens, type Row, type Table } from './tables.ts'

type Kind = 'ours' | 'model' | 'router' | 'random' | 'oracle'

/** Figures of one way to choose, over all prompts of a table. */
export type Line = {
  readonly name: string
  readonly kind: Kind
  /** Mean, 0–1. */
  readonly score: number
  /** USD per 1,000 prompts; null = the table has no costs. */
  readonly costPer1000: number | null
  /** USD per solved task: all costs over the sum of the scores. */
  readonly costPerSolved: number | null
  /** RouterArena's score of accuracy and cost, 0–100. */
  readonly arena: number | null
  /** Share of conversations whose steps are all solved; null = no conversations. */
  readonly conversations: number | null
  /** Changes of model within conversations, per conversation. */
  readonly changes: number | null
}

export type Evaluation = {
  readonly table: string
  readonly layout: string
  readonly prompts: number
  readonly incomplete: number
  readonly conversations: number
  /** Prompts from which the stored weights learned, as far as the sets are beside the checkout. */
  readonly learned: number
  readonly lines: readonly Line[]
  /** Area under the recovered gap between a weak model and the best one, by weak model. Chance: 0.5. */
  readonly apgr: Readonly<Record<string, number>>
  /** The best single model that costs at most as much as ours and scores higher; null = none. */
  readonly beatenBy: string | null
}

const { read } = openPromptAnalyzer()

/** `isLearned`: the stored weights learned from this text. */
export function evaluate(table: Table, isLearned: (text: string) => boolean): Evaluation {
  const rows = inOrder(table.rows)
  const gains = new Map(rows.map(row => [row, read(row.messages).strongGain]))
  const getGain = (row: Row) => gains.get(row) ?? 0
  const always = (name: string, kind: Kind) => toLine(table, rows, name, kind, () => name)
  const singles = table.models.map(model => always(model, 'model'))
  const hasCosts = singles.every(({ costPer1000 }) => costPer1000 !== null)
  const choose = createChoice(table, getGain)
  // Without costs every prompt would go to the best model.
  const ours = hasCosts ? [toLine(table, rows, 'gateway-ai', 'ours', choose)] : []
  const lines = [
    ...ours,
    ...singles.toSorted((line, other) => other.score - line.score),
    ...table.routers.map(router => always(router, 'router')),
    getMean(singles),
    toLine(table, rows, 'oracle', 'oracle', row => cheapestBest(table.models, row)),
  ]
  return {
    table: table.name,
    layout: table.layout,
    prompts: rows.length,
    incomplete: table.incomplete,
    conversations: new Set(rows.flatMap(({ step }) => step?.conversation ?? [])).size,
    learned: rows.filter(({ messages }) => messages.some(message => isLearned(firstText(message)))).length,
    lines,
    apgr: recoveredGaps(rows, singles, getGain),
    beatenBy: ours[0] === undefined ? null : findBetter(ours[0], singles),
  }
}

const firstText = (message: Row['messages'][number]) => {
  const part = message.role === 'user' ? message.content[0] : undefined
  return part?.type === 'text' ? part.text : ''
}

/** Steps of a conversation follow each other. */
function inOrder(rows: readonly Row[]): readonly Row[] {
  const groups = Map.groupBy(rows, ({ id, step }) => step?.conversation ?? id)
  return [...groups.values()].flatMap(of =>
    of.toSorted((row, other) => (row.step?.index ?? 0) - (other.step?.index ?? 0)),
  )
}

/**
 * Returns the service's choice for a prompt. The catalog figures of a model are its mean score and its cost per token on
 * the half of the prompts to which this one does not belong, so that no outcome decides about itself.
 */
function createChoice(table: Table, getGain: (row: Row) => number): (row: Row) => string {
  const half = ({ id, step }: Row) => Number(Bun.hash(step?.conversation ?? id) % 2n)
  const pools = [0, 1].map(side =>
    getPool(
      table,
      table.rows.filter(row => half(row) !== side),
    ),
  )
  return row => {
    const level = getLevel(getGain(row), defaultLevelShares)
    const terms = { at: 0, tier: null }
    return score(pools[half(row)] ?? [], { strategy: null, level, terms })[0]?.model.id ?? ''
  }
}

function getPool({ models }: Table, rows: readonly Row[]): readonly Model[] {
  const template = catalog[0]
  if (template === undefined) return []
  const tokens = rows.reduce((sum, { messages }) => sum + countTokens(messages), 0)
  return models.map(id => {
    const outcomes = rows.map(row => row.outcomes[id])
    const mean = (pick: (outcome: (typeof outcomes)[number]) => number) =>
      outcomes.reduce((sum, outcome) => sum + pick(outcome), 0)
    const price = (mean(outcome => outcome?.costUsd ?? 0) / Math.max(1, tokens)) * 1e6
    const pricing = { input: price, output: price, cachedInput: null, cacheWrite: null, longContext: null }
    const quality = mean(outcome => outcome?.score ?? 0) / Math.max(1, rows.length)
    const figures = { quality, tokensPerSecond: 100, firstTokenMs: 500, estimated: false }
    return { ...template, id, provider: 'bench', pricing, figures, tier: getTier(pricing) }
  })
}

function cheapestBest(models: readonly string[], { outcomes }: Row): string {
  const best = Math.max(...models.map(model => outcomes[model]?.score ?? 0))
  const cost = (model: string) => outcomes[model]?.costUsd ?? 0
  return models
    .filter(model => outcomes[model]?.score === best)
    .reduce((cheapest, other) => (cost(other) < cost(cheapest) ? other : cheapest))
}

function toLine(
  { cacheDiscount }: Table,
  rows: readonly Row[],
  name: string,
  kind: Kind,
  choose: (row: Row) => string,
): Line {
  let [solved, cost, changes]: [number, number | null, number] = [0, 0, 0]
  const failed = new Set<string>()
  const all = new Set<string>()
  const chosen = rows.map(choose)
  for (const [at, row] of rows.entries()) {
    const [model = '', modelBefore] = [chosen[at], chosen[at - 1]]
    const before = rows[at - 1]
    const follows =
      before?.step !== undefined && row.step !== null && before.step?.conversation === row.step.conversation
    const { score: gained = 0, costUsd = null } = row.outcomes[model] ?? {}
    const saved = follows && modelBefore === model ? (cacheDiscount?.(row, before, model) ?? 0) : 0
    solved += gained
    cost = cost === null || costUsd === null ? null : cost + costUsd - saved
    if (follows && modelBefore !== model) changes++
    if (row.step !== null) {
      all.add(row.step.conversation)
      if (gained < 1) failed.add(row.step.conversation)
    }
  }
  const costPer1000 = cost === null ? null : (1_000 * cost) / rows.length
  return {
    ...{ name, kind, score: solved / rows.length, costPer1000 },
    costPerSolved: cost === null || solved === 0 ? null : cost / solved,
    arena: costPer1000 === null ? null : arenaScore(costPer1000, solved / rows.length),
    conversations: all.size === 0 ? null : 1 - failed.size / all.size,
    changes: all.size === 0 ? null : changes / all.size,
  }
}

/** The expected figures of a model drawn for each prompt. */
function getMean(singles: readonly Line[]): Line {
  const mean = (pick: (line: Line) => number | null) =>
    singles.reduce<number | null>((sum, line) => {
      const value = pick(line)
      return sum === null || value === null ? null : sum + value / singles.length
    }, 0)
  const score = mean(line => line.score) ?? 0
  const costPer1000 = mean(line => line.costPer1000)
  return {
    ...{ name: 'random', kind: 'random', score, costPer1000, conversations: null, changes: null },
    costPerSolved: costPer1000 === null || score === 0 ? null : costPer1000 / 1_000 / score,
    arena: costPer1000 === null ? null : arenaScore(costPer1000, score),
  }
}

/** RouterArena's score (arXiv 2510.00202, `compute_arena_score`): β = 0.1, costs between 0.0044 and 200 USD per 1,000. */
export function arenaScore(costPer1000: number, accuracy: number): number {
  const [beta, lowest, highest] = [0.1, 0.0044, 200]
  const bounded = Math.min(highest, Math.max(lowest, costPer1000))
  const cheapness = Math.log(highest / bounded) / Math.log(highest / lowest)
  const sum = beta * accuracy + cheapness
  return sum === 0 ? 0 : (100 * (1 + beta) * accuracy * cheapness) / sum
}

/** Gaps below this say more about chance than about the order of prompts. */
const leastGap = 0.05

function recoveredGaps(
  rows: readonly Row[],
  singles: readonly Line[],
  getGain: (row: Row) => number,
): Readonly<Record<string, number>> {
  const [strong, ...others] = singles.toSorted((line, other) => other.score - line.score)
  if (strong === undefined) return {}
  const wide = others.filter(weak => strong.score - weak.score >= leastGap)
  return Object.fromEntries(
    (wide.length > 0 ? wide : others.slice(-1)).map(weak => [
      weak.name,
      areaRecovered(
        rows.map(row => ({
          weak: row.outcomes[weak.name]?.score ?? 0,
          strong: row.outcomes[strong.name]?.score ?? 0,
          score: getGain(row),
        })),
      ),
    ]),
  )
}

function findBetter(ours: Line, singles: readonly Line[]): string | null {
  const better = singles.filter(
    ({ score, costPer1000 }) => score > ours.score && (costPer1000 ?? 0) <= (ours.costPer1000 ?? 0),
  )
  return better.toSorted((line, other) => other.score - line.score)[0]?.name ?? null
}
