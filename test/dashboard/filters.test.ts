import { describe, expect, test } from 'bun:test'
import { RequestError, toReadiness } from '../../src/dashboard/state/api-error.ts'
import {
  coveredFilters,
  failedOnly,
  filtersFor,
  hrefToLog,
  logQuery,
  rangeTitle,
  toFilters,
  toRangeParam,
  toUnitFilter,
  usageQuery,
} from '../../src/dashboard/state/filters.ts'
import { accountCreatedAt, moveToDay, openedAt } from '../../src/dashboard/state/href.ts'

const now = Date.UTC(2026, 10, 23, 11, 18)

describe('Dashboard filters', () => {
  test('read known parameters only', () => {
    expect(toFilters({ status: 'failed', model: '', open: 'x' })).toEqual({ status: 'failed' })
  })

  test.each([
    [{}, { from: '2026-10-25T00:00:00Z' }],
    [{ range: '1h' }, { from: '2026-11-23T10:18:00Z' }],
    [{ range: '24h' }, { from: '2026-11-22T11:18:00Z' }],
    [{ range: 'month' }, { from: '2026-11-01T00:00:00Z' }],
    [{ range: 'last-month' }, { from: '2026-10-01T00:00:00Z', to: '2026-11-01T00:00:00Z' }],
    [
      { from: '2026-11-01T07:00', to: '2026-11-01T09:00' },
      { from: '2026-11-01T07:00:00Z', to: '2026-11-01T09:00:00Z' },
    ],
    [
      { range: '7d', key: 'key_1', tag: 'team=a', metadata: 'team=a=b' },
      { from: '2026-11-17T00:00:00Z', key: 'key_1', tag: 'team=a', 'metadata[team]': 'a=b' },
    ],
  ])('become parameters of the log: %j', (filters, query) => {
    expect(logQuery(filters, now)).toEqual(query)
  })

  test.each([
    // Whole days by model and key come from the daily totals.
    [{}, { from: '2026-10-25', to: '2026-11-23' }, 'day', null],
    [{ range: '90d', model: 'a/b' }, { from: '2026-08-26', to: '2026-11-23', model: 'a/b' }, 'day', null],
    [{ range: '24h' }, { from: '2026-11-22T11:18:00Z', to: '2026-11-23T11:18:00Z' }, 'hour', null],
    [{ range: '1h' }, { from: '2026-11-23T10:18:00Z', to: '2026-11-23T11:18:00Z' }, 'minute', null],
    [{ range: 'month' }, { from: '2026-11-01', to: '2026-11-23' }, 'day', null],
    [{ range: 'last-month' }, { from: '2026-10-01', to: '2026-10-31' }, 'day', null],
    [
      { tag: 'team', member: 'usr_1' },
      { from: '2026-10-25', to: '2026-11-23', tag: 'team', member: 'usr_1' },
      'day',
      null,
    ],
    // Everything else sums the log over fewer days.
    [{ dialect: 'messages' }, { from: '2026-11-17', to: '2026-11-23', dialect: 'messages' }, 'day', 7],
    [{ status: 'failed', range: '90d' }, { from: '2026-10-25', to: '2026-11-23', status: 'failed' }, 'day', 30],
    [
      { error_code: 'upstream_failed' },
      { from: '2026-10-25', to: '2026-11-23', error_code: 'upstream_failed' },
      'day',
      null,
    ],
  ] as const)('become parameters of totals: %j', (filters, query, unit, shortenedTo) => {
    expect(usageQuery(filters, { now })).toEqual({ query, unit, shortenedTo })
  })

  test.each([
    // A project and a tag of the same request are only in the log.
    ['a tag in a project', { tag: 'team=a', project_id: 'prj_1' }, {}, 7],
    ['totals by tag in a project', { project_id: 'prj_1' }, { groupBy: 'tag' }, 7],
    ['a chart by tag in a project', { project_id: 'prj_1' }, { splitBy: 'tag' }, 7],
    ['a tag, seen through projects', { tag: 'team' }, { isThroughProjects: true }, 7],
    ['totals by tag, seen through projects', {}, { groupBy: 'tag', isThroughProjects: true }, 7],
    ['a chart of a tag by project', { tag: 'team' }, { splitBy: 'project' }, 7],
    ['a chart by project', {}, { splitBy: 'project' }, null],
    ['a project without tags', { project_id: 'prj_1' }, { isThroughProjects: true }, null],
    ['totals by tag of the account', {}, { groupBy: 'tag' }, null],
  ] as const)('shorten the range of %s', (_, filters, options, shortenedTo) => {
    expect(usageQuery(filters, { now, ...options }).shortenedTo).toBe(shortenedTo)
  })

  test('keep the status of rejected requests on the log only', () => {
    const rejected = { range: '7d', status: 'rejected' }
    expect(filtersFor('requests', rejected)).toEqual(rejected)
    expect(filtersFor('keys', rejected)).toEqual({ range: '7d' })
    expect(filtersFor('', { status: 'failed' })).toEqual({ status: 'failed' })
  })

  test('shorten the range of totals that are split by dialect', () => {
    expect(usageQuery({}, { now, splitBy: 'dialect' })).toMatchObject({ query: { from: '2026-11-17' }, shortenedTo: 7 })
    expect(usageQuery({}, { now, splitBy: 'member' }).shortenedTo).toBeNull()
  })

  test('link a column of a chart to its requests', () => {
    const filters = { range: '7d', model: 'a/b' }
    expect(hrefToLog(filters, toUnitFilter('2026-11-20'), now)).toBe(
      '#/requests?model=a%2Fb&from=2026-11-20T00%3A00&to=2026-11-21T00%3A00',
    )
    expect(logQuery({ ...filters, ...toUnitFilter('2026-11-03T07') }, now)).toEqual({
      model: 'a/b',
      from: '2026-11-03T07:00:00Z',
      to: '2026-11-03T08:00:00Z',
    })
  })

  test('link a span of columns, of days, hours or minutes', () => {
    expect([
      toUnitFilter('2026-11-20', '2026-11-22'),
      toUnitFilter('2026-11-20T07', '2026-11-20T08'),
      toUnitFilter('2026-11-20T07:12', '2026-11-20T07:13'),
    ]).toEqual([
      { range: '', from: '2026-11-20T00:00', to: '2026-11-23T00:00' },
      { range: '', from: '2026-11-20T07:00', to: '2026-11-20T09:00' },
      { range: '', from: '2026-11-20T07:12', to: '2026-11-20T07:14' },
    ])
  })

  test.each([
    [toUnitFilter('2026-11-20T09'), '2026-11-20T09%3A00', '2026-11-20T09%3A30'],
    [toUnitFilter('2026-11-20T07'), '2026-11-20T07%3A30', '2026-11-20T08%3A00'],
    [toUnitFilter('2026-11-20'), '2026-11-20T07%3A30', '2026-11-20T09%3A30'],
  ])('link a column to its part of a custom range: %j', (unit, from, to) => {
    const filters = { from: '2026-11-20T07:30', to: '2026-11-20T09:30' }
    expect(hrefToLog(filters, unit, now)).toBe(`#/requests?from=${from}&to=${to}`)
  })

  test.each([
    ['failed', 'failed'],
    ['blocked', 'blocked'],
    ['completed', 'failed_or_blocked'],
    ['', 'failed_or_blocked'],
  ])('keep a status that is narrower than failed or blocked: %j', (status, linked) => {
    expect(hrefToLog({ status }, failedOnly, now)).toBe(`#/requests?status=${linked}`)
  })

  test('take the last month of January from the year before', () => {
    expect(logQuery({ range: 'last-month' }, Date.UTC(2027, 0, 1))).toEqual({
      from: '2026-12-01T00:00:00Z',
      to: '2027-01-01T00:00:00Z',
    })
  })

  test('leave the end of the log open without a chosen one', () => {
    expect(logQuery({ from: '2026-11-20T07:30' }, now)).toEqual({ from: '2026-11-20T07:30:00Z' })
    expect(usageQuery({ from: '2026-11-20T07:30' }, { now }).query).toEqual({
      from: '2026-11-20T07:30:00Z',
      to: '2026-11-23T12:00:00Z',
    })
  })

  test.each([
    [{ dialect: 'messages' }, { dialect: 'messages', range: '', from: '2026-11-17T00:00' }],
    [
      { from: '2026-11-01T07:30', to: '2026-11-20T09:30' },
      { range: '', from: '2026-11-14T00:00', to: '2026-11-20T09:30' },
    ],
    [{ range: '90d' }, { range: '90d' }],
  ])('link figures of a shortened range to the requests that they count: %j', (filters, covered) => {
    expect(coveredFilters(filters, usageQuery(filters, { now }))).toEqual(covered)
  })

  test('move on to the next UTC day only', () => {
    const before = openedAt.value
    openedAt.value = now
    moveToDay(now + 3_600_000)
    expect(openedAt.value).toBe(now)
    moveToDay(now + 86_400_000)
    expect(openedAt.value).toBe(now + 86_400_000)
    openedAt.value = before
  })

  test.each([
    [503, 'not_ready'],
    [502, 'unreachable'],
    [500, 'unreachable'],
    [0, 'unreachable'],
  ] as const)('read status %d of the readiness as %s', (status, readiness) => {
    const error = new RequestError({ status, code: 'service_unavailable', message: 'No.' })
    expect(toReadiness(error)).toBe(readiness)
  })

  test('link the first column of a range to its part of the hour', () => {
    expect(hrefToLog({ range: '1h' }, toUnitFilter('2026-11-23T10'), now)).toBe(
      '#/requests?from=2026-11-23T10%3A18&to=2026-11-23T11%3A00',
    )
    expect(hrefToLog({ range: '1h' }, toUnitFilter('2026-11-23T11'), now)).toBe(
      '#/requests?from=2026-11-23T11%3A00&to=2026-11-23T12%3A00',
    )
  })
})

describe('Default range', () => {
  const dayMs = 86_400_000
  test.each([
    [dayMs - 1, 'Last 24 hours', ['', '30d']],
    [dayMs, 'Last 30 days', ['24h', '']],
  ] as const)('follows the age of the account: %d ms', (age, title, params) => {
    accountCreatedAt.value = openedAt.value - age
    try {
      expect(rangeTitle({})).toBe(title)
      expect(rangeTitle({ range: '7d' })).toBe('Last 7 days')
      // The default has no parameter, and the other one has: both can be chosen.
      expect(['24h', '30d'].map(toRangeParam)).toEqual([...params])
    } finally {
      accountCreatedAt.value = 0
    }
  })
})
