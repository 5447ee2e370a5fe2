import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findCitations } from '../../../src/core/web/citations.ts'

const sources = [
  { url: 'https://one.example/a', title: 'One' },
  { url: 'https://two.example/b', title: 'Two' },
]
const placesIn = (text: string) => findCitations(text, sources).map(({ start, end }) => [start, end])
const cited = (text: string) =>
  findCitations(text, sources).map(({ start, end }) => [...text].slice(start, end).join(''))

describe('findCitations', () => {
  test('finds a URL, and a source number if the URL is not in the text', () => {
    expect(cited('See https://two.example/b, and [1] for the rest.')).toEqual(['[1]', 'https://two.example/b'])
  })

  test('places an uncited source at the end with length 0', () => {
    expect(placesIn('Nothing.')).toEqual([
      [8, 8],
      [8, 8],
    ])
    expect(placesIn('')).toEqual([
      [0, 0],
      [0, 0],
    ])
  })

  test('ignores list indexes and links', () => {
    expect(cited('Use list[1] or f()[1] or a[0][1], as [1] says')).toEqual(['[1]', ''])
    expect(placesIn('Use list[1] or f()[1] or a[0][1], as [1] says')[0]).toEqual([37, 40])
    expect(cited('list[2]')).toEqual(['', ''])
  })

  test('counts code points, not code units', () => {
    expect(placesIn('😀 [1]')).toEqual([
      [2, 5],
      [5, 5],
    ])
  })

  test('keeps every source in order within any text', () => {
    const texts = fc.array(fc.oneof(fc.string(), fc.constantFrom('[1]', '[2]', sources[0]?.url ?? '', '😀', '\ud83d')))
    fc.assert(
      fc.property(texts, pieces => {
        const text = pieces.join('')
        const found = findCitations(text, sources)
        expect(found.map(({ url, title }) => ({ url, title }))).toEqual(sources)
        for (const { start, end } of found) expect(0 <= start && start <= end && end <= [...text].length).toBe(true)
        for (const [at, piece] of cited(text).entries()) expect(['', `[${at + 1}]`, sources[at]?.url]).toContain(piece)
      }),
    )
  })
})
