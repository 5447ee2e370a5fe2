import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { type QueryType, queryTypes } from '../../src/core/chat.ts'
import { enhance, fitsLength } from '../../src/core/enhance.ts'
import { enhancements } from '../../src/core/enhancements.ts'
import { openReader } from '../../src/deps/reader.ts'

const english = (queryType: QueryType) => ({ queryType, language: 'en' })
const languages = Object.keys(enhancements)
const knownTypes = queryTypes.filter(type => type !== 'other')

const terse: readonly (readonly [QueryType, string, string])[] = [
  ['code', 'en', 'Write a Swift view that shows a countdown'],
  ['code_algorithm', 'en', 'find the longest run of equal bits in a byte array'],
  ['debugging', 'en', 'my cron job runs twice, how do I fix it'],
  ['analysis', 'en', 'Why did canal towns decline after railways came?'],
  ['writing', 'en', 'Hi, please draft a farewell email to my team'],
  ['math', 'en', 'How do I integrate x times the sine of x?'],
  ['creative', 'en', 'Tell a story about a lighthouse that is afraid of the dark'],
  ['planning', 'en', 'plan a week of hiking in Norway'],
  ['comparison', 'en', 'tea vs coffee for focus'],
  ['writing', 'de', 'Schreibe eine Absage für eine Einladung'],
  ['code', 'fr', 'Écris un script qui renomme mes photos'],
  ['planning', 'es', 'planifica un fin de semana en Oporto'],
  ['analysis', 'ru', 'Почему опустели старые порты?'],
  ['comparison', 'zh', '比较跑步和游泳'],
  ['math', 'ja', 'この数列の和を求めて'],
]

const unchanged: readonly (readonly [string, QueryType, string])[] = [
  ['a greeting', 'other', 'hello!'],
  ['thanks', 'writing', 'thank you so much'],
  ['a yes-or-no question', 'analysis', 'Is a tomato a fruit?'],
  ['one fact', 'analysis', 'Who painted the ceiling of the Sistine Chapel?'],
  ['a number', 'math', 'How tall is the Matterhorn?'],
  ['a prompt of no known kind', 'other', 'Suggest a name for a grey cat'],
  ['a prompt with conditions of its own', 'writing', 'Write a toast in no more than three sentences for my sister'],
  ['a prompt that brings its material', 'writing', 'Rewrite this more formally.\n\nwe cant come on friday sorry'],
  ['a prompt that brings code', 'debugging', 'what is wrong with `for (;;) { step(); }` here'],
  ['one word', 'code', 'python'],
]

describe('what is enhanced', () => {
  test.each(terse)('a terse %s prompt (%s) gains two aspects or more: %s', (queryType, language, prompt) => {
    const { changed, prompt: enhanced } = enhance(prompt, { queryType, language })
    expect(changed).toBe(true)
    expect(enhanced.startsWith(`${prompt}\n\n`)).toBe(true)
    expect(enhanced.slice(prompt.length).trim().split('\n').length).toBeGreaterThanOrEqual(2)
  })

  test.each(unchanged)('%s comes back as it is', (_, queryType, prompt) => {
    expect(enhance(prompt, english(queryType))).toEqual({ changed: false, prompt })
  })

  test('a language without words of its own stays untouched', () => {
    const prompt = 'Skriv en berättelse om en fyr'
    expect(enhance(prompt, { queryType: 'creative', language: 'sv' })).toEqual({ changed: false, prompt })
  })
})

describe('what a prompt is enhanced as', () => {
  const scores = (other: number, writing: number) => {
    const none = {
      code: 0,
      code_algorithm: 0,
      debugging: 0,
      analysis: 0,
      math: 0,
      creative: 0,
      planning: 0,
      comparison: 0,
    }
    return { queryType: 'other', queryTypeScores: { ...none, other, writing }, language: 'en' } as const
  }
  const prompt = 'A toast for the wedding of my sister'

  test('its likeliest kind, where it reads as nothing in particular by not much', () => {
    expect(enhance(prompt, scores(0.6, 0.4))).toEqual(enhance(prompt, english('writing')))
  })

  test('nothing, where it clearly is of no kind', () => {
    expect(enhance(prompt, scores(0.9, 0.1)).changed).toBe(false)
  })
})

describe('what enhancement promises of any prompt', () => {
  const prompts = fc.oneof(
    fc.constantFrom(...terse.map(([, , prompt]) => prompt)),
    fc.string({ unit: 'binary', maxLength: 240 }),
    fc.array(fc.lorem({ maxCount: 3 }), { maxLength: 12 }).map(parts => parts.join(' ')),
  )
  const readings = fc.record({
    queryType: fc.constantFrom(...queryTypes),
    language: fc.constantFrom(...languages, 'und'),
  })

  test('a second time changes nothing, whatever it is then taken for', () => {
    fc.assert(
      fc.property(prompts, readings, readings, (prompt, reading, other) => {
        const once = enhance(prompt, reading).prompt
        expect(enhance(once, reading)).toEqual({ changed: false, prompt: once })
        if (once !== prompt) expect(enhance(once, other)).toEqual({ changed: false, prompt: once })
      }),
    )
  })

  test('the caller’s text stays whole and in front, and the result within its length', () => {
    fc.assert(
      fc.property(prompts, readings, (prompt, reading) => {
        const { changed, prompt: enhanced } = enhance(prompt, reading)
        expect(enhanced.startsWith(prompt)).toBe(true)
        expect(changed).toBe(enhanced !== prompt)
        expect(fitsLength(prompt, enhanced)).toBe(true)
      }),
    )
  })
})

test.each(languages)(
  'what is added in %s invents no number or address and fits the shortest prompt it may lengthen',
  language => {
    for (const queryType of knownTypes) {
      const lines = enhancements[language]?.lines[queryType] ?? {}
      const labels = enhancements[language]?.labels
      const added = Object.entries(lines)
        .map(([aspect, line]) => `${labels?.[aspect as keyof typeof labels]}: ${line}`)
        .join('\n')
      expect(Object.keys(lines).length).toBeGreaterThanOrEqual(2)
      expect(added).not.toMatch(/\d|https?:|www\.|undefined/)
      expect(added.length + 2).toBeLessThanOrEqual(183)
    }
  },
)

const data = join(import.meta.dir, '../../../shared/data')
const rowsOf = (name: string): readonly Record<string, string>[] =>
  readFileSync(join(data, name, 'data.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))

test.if(existsSync(data))(
  'labelled prompts as they are read: detailed ones stay byte-identical, terse ones of a known kind gain',
  () => {
    const read = openReader()
    const isChanged = ({ prompt = '' }: Readonly<Record<string, string>>) =>
      enhance(prompt, read([{ role: 'user', content: [{ type: 'text', text: prompt }], name: null }])).changed
    const detailed = rowsOf('enhance-gate').filter(({ gate }) => gate === 'unchanged')
    expect(detailed.filter(isChanged).length / detailed.length).toBeLessThanOrEqual(0.01)
    const terse = rowsOf('query-types').filter(({ detail, type }) => detail === 'terse' && type !== 'others')
    expect(terse.filter(isChanged).length / terse.length).toBeGreaterThanOrEqual(0.95)
  },
)
