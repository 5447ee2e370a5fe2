import { describe, expect, test } from 'bun:test'
import {
  type CellRow,
  findBestModel,
  getInsights,
  getRecommendations,
  highestConfidence,
} from '../../src/learning/insights.ts'
import { addEntry, emptyCell } from '../../src/learning/learning-cell.ts'
import { entry } from '../core/entries.ts'

const at = Date.UTC(2026, 4, 5, 12)

function cell(model: string, count: number, quality: number, costMicrocents: number, queryType = 'code'): CellRow {
  let learnt = emptyCell
  for (let n = 0; n < count; n++)
    learnt = addEntry(
      learnt,
      entry({ at_ms: at, quality, billed_microcents: costMicrocents, input_tokens: 10, output_tokens: 100 }),
    )
  return { ...learnt, model, queryType }
}

const insights = (...cells: CellRow[]) => getInsights(cells, model => (model === 'gone' ? null : 0.7), at)

describe('recommendationsOf', () => {
  test('names a model with higher quality and the expected change', () => {
    const [found, ...more] = getRecommendations(insights(cell('used', 100, 0.4, 1_000), cell('other', 60, 0.9, 1_500)))
    expect(more).toEqual([])
    expect(found).toMatchObject({ query_type: 'code', model: 'other', expected_cost_change_pct: 50 })
    expect(found?.expected_quality_change).toBeGreaterThan(0.3)
    expect(found?.reason).toContain('used')
  })

  test('names a model with equal quality at lower cost', () => {
    const found = getRecommendations(insights(cell('used', 100, 0.75, 1_000), cell('other', 60, 0.75, 400)))
    expect(found).toMatchObject([{ model: 'other', expected_cost_change_pct: -60 }])
  })

  test('returns nothing for little evidence, a worse model, no saving, or no data', () => {
    for (const cells of [
      [],
      [cell('used', 100, 0.75, 1_000)],
      [cell('used', 100, 0.4, 1_000), cell('other', 9, 1, 1_000)],
      [cell('used', 9, 0.4, 1_000), cell('other', 8, 1, 10)],
      [cell('used', 100, 0.9, 1_000), cell('other', 60, 0.3, 10)],
      [cell('used', 100, 0.75, 1_000), cell('other', 60, 0.75, 900)],
    ])
      expect(getRecommendations(insights(...cells))).toEqual([])
  })
})

test('insightsOf: orders rows by query type and requests, and includes models missing in the catalog', () => {
  const rows = insights(cell('a', 20, 0.5, 1), cell('gone', 60, 1, 1), cell('b', 30, 0.9, 1, 'math'))
  expect(rows.map(({ queryType, model }) => `${queryType} ${model}`)).toEqual(['code gone', 'code a', 'math b'])
  expect(rows[0]).toMatchObject({ bias: 0, confidence: 'established' })
})

test('highestConfidence: returns the most advanced cell, and findBestModel a model past its cold start', () => {
  expect(highestConfidence([])).toBe('cold_start')
  const rows = insights(cell('a', 9, 1, 1), cell('b', 12, 0.6, 1), cell('c', 12, 0.8, 1))
  expect(highestConfidence(rows)).toBe('warm_up')
  expect(findBestModel(rows)).toBe('c')
  expect(findBestModel(insights(cell('a', 9, 1, 1)))).toBeNull()
})
