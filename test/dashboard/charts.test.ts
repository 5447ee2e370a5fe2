import { describe, expect, test } from 'bun:test'
import type { ShownUsage } from '../../src/console/usage/schemas.ts'
import { logShare, roundedTop, toArea, toPath, toRemaining } from '../../src/dashboard/state/chart-paths.ts'
import { type ScoredModel, tellChoice } from '../../src/dashboard/state/choice.ts'
import { rangeBefore, usageQuery } from '../../src/dashboard/state/filters.ts'
import { layoutFlow, toFlow } from '../../src/dashboard/state/flow.ts'
import { formatUsd, projectUse, tellPace } from '../../src/dashboard/state/format.ts'
import { splitSeries } from '../../src/dashboard/state/usage-series.ts'

const sums = {
  requests: 0,
  completed: 0,
  failed: 0,
  input_tokens: 0,
  cached_input_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  total_tokens: 0,
  cost_usd: 0,
  own_key_cost_usd: 0,
  routing_saved_usd: 0,
  cache_saved_usd: 0,
  latency_p50_ms: null,
  latency_p95_ms: null,
  first_token_p50_ms: null,
}
const lines = (requests: number[], completed: number[], failed: number[]) => ({
  requests,
  completed,
  failed,
  total_tokens: requests,
  cost_usd: requests,
  own_key_cost_usd: 0,
  latency_p50_ms: requests,
  latency_p95_ms: requests,
})
const usage: ShownUsage = {
  from: '2026-11-01',
  to: '2026-11-07',
  group_by: 'query_type',
  split_by: 'model',
  rejected: null,
  total: { ...sums, requests: 20, completed: 16, failed: 3 },
  data: [
    { query_type: 'code', ...sums, requests: 12 },
    { query_type: null, ...sums, requests: 8 },
    { query_type: 'math', ...sums },
  ],
  series: [
    { model: 'a/one', ...lines([10, 0, 0], [9, 0, 0], [0, 0, 0]) },
    { model: 'gateway-ai', ...lines([2, 0, 0], [0, 0, 0], [2, 0, 0]) },
  ],
  others: lines([0, 8, 0], [0, 7, 0], [0, 1, 0]),
}

describe('Flow of requests', () => {
  const flow = toFlow(usage)

  test('leaves out nodes without requests and puts the largest first', () => {
    expect(flow.columns.map(nodes => nodes.map(({ name }) => name))).toEqual([
      ['Code', 'Embedding'],
      ['a/one', 'Other models', 'Automatic (no model)'],
      ['Completed', 'Failed or blocked', 'Client disconnected'],
    ])
  })

  test('names only filters that select the requests of a node', () => {
    const filters = flow.columns.flat().map(node => [node.name, node.filters])
    expect(Object.fromEntries(filters)).toEqual({
      Code: { query_type: 'code' },
      Embedding: null,
      'a/one': { model: 'a/one' },
      'Other models': null,
      'Automatic (no model)': { model: 'gateway-ai' },
      Completed: { status: 'completed' },
      'Failed or blocked': { status: 'failed_or_blocked' },
      'Client disconnected': { status: 'client_closed' },
    })
  })

  test('keeps every request: into a model as many as out of it, and all of the total', () => {
    const { nodes, links } = layoutFlow(flow, { fullHeight: 200, leastSpace: 20 })
    for (const column of [0, 1, 2])
      expect(nodes.filter(node => node.column === column).reduce((sum, { value }) => sum + value, 0)).toBe(20)
    for (const node of nodes.filter(({ column }) => column === 1))
      expect(links.filter(({ source }) => source === node).reduce((sum, { value }) => sum + value, 0)).toBe(node.value)
  })

  test('draws nodes and links on one scale, without overlap, inside its height', () => {
    const { nodes, links, height } = layoutFlow(flow, { fullHeight: 200, leastSpace: 20 })
    for (const { value, height: tall } of [...nodes, ...links]) expect(tall).toBeCloseTo(value * 10, 6)
    for (const column of [0, 1, 2]) {
      const inColumn = nodes.filter(node => node.column === column)
      for (const [at, node] of inColumn.entries())
        expect((inColumn[at + 1]?.y ?? height) - node.y).toBeGreaterThanOrEqual(Math.max(20, node.height))
    }
    for (const { source, target, fromY, toY, height: thick } of links) {
      expect(fromY).toBeGreaterThanOrEqual(source.y)
      expect(fromY + thick).toBeLessThanOrEqual(source.y + source.height + 1e-6)
      expect(toY).toBeGreaterThanOrEqual(target.y)
      expect(toY + thick).toBeLessThanOrEqual(target.y + target.height + 1e-6)
    }
  })
})

describe('Areas', () => {
  test('have the full width of their days and end where a day has no value', () => {
    expect(toArea([1, null, 0.5, 0.5], [0, 0, 0.5, 0], 1)).toBe(
      'M0 0L10 0L20 0L20 170L10 170L0 170zM40 85L50 85L70 85L80 85L80 170L70 170L50 85L40 85z',
    )
  })

  test('show shares of each day that add up to 1, and none on a day without requests', () => {
    const shares = splitSeries(
      {
        ...usage,
        data: [
          { day: '2026-11-01', ...sums, requests: 12 },
          { day: '2026-11-02', ...sums, requests: 8 },
          { day: '2026-11-03', ...sums },
        ],
      },
      'share',
    )
    const ofDay = (day: number) => shares.map(({ values }) => values[day] ?? null)
    expect(ofDay(0)).toEqual([10 / 12, 2 / 12, 0])
    expect(ofDay(1)).toEqual([0, 0, 1])
    expect(ofDay(2)).toEqual([null, null, null])
    expect(shares.map(({ whole }) => whole)).toEqual([0.5, 0.1, 0.4])
  })
})

test('toPath: interrupts a line at a day without a value, and shows a single day as a dash', () => {
  expect(toPath([1, 0.5, null, 1], 1)).toBe('M10 0L30 85M63.5 0h13')
})

test.each([
  [0.7, 0.8],
  [4, 4],
  [43, 60],
  [101, 200],
])('roundedTop: ends an axis for %d at %d', (value, top) => {
  expect(roundedTop(value)).toBeCloseTo(top, 9)
})

test.each([
  [1, [1, 10, 100], 0],
  [10, [1, 10, 100], 0.5],
  [100, [1, 10, 100], 1],
  [0, [0, 5], 0],
  [5, [5], 1],
])('logShare: places %d among %j at %d', (value, values, share) => {
  expect(logShare(value, values)).toBeCloseTo(share, 9)
})

describe('tellPace', () => {
  const noon = Date.UTC(2026, 10, 16, 12)
  test.each([
    ['a limit that will be reached', [60, 100, 'day', noon], 'Reached Nov 16, 2026, 20:00 UTC at this pace.'],
    ['a month', [50, 60, 'month', Date.UTC(2026, 10, 16)], 'Reached Nov 19, 2026, 00:00 UTC at this pace.'],
    ['a limit that lasts', [20, 100, 'day', noon], '$40.00 by the end of the day at this pace.'],
    ['no limit', [20, null, 'day', noon], '$40.00 by the end of the day at this pace.'],
    ['a limit that is reached', [100, 100, 'day', noon], 'Reached for this day.'],
    ['no use', [0, 100, 'day', noon], ''],
    ['the first minutes of a period', [1, 100, 'day', Date.UTC(2026, 10, 16, 0, 29)], ''],
  ] as const)('tells %s', (_, [used, limit, period, now], told) => {
    expect(tellPace(used, limit, period, formatUsd, now)).toBe(told)
  })
})

test('toRemaining: subtracts each day from the limit and ends at 0', () => {
  expect(toRemaining([1, 0, 2.5, 4], 6)).toEqual([5, 5, 2.5, 0])
})

test('projectUse: extends the use of a period to its end, and says nothing in its first minutes', () => {
  expect(projectUse(20, 'day', Date.UTC(2026, 10, 16, 12))).toBe(40)
  expect(projectUse(10, 'month', Date.UTC(2026, 10, 16))).toBe(20)
  expect(projectUse(1, 'day', Date.UTC(2026, 10, 16, 0, 29))).toBeNull()
  expect(projectUse(0, 'day', Date.UTC(2026, 10, 16, 12))).toBeNull()
})

describe('tellChoice', () => {
  const candidate = (
    model: string,
    parts: Partial<NonNullable<ScoredModel['parts']>>,
    more: Partial<ScoredModel> = {},
  ) => ({
    model,
    score: 0.5,
    parts: { quality: 0.5, cost: 0.1, speed: 0.1, reliability: 0, adjustment: 0, ...parts },
    place: 'score' as const,
    health: 'healthy' as const,
    reasons: ['ranked by its score'],
    ...more,
  })
  const best = 'it has the highest score of the models that may be called now'
  test.each([
    ['quality', candidate('a/one', { quality: 0.7 }), `Chosen because ${best}, ahead of b/two mostly by its quality.`],
    [
      'cost',
      candidate('a/one', { cost: 0.3, quality: 0.6 }),
      `Chosen because ${best}, ahead of b/two mostly by its cost.`,
    ],
    ['no advantage', candidate('a/one', { quality: 0.5 }), `Chosen because ${best}.`],
    [
      'a named model',
      candidate('a/one', {}, { parts: null, place: 'requested' }),
      'Chosen because the request names it.',
    ],
    [
      'a kept conversation',
      candidate('a/one', {}, { place: 'cached', reasons: ['ahead of its score'] }),
      'Chosen because it is ahead of its score.',
    ],
  ])('tells in one sentence why a model came first: %s', (_, first, told) => {
    expect(tellChoice([first, candidate('b/two', {})], 'a/one')).toBe(told)
  })

  test('tells which model served in place of the first', () => {
    expect(tellChoice([candidate('a/one', {})], 'b/two')).toBe(
      `a/one was chosen because ${best}. b/two served after it failed or was skipped.`,
    )
    expect(tellChoice([], 'b/two')).toBe('')
  })
})

describe('rangeBefore', () => {
  const now = Date.UTC(2026, 10, 23, 11, 18)
  test.each([
    ['days', {}, { from: '2026-09-25', to: '2026-10-24' }],
    ['hours', { range: '1h' }, { from: '2026-11-23T09:18:00Z', to: '2026-11-23T10:18:00Z' }],
    [
      'a chosen range',
      { from: '2026-11-01T07:00', to: '2026-11-01T09:00', model: 'a/b' },
      { from: '2026-11-01T05:00:00Z', to: '2026-11-01T07:00:00Z', model: 'a/b' },
    ],
  ])('has the length of the range and ends where it begins: %s', (_, filters, query) => {
    expect(rangeBefore(usageQuery(filters, { now }))).toEqual(query)
  })
})
