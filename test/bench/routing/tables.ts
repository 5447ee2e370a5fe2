/**
 * Reads published tables of graded model outputs from a folder. Each layout yields cells (prompt, model, score, cost), so
 * that one file per model, one column per model and one object per prompt become the same table.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join, relative } from 'node:path'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Message } from '../../../src/core/chat/chat.ts'
import { readCompatible } from '../../../src/dialects/chat-completions/request.ts'
import { parseCsv, parsePythonTexts } from './csv.ts'

export type Outcome = {
  /** 0–1; grades on a longer scale are divided by the highest one. */
  readonly score: number
  /** Null = the set has no costs and names no prices. */
  readonly costUsd: number | null
}

export type Row = {
  readonly id: string
  /** Subject or source of the prompt within the set. */
  readonly group: string
  readonly messages: readonly Message[]
  readonly outcomes: Readonly<Record<string, Outcome>>
  /** Place in an agent's conversation; null = no conversation. */
  readonly step: { readonly conversation: string; readonly index: number } | null
}

export type Table = {
  readonly name: string
  readonly layout: string
  /** Models to choose among; all rows have an outcome of each. */
  readonly models: readonly string[]
  /** Published routers whose own outcomes the set has; they are compared and never chosen. */
  readonly routers: readonly string[]
  readonly rows: readonly Row[]
  /** Prompts that not all models answered. */
  readonly incomplete: number
  /** What continuing with the same model in a conversation costs less, because of its prompt cache; null = no conversations. */
  readonly cacheDiscount: ((row: Row, before: Row, model: string) => number) | null
}

type Cell = Outcome & Omit<Row, 'outcomes'> & { readonly model: string; readonly isRouter: boolean }

/** A file of records that fit one layout. */
type Source = { readonly path: string; readonly prices: Prices }

/** USD per million tokens by model. */
type Prices = Readonly<Record<string, { readonly input: number; readonly output: number }>>

type Layout = {
  readonly name: string
  /** Returns the cells of a file; null = its first record has another layout. Throws if a later one has. */
  readonly read: (records: readonly unknown[], source: Source) => Iterable<Cell> | null
  /** Returns the name of the set: files of the same name make one table. */
  readonly getSet: (path: string) => string
  readonly cacheDiscount?: Table['cacheDiscount']
}

const user = (text: string): readonly Message[] => [{ role: 'user', content: [{ type: 'text', text }], name: null }]

function layout<S extends TSchema>(row: {
  readonly name: string
  readonly record: S
  /** Further condition on the first record. */
  readonly fits?: (record: Static<S>, source: Source) => boolean
  readonly cells: (records: readonly Static<S>[], source: Source) => Iterable<Cell>
  readonly getSet: (path: string) => string
  readonly cacheDiscount?: Table['cacheDiscount']
}): Layout {
  return {
    ...row,
    read(records, source) {
      const first = records[0]
      if (!Value.Check(row.record, first) || row.fits?.(first, source) === false) return null
      const checked = records.map((record, index) => {
        if (Value.Check(row.record, record)) return record
        throw new Error(`${source.path}: record ${index + 1} is not in the layout of the first, ${row.name}.`)
      })
      return row.cells(checked, source)
    },
  }
}

/** USD of a prompt and an output of a usual length, for sets with prices but without costs. */
function estimatedCost(prices: Prices, model: string, prompt: string, outputTokens = usualOutput): number | null {
  const price = prices[model]
  return price === undefined ? null : (tokensIn(prompt) * price.input + outputTokens * price.output) / 1e6
}

const usualOutput = 200
export const tokensIn = (text: string) => Math.ceil(text.length / 4)

const getText = (message: Message) =>
  message.role === 'user' ? message.content.map(part => (part.type === 'text' ? part.text : '')).join('') : message.text
export const countTokens = (messages: readonly Message[]) =>
  messages.reduce((sum, message) => sum + tokensIn(getText(message) ?? ''), 0)

/** Nominal USD per million tokens of the four tiers in TwinRouterBench (`main/pricing.py`, 2026-05). */
const tierPrices = {
  low: { input: 0.26, cachedInput: 0.13, output: 0.5 },
  mid: { input: 0.3, cachedInput: 0.059, output: 2 },
  mid_high: { input: 0.5, cachedInput: 0.05, output: 5 },
  high: { input: 5, cachedInput: 0.5, output: 25 },
} as const
const tierNames = ['low', 'mid', 'mid_high', 'high'] as const
const isTier = (name: string): name is keyof typeof tierPrices => Object.hasOwn(tierPrices, name)

/** RouterArena names a prompt by its source and a number. */
const toGroup = (id: string) => id.replace(/_\d+$/, '')

const metaColumns = new Set(['sample_id', 'prompt', 'eval_name', 'oracle_model_to_route_to', 'group', 'lang', 'turn2'])
const costSuffix = '|total_cost'
const asNumber = (value: unknown): number | null =>
  typeof value === 'boolean' ? Number(value) : typeof value === 'number' && Number.isFinite(value) ? value : null

const layouts: readonly Layout[] = [
  layout({
    name: 'TwinRouterBench question bank',
    record: Type.Object({
      benchmark: Type.String(),
      instance_id: Type.String(),
      step_index: Type.Integer(),
      messages: Type.Union([Type.Array(Type.Unknown()), Type.String()]),
      target_tier: Type.Union(tierNames.map(name => Type.Literal(name))),
    }),
    getSet: dirname,
    *cells(records) {
      for (const { benchmark, instance_id, step_index, messages, target_tier } of records) {
        const given: unknown = typeof messages === 'string' ? JSON.parse(messages) : messages
        const { request } = readCompatible({ messages: given }, new Headers(), 0)
        const tokens = countTokens(request.messages)
        const cell = {
          id: `${instance_id} ${step_index}`,
          group: benchmark,
          messages: request.messages,
          step: { conversation: `${benchmark} ${instance_id}`, index: step_index },
          isRouter: false,
        }
        for (const [rank, model] of tierNames.entries())
          yield {
            ...cell,
            model,
            score: Number(rank >= tierNames.indexOf(target_tier)),
            costUsd: (tokens * tierPrices[model].input + usualOutput * tierPrices[model].output) / 1e6,
          }
      }
    },
    cacheDiscount: (row, before, model) => {
      if (!isTier(model)) return 0
      const { input, cachedInput } = tierPrices[model]
      return (Math.min(countTokens(row.messages), countTokens(before.messages)) * (input - cachedInput)) / 1e6
    },
  }),
  layout({
    name: 'RouterArena cached results',
    record: Type.Object({
      global_index: Type.String(),
      question: Type.String(),
      llm_selected: Type.String(),
      evaluation_result: Type.Optional(
        Type.Object({ score: Type.Number(), inference_cost: Type.Union([Type.Number(), Type.Null()]) }),
      ),
    }),
    getSet: dirname,
    *cells(records) {
      for (const { global_index: id, question, llm_selected: model, evaluation_result: result } of records) {
        if (result === undefined) continue
        const cell = { id, group: toGroup(id), messages: user(question), step: null, isRouter: false }
        yield { ...cell, model, score: result.score, costUsd: result.inference_cost }
      }
    },
  }),
  layout({
    name: 'RouterArena predictions',
    record: Type.Object({
      'global index': Type.String(),
      prompt: Type.String(),
      prediction: Type.String(),
      cost: Type.Union([Type.Number(), Type.Null()]),
      accuracy: Type.Union([Type.Number(), Type.Null()]),
      for_optimality: Type.Optional(Type.Boolean()),
    }),
    getSet: dirname,
    *cells(records, { path }) {
      const chosen = new Set(records.flatMap(record => (record.for_optimality === true ? [] : record.prediction)))
      for (const { 'global index': id, prompt, prediction: model, cost, accuracy, for_optimality } of records) {
        if (accuracy === null) continue
        const cell = { id, group: toGroup(id), messages: user(prompt), step: null, score: accuracy, costUsd: cost }
        yield { ...cell, model, isRouter: false }
        // The outcomes of a router with one model are those of the model.
        if (chosen.size > 1 && for_optimality !== true)
          yield { ...cell, model: basename(path, extname(path)), isRouter: true }
      }
    },
  }),
  layout({
    name: 'LLMRouterBench results',
    record: Type.Object({
      records: Type.Array(
        Type.Object({
          index: Type.Union([Type.Integer(), Type.String()]),
          prompt: Type.String(),
          score: Type.Number(),
          cost: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
        }),
      ),
    }),
    // results/bench/<dataset>/<split>/<model>/<timestamp>.json
    getSet: path => dirname(dirname(path)),
    *cells(files, { path }) {
      for (const { index, prompt, score, cost = null } of files.flatMap(({ records }) => records))
        yield {
          ...{
            id: String(index),
            group: basename(dirname(dirname(dirname(path)))),
            messages: user(prompt),
            step: null,
          },
          ...{ model: basename(dirname(path)), isRouter: false, score, costUsd: cost },
        }
    },
  }),
  layout({
    name: 'one object of scores per prompt',
    record: Type.Object({
      prompt: Type.String(),
      scores: Type.Record(Type.String(), Type.Number()),
      costs: Type.Optional(Type.Record(Type.String(), Type.Number())),
      group: Type.Optional(Type.String()),
    }),
    getSet: dirname,
    *cells(records, { prices }) {
      for (const { prompt, scores, costs, group = '' } of records) {
        const cell = { id: prompt, group, messages: user(prompt), step: null, isRouter: false }
        for (const [model, score] of Object.entries(scores))
          yield { ...cell, model, score, costUsd: costs?.[model] ?? estimatedCost(prices, model, prompt) }
      }
    },
  }),
  layout({
    name: 'a weak and a strong model per prompt',
    record: Type.Object({
      prompt: Type.String(),
      ...{ weak: Type.Number(), strong: Type.Number(), group: Type.Optional(Type.String()) },
      ...{ weak_cost_usd: Type.Optional(Type.Number()), strong_cost_usd: Type.Optional(Type.Number()) },
    }),
    getSet: dirname,
    *cells(records, { prices }) {
      for (const { prompt, group = '', ...record } of records) {
        const cell = { id: prompt, group, messages: user(prompt), step: null, isRouter: false }
        for (const model of ['weak', 'strong'] as const)
          yield {
            ...cell,
            model,
            score: record[model],
            costUsd: record[`${model}_cost_usd`] ?? estimatedCost(prices, model, prompt),
          }
      }
    },
  }),
  layout({
    name: 'RouterBench or RouteLLM, one column per model',
    record: Type.Object({ prompt: Type.String() }),
    // Other sets have numbers beside a prompt too, but none of them is a CSV file.
    fits: (record, { path }) => (hasCosts(record) || extname(path) === '.csv') && modelColumns(record).length > 1,
    getSet: dirname,
    *cells(records, { prices }) {
      const models = modelColumns(records[0] ?? {})
      for (const record of records) {
        const columns: Readonly<Record<string, unknown>> = record
        const prompt = parsePythonTexts(record.prompt)?.join('\n') ?? record.prompt
        const cell = {
          id: typeof columns.sample_id === 'string' ? columns.sample_id : record.prompt,
          group: typeof columns.eval_name === 'string' ? columns.eval_name : '',
          ...{ messages: user(prompt), step: null, isRouter: false },
        }
        for (const model of models) {
          const score = asNumber(columns[model])
          const costUsd = asNumber(columns[`${model}${costSuffix}`]) ?? estimatedCost(prices, model, prompt)
          if (score !== null) yield { ...cell, model, score, costUsd }
        }
      }
    },
  }),
]

const hasCosts = (record: Readonly<Record<string, unknown>>) =>
  Object.keys(record).some(name => name.endsWith(costSuffix))

/** Columns with a number or a boolean per model: those with a cost beside them, else all that are no description. */
function modelColumns(record: Readonly<Record<string, unknown>>): string[] {
  const names = Object.keys(record)
  const priced = names.filter(name => names.includes(`${name}${costSuffix}`))
  return priced.length > 0 ? priced : names.filter(name => !metaColumns.has(name) && asNumber(record[name]) !== null)
}

const priceFile = Type.Record(
  Type.String(),
  Type.Object({ input_token_price_per_million: Type.Number(), output_token_price_per_million: Type.Number() }),
)

/** Name of RouterArena's file of prices, which gives costs to sets without. */
const priceFileName = 'model_cost.json'

export type Folder = {
  readonly tables: readonly Table[]
  /** Files with records that no layout describes, or in a form that this program cannot read, each with the reason. */
  readonly skipped: readonly string[]
}

/** Reads all tables under a folder. Throws if a file begins in a layout and does not keep to it. */
export function readTables(folder: string): Folder {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(path => join(folder, path))
    .sort()
  const prices = readPrices(paths.find(path => basename(path) === priceFileName))
  const sets = new Map<string, { readonly layout: Layout; readonly cells: Cell[] }>()
  const skipped: string[] = []
  for (const path of paths) {
    if (basename(path) === priceFileName) continue
    const records = readRecords(path)
    if (records === null) continue
    if (typeof records === 'string') {
      skipped.push(`${relative(folder, path)}: ${records}`)
      continue
    }
    const found = findLayout(records, { path, prices })
    if (found === null) continue
    const name = `${relative(folder, found.layout.getSet(path)) || basename(folder)} (${found.layout.name})`
    const set = sets.get(name) ?? { layout: found.layout, cells: [] }
    for (const cell of found.cells) set.cells.push(cell)
    sets.set(name, set)
  }
  const tables = [...sets].map(([name, { layout, cells }]) => assemble(name, layout, cells))
  return { tables: tables.filter(({ models, rows }) => models.length > 1 && rows.length > 0), skipped }
}

function readPrices(path: string | undefined): Prices {
  if (path === undefined) return {}
  const prices: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (!Value.Check(priceFile, prices)) throw new Error(`${path} is not in the layout of RouterArena's prices.`)
  return Object.fromEntries(
    Object.entries(prices).map(([model, { input_token_price_per_million, output_token_price_per_million }]) => [
      model,
      { input: input_token_price_per_million, output: output_token_price_per_million },
    ]),
  )
}

/** Returns the records of a file; null = not data; a text = why it cannot be read. */
function readRecords(path: string): readonly unknown[] | string | null {
  const text = () => readFileSync(path, 'utf8')
  switch (extname(path)) {
    case '.jsonl':
      return text()
        .split('\n')
        .filter(line => line.trim() !== '')
        .map(line => JSON.parse(line))
    case '.json': {
      const value: unknown = JSON.parse(text())
      return Array.isArray(value) ? value : [value]
    }
    case '.csv':
      return parseCsv(text())
    case '.pkl':
    case '.parquet':
      return 'convert it with pandas: read_pickle or read_parquet, then to_json(path, orient="records", lines=True)'
    default:
      return null
  }
}

function findLayout(records: readonly unknown[], source: Source) {
  for (const layout of layouts) {
    const cells = layout.read(records, source)
    if (cells !== null) return { layout, cells }
  }
  return null
}

/** A model is in the table if it answered at least this share of the prompts. */
const leastAnswered = 0.9

function assemble(name: string, { name: layout, cacheDiscount = null }: Layout, cells: readonly Cell[]): Table {
  const byRow = Map.groupBy(cells, ({ id }) => id)
  const answered = (isRouter: boolean) => {
    const byModel = Map.groupBy(
      cells.filter(cell => cell.isRouter === isRouter),
      ({ model }) => model,
    )
    return [...byModel]
      .filter(([, of]) => new Set(of.map(({ id }) => id)).size >= leastAnswered * byRow.size)
      .map(([model]) => model)
  }
  const [models, routers] = [answered(false), answered(true)]
  // MT-Bench grades from 1 to 10.
  const scale = cells.reduce((most, { score }) => Math.max(most, score), 1)
  const rows = [...byRow].flatMap(([id, of]): Row[] => {
    const outcomes = Object.fromEntries(
      of.map(({ model, score, costUsd }) => [model, { score: score / scale, costUsd }]),
    )
    const first = of[0]
    if (first === undefined || ![...models, ...routers].every(model => Object.hasOwn(outcomes, model))) return []
    const { group, messages, step } = first
    return [{ id, group, messages, step, outcomes }]
  })
  return { name, layout, models, routers, rows, incomplete: byRow.size - rows.length, cacheDiscount }
}
