import { describe, expect, test } from 'bun:test'
import { type Concept, concepts, createConceptReader } from '../../../src/core/analysis/concepts.ts'
import { createFeatureReader } from '../../../src/core/analysis/features.ts'
import { lexicon } from '../../../src/core/analysis/lexicon.ts'

const readFeatures = createFeatureReader()
const readMeaning = createConceptReader(readFeatures)
const meaningOf = (text: string): (readonly [Concept | undefined, number])[] => {
  const { count, found, at } = readMeaning(readFeatures(text))
  return Array.from({ length: count }, (_, index) => [concepts[found[index] ?? 0], at[index] ?? 0] as const)
}

describe('the concepts in a text', () => {
  test('are the same in every language the lexicon speaks', () => {
    for (const text of ['compare', 'vergleiche', 'сравни', '比较', 'compara', 'confronta', '비교'])
      expect(meaningOf(text).map(([concept]) => concept)).toContain('compare')
  })

  test('come in order, with the place of their word', () => {
    const places = meaningOf('now compare the weather')
    expect(places.filter(([concept]) => concept === 'compare')).toEqual([['compare', 1]])
    expect(places.map(([, at]) => at)).toEqual(places.map(([, at]) => at).toSorted((left, right) => left - right))
  })

  test('of two words are met only side by side, whatever their case', () => {
    expect(meaningOf('Linked List').map(([concept]) => concept)).toContain('algorithm')
    expect(meaningOf('a list that is linked').map(([concept]) => concept)).not.toContain('algorithm')
  })

  test('of a stem are met in its inflections', () => {
    for (const word of ['последние', 'последних', 'последняя']) expect(meaningOf(word)).toContainEqual(['now', 0])
  })

  test('are at most 1,024, however long the text', () => {
    expect(readMeaning(readFeatures('compare '.repeat(5_000))).count).toBe(1_024)
  })
})

test('an entry of the lexicon is at most two words where words are parted by spaces', () => {
  const long = concepts.flatMap(concept =>
    lexicon[concept].split(/\s+/).filter(entry => /^[\p{Script=Latin}]+(_[\p{Script=Latin}]+){2,}$/u.test(entry)),
  )
  expect(long).toEqual([])
})

test('a stem of the lexicon has the five letters that stems are told by', () => {
  const short = concepts.flatMap(concept => lexicon[concept].split(/\s+/).filter(entry => /^.{0,4}\*$/.test(entry)))
  expect(short).toEqual([])
})
