import { expect, test } from 'bun:test'
import { getOriginals } from '../../src/training/near-duplicates.ts'

test('originalsOf: groups near duplicates transitively', () => {
  const texts = [
    'Write a guide on how to bake bread at home',
    'Why is the sky blue?',
    'Write a guide on how to bake good bread at home!',
    'write a short guide on how to bake good bread',
    'Why is the sea salty?',
  ]
  expect(getOriginals(texts)).toEqual([texts[0], texts[1], texts[0], texts[0], texts[4]].map(text => text ?? ''))
})
