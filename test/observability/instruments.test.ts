import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type Axis,
  createCounter,
  createHistogram,
  exposition,
  mergeWorkers,
} from '../../src/observability/instruments.ts'
import { scrape } from '../harness/prometheus.ts'

const colours = ['red', 'green', 'blue'].map(colour => ({ colour }))
const sizes = ['small', 'large'].map(size => ({ size }))

test('counter: keeps every cell separate for any number of axes', () => {
  const axes: Axis[] = [colours, sizes, [{ other: 'one' }, { other: 'two' }], [{ last: 'a' }, { last: 'b' }, {}]]
  const counter = createCounter({ name: 'things_total', help: 'Things.', axes })
  const expected = new Map<string, number>()
  for (let place = 0; place < 3 * 2 * 2 * 3; place++) {
    const places = [Math.floor(place / 12), Math.floor(place / 6) % 2, Math.floor(place / 3) % 2, place % 3] as const
    counter.add(place + 1, ...places)
    expected.set(JSON.stringify(Object.assign({}, ...places.map((at, axis) => axes[axis]?.[at]))), place + 1)
  }
  const family = counter.family()
  if (family.kind === 'histogram') throw new Error('a counter is no histogram')
  expect(new Map(family.samples.map(({ labels, value }) => [JSON.stringify(labels), value]))).toEqual(expected)
})

test('counter: omits cells with 0 unless requested', () => {
  for (const showsZeros of [true, false]) {
    const counter = createCounter({ name: 'things_total', help: 'Things.', axes: [colours], showsZeros })
    counter.add(2, 1)
    expect(scrape(exposition([counter.family()])).values.size).toBe(showsZeros ? 3 : 1)
  }
})

test('histogram: returns cumulative counts, number and sum of any values', () => {
  const bounds = [0.001, 0.5, 1, 20]
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.double({ min: 0, max: 30, noNaN: true }), fc.constantFrom(...bounds))), values => {
      const histogram = createHistogram({ name: 'took_seconds', help: 'Time.', axes: [colours], bounds })
      for (const value of values) histogram.observe(value, 2)
      const { sum } = scrape(exposition([histogram.family()]))
      for (const bound of bounds)
        expect(sum('took_seconds_bucket', { colour: 'blue', le: String(bound) })).toBe(
          values.filter(value => value <= bound).length,
        )
      expect(sum('took_seconds_count', { colour: 'blue' })).toBe(values.length)
      expect(sum('took_seconds_sum')).toBeCloseTo(
        values.reduce((all, value) => all + value, 0),
        6,
      )
      expect(sum('took_seconds_count', { colour: 'red' })).toBe(0)
    }),
  )
})

test('exposition: preserves any label value', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('"', '\\', '\n', '{', '}', ',', '=', 'n', 'é') }), value => {
      const counter = createCounter({ name: 'things_total', help: 'Two\nlines \\ here.', axes: [[{ value }]] })
      counter.add(3)
      const { sum } = scrape(exposition(mergeWorkers([{ worker: 1, families: [counter.family()] }])))
      expect(sum('things_total', { value, worker: '1' })).toBe(3)
    }),
  )
})

test('counter: stays exact for integers in a small unit', () => {
  const dollars = createCounter({ name: 'usd_total', help: 'Dollars.', axes: [], unit: 1e8 })
  for (let times = 0; times < 1_000; times++) dollars.add(10_000_001)
  expect(scrape(exposition([dollars.family()])).sum('usd_total')).toBe(100.00001)
})
