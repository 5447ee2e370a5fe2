import { expect, test } from 'bun:test'
import { latencyQuantile } from '../../src/core/usage/latency-histogram.ts'
import { getSums, toCopyLines } from '../../src/ledger/store-usage.ts'
import { usageRecord } from '../database/support.ts'

const at = Date.UTC(2026, 4, 5, 12)
const placed = (changes: Parameters<typeof usageRecord>[0]) => ({ record: usageRecord(changes), at, epoch: null })

test('toCopyLines: escapes what the text format of COPY reads otherwise, and orders rows', () => {
  const lines = toCopyLines([
    placed({ request_id: 'b', metadata: { note: 'tab\t, line\n and \\N' } }),
    placed({ request_id: 'a', error_code: 'a\tb\\' }),
  ]).split('\n')
  expect(lines.map(line => line[0])).toEqual(['a', 'b', undefined])
  const widths = lines.slice(0, 2).map(line => line.split('\t').length)
  expect(new Set(widths).size).toBe(1)
  expect(lines[0]).toContain('a\\tb\\\\')
  expect(lines[1]).toContain('{"note":"tab\\\\t, line\\\\n and \\\\\\\\N"}')
})

test('getSums: adds up each key, model and tag, counts latencies of completed requests only', () => {
  const late = { ...placed({ request_id: 'd', shortfall_microcents: 9 }), at: at + 86_400_000 }
  const { daily, tagged } = getSums([
    placed({ request_id: 'a', billed_microcents: 5, latency_ms: 100, tags: { team: 'x', app: 'y' } }),
    placed({ request_id: 'b', billed_microcents: 7, latency_ms: 100, shortfall_microcents: 4 }),
    placed({ request_id: 'c', status: 'failed', billed_microcents: 1, latency_ms: 9_000, model: '' }),
    late,
  ])
  expect(tagged.map(({ tag, requests }) => [tag, requests])).toEqual([
    ['app=y', 1],
    ['team=x', 1],
  ])
  expect(daily).toMatchObject([
    { day: '2026-05-05', model: '', requests: 1, completed: 0, failed: 1, billed_microcents: 1 },
    { day: '2026-05-05', requests: 2, completed: 2, failed: 0, billed_microcents: 12 },
    { day: '2026-05-06', requests: 1 },
  ])
  expect(latencyQuantile(daily[0]?.latency ?? [], 0.5)).toBeNull()
  expect(daily[1]?.latency.reduce((sum, count) => sum + count, 0)).toBe(2)
  expect(latencyQuantile(daily[1]?.latency ?? [], 0.01)).toBeGreaterThanOrEqual(100)
})
