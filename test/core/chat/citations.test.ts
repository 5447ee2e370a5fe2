import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findCitations, WebCitations } from '../../../src/core/chat/citations.ts'
import { type ChatEvent, EventLog, tell } from '../../harness/events.ts'

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

  test('finds numbers directly behind words if the provider writes them so', () => {
    const found = findCitations('It is so[1][2].', sources, true)
    expect(found.map(({ start, end }) => [start, end])).toEqual([
      [8, 11],
      [11, 14],
    ])
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

describe('WebCitations', () => {
  const text = (piece: string, choice = 0): ChatEvent => ({ type: 'text', choice, text: piece })
  const finish = (choice = 0): ChatEvent => ({ type: 'finish', choice, reason: 'stop' })
  const call: ChatEvent = { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f', signature: null }
  const shown = (batches: readonly (readonly ChatEvent[])[]) => {
    const log = new EventLog()
    tell(new WebCitations(sources, log), batches.flat())
    return log.events.map(event =>
      event.type === 'citation' ? [event.choice, event.source.title, event.source.start, event.source.end] : event.type,
    )
  }

  test('cites a text where it ends, and the other sources before the finish reason', () => {
    expect(shown([[text('So 😀 [')], [text('2]')], [call], [finish()]])).toEqual([
      'text',
      'text',
      [0, 'Two', 5, 8],
      'tool_call',
      [0, 'One', 8, 8],
      'finish',
    ])
  })

  test('cites a message before the next phase begins', () => {
    const phase = (name: string, piece: string): ChatEvent => ({ type: 'text', choice: 0, text: piece, phase: name })
    expect(shown([[phase('commentary', 'See [1].'), phase('final_answer', 'And [2].'), finish()]])).toEqual([
      'text',
      [0, 'One', 4, 7],
      'text',
      [0, 'Two', 12, 15],
      'finish',
    ])
  })

  test('cites each choice in its own text', () => {
    expect(
      shown([
        [text('[1]', 1), text('none')],
        [finish(0), finish(1)],
      ]),
    ).toEqual([
      'text',
      'text',
      [0, 'One', 4, 4],
      [0, 'Two', 4, 4],
      'finish',
      [1, 'One', 0, 3],
      [1, 'Two', 3, 3],
      'finish',
    ])
  })
})
