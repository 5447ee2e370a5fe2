import { describe, expect, test } from 'bun:test'
import { arenaScore, type Evaluation, evaluate } from './evaluation.ts'
import type { Row, Table } from './tables.ts'

type Outcomes = Readonly<Record<string, readonly [score: number, costUsd: number | null]>>

function toTable(rows: readonly Outcomes[]): Table {
  const models = Object.keys(rows[0] ?? {})
  return {
    ...{ name: 'set', layout: 'test', models, routers: [], incomplete: 0, cacheDiscount: null },
    rows: rows.map(
      (outcomes, at): Row => ({
        ...{ id: `prompt ${at}`, group: '', step: null },
        messages: [{ role: 'user', content: [{ type: 'text', text: texts[at % 2] ?? '' }], name: null }],
        outcomes: Object.fromEntries(
          Object.entries(outcomes).map(([model, [score, costUsd]]) => [model, { score, costUsd }]),
        ),
      }),
    ),
  }
}

const texts = [
  'hi',
  'Prove that a distributed lock service with fencing tokens is safe under partitions, step by step.',
]
const findLine = ({ lines }: Evaluation, name: string) => lines.find(line => line.name === name)
const repeated = (...rows: readonly Outcomes[]) => Array.from({ length: 40 }, (_, at) => rows[at % rows.length] ?? {})

describe('evaluate', () => {
  test('counts score, cost and cost per solved task of single models, chance and hindsight', () => {
    const evaluation = evaluate(
      toTable(repeated({ cheap: [1, 0.001], expensive: [1, 0.01] }, { cheap: [0, 0.001], expensive: [1, 0.01] })),
      () => false,
    )
    const near = (figure: number) => expect.closeTo(figure, 9)
    const cheap = { score: 0.5, costPer1000: near(1), costPerSolved: near(0.002) }
    expect(findLine(evaluation, 'cheap')).toMatchObject(cheap)
    expect(findLine(evaluation, 'expensive')).toMatchObject({ score: 1, costPer1000: near(10) })
    expect(findLine(evaluation, 'random')).toMatchObject({ score: 0.75, costPer1000: near(5.5) })
    expect(findLine(evaluation, 'oracle')).toMatchObject({ score: 1, costPer1000: near(5.5) })
  })

  test('sends easy prompts to the cheap model and hard ones to the strong model when only those differ', () => {
    const evaluation = evaluate(
      toTable(repeated({ cheap: [1, 0.0001], strong: [1, 0.01] }, { cheap: [0, 0.0001], strong: [1, 0.01] })),
      () => false,
    )
    expect(findLine(evaluation, 'gateway-ai')).toMatchObject({ score: 1 })
    expect(findLine(evaluation, 'gateway-ai')?.costPer1000).toBeCloseTo(5.05, 6)
    expect(evaluation.beatenBy).toBeNull()
    expect(evaluation.apgr.cheap).toBeCloseTo(0.75, 6)
  })

  test('names the single model that costs no more and scores higher, when the levels mislead', () => {
    const evaluation = evaluate(
      toTable(repeated({ cheap: [0.2, 0.0001], strong: [1, 0.01] }, { cheap: [0.9, 0.0001], strong: [0.6, 0.01] })),
      () => false,
    )
    expect(findLine(evaluation, 'gateway-ai')?.score).toBeCloseTo(0.4, 6)
    expect(evaluation.beatenBy).toBe('cheap')
  })

  test('leaves its own line out when the set has no costs', () => {
    const evaluation = evaluate(toTable(repeated({ weak: [0, null], strong: [1, null] })), () => false)
    expect(findLine(evaluation, 'gateway-ai')).toBeUndefined()
    expect(findLine(evaluation, 'strong')).toMatchObject({ costPer1000: null, arena: null })
  })

  test('counts prompts from which the weights learned', () => {
    const evaluation = evaluate(toTable(repeated({ a: [0, 1], b: [1, 2] })), text => text === 'hi')
    expect({ learned: evaluation.learned, prompts: evaluation.prompts }).toEqual({ learned: 20, prompts: 40 })
  })
})

test('arenaScore: agrees with the published board', () => {
  // RouterArena's README (2026-06): accuracy 60.83 at 4.10 USD per 1,000 is 57.29; 73.96 at 10.02 is 64.32.
  expect(arenaScore(4.1, 0.6083)).toBeCloseTo(57.29, 1)
  expect(arenaScore(10.02, 0.7396)).toBeCloseTo(64.32, 1)
})
