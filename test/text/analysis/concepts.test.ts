import { describe, expect, test } from 'bun:test'
import { type Concept, concepts, createConceptReader } from '../../../src/text/analysis/concepts.ts'
import { createFeatureReader } from '../../../src/text/analysis/features.ts'
import lexicon from '../../../src/text/analysis/lexicon/concepts.json'

const readFeatures = createFeatureReader()
const readMeaning = createConceptReader(readFeatures)
const getMeaning = (text: string): (readonly [Concept | undefined, number])[] => {
  const { count, found, at } = readMeaning(readFeatures(text))
  return Array.from({ length: count }, (_, index) => [concepts[found[index] ?? 0], at[index] ?? 0] as const)
}

describe('concept reader', () => {
  test('finds the same concepts in every language of the lexicon', () => {
    for (const text of ['compare', 'vergleiche', 'сравни', '比较', 'compara', 'confronta', '비교'])
      expect(getMeaning(text).map(([concept]) => concept)).toContain('compare')
  })

  test('returns concepts in order with the index of their word', () => {
    const places = getMeaning('now compare the weather')
    expect(places.filter(([concept]) => concept === 'compare')).toEqual([['compare', 1]])
    expect(places.map(([, at]) => at)).toEqual(places.map(([, at]) => at).toSorted((left, right) => left - right))
  })

  test('finds two-word entries only for adjacent words, in any case', () => {
    expect(getMeaning('Linked List').map(([concept]) => concept)).toContain('algorithm')
    expect(getMeaning('a list that is linked').map(([concept]) => concept)).not.toContain('algorithm')
  })

  test('finds stem entries in inflected words', () => {
    for (const word of ['последние', 'последних', 'последняя']) expect(getMeaning(word)).toContainEqual(['now', 0])
  })

  test('returns at most 1,024 concepts for a text of any length', () => {
    expect(readMeaning(readFeatures('compare '.repeat(5_000))).count).toBe(1_024)
  })
})

const entries = Object.values(lexicon).flatMap(lines => lines.join(' ').split(' '))

test('lexicon: has entries of at most two words in languages with spaces', () => {
  expect(entries.filter(entry => /^[\p{Script=Latin}]+(_[\p{Script=Latin}]+){2,}$/u.test(entry))).toEqual([])
})

test('lexicon: has stems of the five letters that stems use', () => {
  expect(entries.filter(entry => /^.{0,4}\*$/.test(entry))).toEqual([])
})
