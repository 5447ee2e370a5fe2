/** Small files in the layouts that the sets are published in. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { evaluate } from './evaluation.ts'
import { type Folder, readTables, type Table } from './tables.ts'

function inFolder(files: Readonly<Record<string, string>>): Folder {
  const folder = mkdtempSync(join(tmpdir(), 'routing-tables-'))
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder, dirname(path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    return readTables(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const lines = (rows: readonly unknown[]) => rows.map(row => JSON.stringify(row)).join('\n')

function onlyTable({ tables }: Folder): Table {
  const [table, ...others] = tables
  if (table === undefined || others.length > 0) throw new Error(`${tables.length} tables`)
  return table
}

const getOutcomes = ({ rows }: Table) => Object.fromEntries(rows.map(({ id, outcomes }) => [id, outcomes]))
const getText = ({ rows }: Table, id: string) => {
  const message = rows.find(row => row.id === id)?.messages.at(-1)
  const part = message?.role === 'user' ? message.content[0] : undefined
  return part?.type === 'text' ? part.text : null
}

test('tables: RouterBench as CSV: reads scores, costs and prompts in Python lists', () => {
  const table = onlyTable(
    inFolder({
      'bench/0shot.csv': [
        'sample_id,prompt,eval_name,small,big,small|model_response,big|model_response,small|total_cost,big|total_cost,oracle_model_to_route_to',
        `a.1,"['Say ""hi"".\\nThen stop. It\\'s late.']",easy,1.0,1.0,['hi'],['hi'],1e-05,0.0002,small`,
        `a.2,"[""Who's next?"", 'Second turn']",hard,0.0,0.5,['?'],['?'],2e-05,0.0004,big`,
      ].join('\n'),
    }),
  )
  expect(table.models).toEqual(['small', 'big'])
  expect(getOutcomes(table)).toEqual({
    'a.1': { small: { score: 1, costUsd: 1e-5 }, big: { score: 1, costUsd: 2e-4 } },
    'a.2': { small: { score: 0, costUsd: 2e-5 }, big: { score: 0.5, costUsd: 4e-4 } },
  })
  expect(getText(table, 'a.1')).toBe('Say "hi".\nThen stop. It\'s late.')
  expect(getText(table, 'a.2')).toBe("Who's next?\nSecond turn")
})

test('tables: RouteLLM as CSV: reads booleans, and takes prices from model_cost.json', () => {
  const table = onlyTable(
    inFolder({
      'mmlu/law.csv': 'prompt,weak-1,strong-1,weak-1_response\n"A, or B?\nAnswer:",False,True,"A, surely"\n',
      'mmlu/art.csv': 'prompt,weak-1,strong-1,weak-1_response\nC or D?,True,True,C\n',
      'model_cost.json': JSON.stringify({
        'weak-1': { input_token_price_per_million: 1, output_token_price_per_million: 2 },
      }),
    }),
  )
  expect(table.rows).toHaveLength(2)
  const [row] = table.rows.filter(({ id }) => id.startsWith('A'))
  expect(row?.outcomes['strong-1']).toEqual({ score: 1, costUsd: null })
  expect(row?.outcomes['weak-1']?.score).toBe(0)
  // 16 characters are 4 tokens, and an output has 200.
  expect(row?.outcomes['weak-1']?.costUsd).toBeCloseTo((4 + 2 * 200) / 1e6, 12)
})

const graded = (id: string, model: string, score: number, cost: number) => ({
  ...{ global_index: id, question: `Question ${id}`, llm_selected: model },
  evaluation_result: { score, inference_cost: cost, metric: 'mcq_accuracy' },
})

test('tables: RouterArena cached results: joins one file per model, without ungraded prompts', () => {
  const { evaluation_result: _, ...ungraded } = graded('MMLU_2', 'b', 0, 0)
  const table = onlyTable(
    inFolder({
      'cached_results/a.jsonl': lines(Array.from({ length: 20 }, (_item, at) => graded(`MMLU_${at}`, 'a', 1, 0.001))),
      'cached_results/b.jsonl': lines([
        ...Array.from({ length: 20 }, (_item, at) => at).flatMap(at =>
          at === 2 ? ungraded : graded(`MMLU_${at}`, 'b', 0, 0.002),
        ),
      ]),
    }),
  )
  expect(table.models).toEqual(['a', 'b'])
  expect(table.rows.map(({ id }) => id)).not.toContain('MMLU_2')
  expect({ rows: table.rows.length, incomplete: table.incomplete }).toEqual({ rows: 19, incomplete: 1 })
  expect(table.rows[0]).toMatchObject({ group: 'MMLU', outcomes: { b: { score: 0, costUsd: 0.002 } } })
})

test('tables: RouterArena predictions: a file with several models is a router, one with a single model is that model', () => {
  const row = (id: string, prediction: string, accuracy: number) => ({
    ...{ 'global index': id, prompt: `Question ${id}`, prediction, cost: 0.001, accuracy, generated_result: {} },
  })
  const ids = ['AIME_1', 'AIME_2']
  const table = onlyTable(
    inFolder({
      'predictions/solo-a.json': JSON.stringify(ids.map(id => row(id, 'a', 1))),
      'predictions/solo-b.json': JSON.stringify(ids.map(id => row(id, 'b', 0))),
      'predictions/smart.json': JSON.stringify([row('AIME_1', 'a', 1), row('AIME_2', 'b', 0)]),
    }),
  )
  expect({ models: table.models.toSorted(), routers: table.routers }).toEqual({
    models: ['a', 'b'],
    routers: ['smart'],
  })
  expect(evaluate(table, () => false).lines.find(({ kind }) => kind === 'router')).toMatchObject({
    name: 'smart',
    score: 0.5,
  })
})

test('tables: LLMRouterBench results: takes the data set and the model from the path', () => {
  const file = (score: number, cost: number) =>
    JSON.stringify({ performance: 1, records: [{ index: 1, prompt: 'Count.', score, cost, ground_truth: '4' }] })
  const table = onlyTable(
    inFolder({
      'results/bench/aime/test/model-a/20260101.json': file(0, 0.1),
      'results/bench/aime/test/model-a/20260201.json': file(1, 0.2),
      'results/bench/aime/test/model-b/20260101.json': file(0, 0.3),
    }),
  )
  expect(table.rows[0]).toMatchObject({ group: 'aime' })
  expect(getOutcomes(table)).toEqual({
    '1': { 'model-a': { score: 1, costUsd: 0.2 }, 'model-b': { score: 0, costUsd: 0.3 } },
  })
})

const step = (index: number, tier: string, turns: number) => ({
  ...{
    id: `x_${index}`,
    benchmark: 'swebench',
    instance_id: 'x',
    step_index: index,
    total_steps: 2,
    target_tier: tier,
  },
  messages: JSON.stringify(
    Array.from({ length: turns }, (_, at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: 'w'.repeat(4_000),
    })),
  ),
})

test('tables: TwinRouterBench: a tier solves a step from its target on, and staying with it reads the prompt cache', () => {
  const table = onlyTable(
    inFolder({ 'static/question_bank.jsonl': lines([step(1, 'low', 1), step(2, 'mid_high', 3)]) }),
  )
  expect(table.models).toEqual(['low', 'mid', 'mid_high', 'high'])
  const evaluation = evaluate(table, () => false)
  const high = evaluation.lines.find(({ name }) => name === 'high')
  const low = evaluation.lines.find(({ name }) => name === 'low')
  expect({ high: high?.score, low: low?.score, whole: low?.conversations }).toEqual({ high: 1, low: 0.5, whole: 0 })
  // 1,000 tokens, then 3,000 of which 1,000 are cached, and two outputs of 200.
  const expected = (1_000 * 5 + 2_000 * 5 + 1_000 * 0.5 + 400 * 25) / 1e6
  expect(high?.costPer1000).toBeCloseTo(500 * expected, 9)
  expect({ conversations: evaluation.conversations, changes: high?.changes }).toEqual({ conversations: 1, changes: 0 })
})

test('tables: grades from 1 to 10 become shares of the best grade', () => {
  const table = onlyTable(
    inFolder({
      'mt/data.jsonl': lines([{ prompt: 'Write.', weak: 5, strong: 10, group: 'writing', turn2: 'Again.' }]),
    }),
  )
  expect(getOutcomes(table)).toEqual({
    'Write.': { weak: { score: 0.5, costUsd: null }, strong: { score: 1, costUsd: null } },
  })
})

test('tables: name files in forms that are not read, and fail on a file that leaves its layout', () => {
  const other = {
    'routerbench_0shot.pkl': 'x',
    'notes.txt': 'x',
    'set.jsonl': lines([{ prompt: 'a', id: 1, needs: true }]),
  }
  expect(inFolder(other)).toEqual({
    tables: [],
    skipped: [expect.stringContaining('routerbench_0shot.pkl: convert it')],
  })
  const broken = [{ prompt: 'a', scores: { x: 1, y: 0 } }, { prompt: 'b' }]
  expect(() => inFolder({ 'set/data.jsonl': lines(broken) })).toThrow('record 2 is not in the layout of the first')
})
