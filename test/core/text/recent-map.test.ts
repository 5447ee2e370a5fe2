import { expect, test } from 'bun:test'
import { createRecentMap } from '../../../src/core/text/recent-map.ts'

test('createRecentMap: keeps at least the newest entries and at most twice as many', () => {
  const recent = createRecentMap<number>(100)
  for (let index = 0; index < 1_000; index++) {
    recent.set(`key ${index}`, index)
    for (let back = 0; back < Math.min(100, index + 1); back++)
      expect(recent.get(`key ${index - back}`)).toBe(index - back)
    expect(recent.has(`key ${index - 200}`)).toBe(false)
  }
})

test('createRecentMap: makes an entry new when it is set again', () => {
  const recent = createRecentMap<string>(2)
  recent.set('a', 'first')
  recent.set('b', 'other')
  recent.set('a', 'second')
  recent.set('c', 'other')
  expect(recent.get('a')).toBe('second')
})
