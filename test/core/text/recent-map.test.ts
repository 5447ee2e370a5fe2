import { expect, test } from 'bun:test'
import { createRecentMap } from '../../../src/core/text/recent-map.ts'

test('the newest are remembered, and never more than twice as many as asked for', () => {
  const recent = createRecentMap<number>(100)
  for (let index = 0; index < 1_000; index++) {
    recent.set(`key ${index}`, index)
    for (let back = 0; back < Math.min(100, index + 1); back++)
      expect(recent.get(`key ${index - back}`)).toBe(index - back)
    expect(recent.has(`key ${index - 200}`)).toBe(false)
  }
})

test('what is set again is new again', () => {
  const recent = createRecentMap<string>(2)
  recent.set('a', 'first')
  recent.set('b', 'other')
  recent.set('a', 'second')
  recent.set('c', 'other')
  expect(recent.get('a')).toBe('second')
})
