import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { type QueryType, queryTypes } from '../../../src/core/chat/chat.ts'
import {
  enhancePrompt,
  isWithinGrowthLimits,
  type PromptTraits,
  type Task,
} from '../../../src/text/enhancement/enhance.ts'
import texts from '../../../src/text/enhancement/enhancements.json'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'
import { testNeeding } from '../../harness/needs.ts'
import stated from './stated-limits.json'

type Lines<Kind extends string> = Readonly<Record<Kind, Readonly<Record<string, string>>>>
const enhancements: Readonly<
  Record<
    string,
    {
      readonly labels: Readonly<Record<string, string>>
      readonly lines: Lines<Exclude<QueryType, 'other'>>
      readonly tasks: Lines<Task>
    }
  >
> = texts
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
  ['creative', 'en', 'write lullaby'],
  ['writing', 'en', 'eulogy uncle'],
  ['code', 'en', 'python parse dates'],
  ['planning', 'en', 'Marathon plan'],
  ['writing', 'de', 'Absage schreiben'],
  ['planning', 'fr', 'voyage Islande'],
  ['creative', 'zh', '写首歌'],
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
  ['a title', 'code', 'Android Studio'],
  ['a name', 'creative', 'Lewis Carroll'],
  ['a line of a program', 'planning', 'for row in range(8):'],
  ['a call', 'math', 'floor(x / 2)'],
  ['an assignment', 'math', 'total = price * 3'],
  ['a query', 'code', 'SELECT id FROM orders'],
  ['a command', 'code', 'git push upstream main'],
  ['a synonym', 'creative', 'synonym for brave'],
  ['a rhyme', 'creative', 'rhymes with silver'],
  ['what holds today', 'writing', 'weather in Lima tomorrow'],
  ['a choice', 'math', 'option 3'],
  ['a farewell', 'writing', 'see you on monday'],
]

describe('enhance', () => {
  test.each(terse)('adds at least two aspects to a terse %s prompt (%s): %s', (queryType, language, prompt) => {
    const { changed, prompt: enhanced } = enhancePrompt(prompt, { queryType, language })
    expect(changed).toBe(true)
    expect(enhanced.startsWith(`${prompt}\n\n`)).toBe(true)
    expect(enhanced.slice(prompt.length).trim().split('\n').length).toBeGreaterThanOrEqual(2)
  })

  test.each(unchanged)('returns a prompt unchanged when %s', (_, queryType, prompt) => {
    expect(enhancePrompt(prompt, english(queryType))).toEqual({ changed: false, prompt, queryType })
  })

  test('returns a prompt unchanged in a language without templates', () => {
    const prompt = 'Skriv en berättelse om en fyr'
    expect(enhancePrompt(prompt, { queryType: 'creative', language: 'sv' })).toMatchObject({ changed: false, prompt })
  })
})

/** Terse requests for a task that does not depend on the topic. */
const asked: readonly (readonly [Task, string, string])[] = [
  ['explanation', 'en', 'explain tides'],
  ['explanation', 'en', 'How do heat pumps work?'],
  ['explanation', 'en', 'tectonic plates explained'],
  ['summary', 'en', 'summarize this'],
  ['summary', 'en', 'tl;dr the odyssey'],
  ['translation', 'en', 'translate bread'],
  ['revision', 'en', 'please proofread my essay'],
  ['explanation', 'de', 'erkläre Ebbe und Flut'],
  ['translation', 'de', 'übersetze Brot'],
  ['summary', 'de', 'Fasse diesen Text zusammen'],
  ['explanation', 'nl', 'leg getijden uit'],
  ['translation', 'es', 'traduce pan'],
  ['explanation', 'es', 'cómo funciona un imán'],
  ['summary', 'fr', 'résume cet article'],
  ['revision', 'fr', 'corrige ce texte'],
  ['explanation', 'pt', 'explique as marés'],
  ['translation', 'it', 'traduci pane'],
  ['explanation', 'pl', 'wyjaśnij pływy'],
  ['explanation', 'ru', 'объясни приливы'],
  ['translation', 'uk', 'переклади хліб'],
  ['explanation', 'tr', 'gelgiti açıkla'],
  ['summary', 'ar', 'لخص هذا المقال'],
  ['explanation', 'hi', 'ज्वार समझाओ'],
  ['explanation', 'zh', '解释潮汐'],
  ['translation', 'ja', 'この文を翻訳して'],
  ['summary', 'ko', '이 글 요약해줘'],
]

describe('detectTask', () => {
  test.each([
    ['en', 'names for a bakery', 'creative'],
    ['en', 'party theme ideas', 'planning'],
    ['de', 'Ideen für ein Fest', 'planning'],
    ['fr', 'des noms pour mon groupe', 'creative'],
    ['zh', '给面包店起名字', 'creative'],
  ] as const)('requests several ideas (%s): %s', (language, prompt, queryType) => {
    expect(enhancePrompt(prompt, { queryType, language }).prompt).toContain(
      enhancements[language]?.tasks.ideas.format ?? '-',
    )
  })

  test('returns null for a remark about an idea', () => {
    for (const prompt of ['good idea', 'no idea', 'great ideas'])
      expect(enhancePrompt(prompt, english('other')).changed).toBe(false)
  })

  test.each(asked)('returns %s (%s) for any query type: %s', (task, language, prompt) => {
    const { labels, tasks } = enhancements[language] ?? { labels: null, tasks: null }
    const lines = Object.entries(tasks?.[task] ?? {}).map(
      ([aspect, line]) => `${labels?.[aspect as keyof typeof labels]}: ${line}`,
    )
    for (const queryType of ['other', 'analysis', 'planning'] as const) {
      const expected = { changed: true, prompt: `${prompt}\n\n${lines.join('\n')}`, queryType }
      expect(enhancePrompt(prompt, { queryType, language })).toEqual(expected)
    }
  })

  test.each([
    ['explain why canal towns declined', 'analysis'],
    ['explain the difference between butter and ghee', 'comparison'],
    ['explain how to prune roses', 'planning'],
    ['explain quicksort', 'code_algorithm'],
    ['translate this script to Go', 'code'],
    ['How do I make two screens work?', 'debugging'],
  ] as const)('returns null, so that the query type decides, for %j: %s', (prompt, queryType) => {
    const { lines } = enhancements.en ?? { lines: null }
    expect(enhancePrompt(prompt, english(queryType)).prompt).toContain(
      Object.values(lines?.[queryType] ?? {})[0] ?? '-',
    )
  })
})

describe('enhancement type', () => {
  const scores = (other: number, writing: number): PromptTraits => {
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
    return { queryType: 'other', queryTypeScores: { ...none, other, writing }, language: 'en' }
  }
  const prompt = 'A toast for the wedding of my sister'

  test('falls back to the likeliest type when the prompt is narrowly general', () => {
    expect(enhancePrompt(prompt, scores(0.6, 0.4))).toEqual(enhancePrompt(prompt, english('writing')))
  })

  test('stays general when a few words may be a name or a remark', () => {
    const few = 'toast for sister'
    expect(enhancePrompt(few, scores(0.6, 0.4))).toMatchObject({ changed: true, queryType: 'writing' })
    expect(enhancePrompt(few, scores(0.7, 0.3))).toMatchObject({ changed: false, queryType: 'other' })
    expect(enhancePrompt(few, scores(0.2, 0.2))).toMatchObject({ changed: false, queryType: 'other' })
    expect(enhancePrompt('Tom Sawyer', scores(0.1, 0.9)).changed).toBe(false)
  })

  test('stays general when the prompt clearly has no type', () => {
    expect(enhancePrompt(prompt, scores(0.9, 0.1)).changed).toBe(false)
  })
})

describe('enhance on any prompt', () => {
  const prompts = fc.oneof(
    fc.constantFrom(...terse.map(([, , prompt]) => prompt)),
    fc.string({ unit: 'binary', maxLength: 240 }),
    fc.array(fc.lorem({ maxCount: 3 }), { maxLength: 12 }).map(parts => parts.join(' ')),
  )
  const analyses = fc.record({
    queryType: fc.constantFrom(...queryTypes),
    language: fc.constantFrom(...languages, 'und'),
  })

  test('changes nothing when applied twice', () => {
    fc.assert(
      fc.property(prompts, analyses, analyses, (prompt, scan, other) => {
        const once = enhancePrompt(prompt, scan).prompt
        expect(enhancePrompt(once, scan)).toMatchObject({ changed: false, prompt: once })
        if (once !== prompt) expect(enhancePrompt(once, other)).toMatchObject({ changed: false, prompt: once })
      }),
    )
  })

  test("keeps the user's text complete and in front, within the length limits", () => {
    fc.assert(
      fc.property(prompts, analyses, (prompt, scan) => {
        const { changed, prompt: enhanced } = enhancePrompt(prompt, scan)
        expect(enhanced.startsWith(prompt)).toBe(true)
        expect(changed).toBe(enhanced !== prompt)
        expect(isWithinGrowthLimits(prompt, enhanced)).toBe(true)
      }),
    )
  })
})

test.each(languages)('enhancement lines: add no number or URL in %s and fit the shortest prompt', language => {
  const words = enhancements[language]
  if (words === undefined) throw new Error(`nothing is said in ${language}`)
  const { labels } = words
  const all = [...knownTypes.map(type => words.lines[type]), ...Object.values(words.tasks)]
  for (const lines of all) {
    const added = Object.entries(lines)
      .map(([aspect, line]) => `${labels[aspect as keyof typeof labels]}: ${line}`)
      .join('\n')
    expect(Object.keys(lines).length).toBeGreaterThanOrEqual(2)
    expect(added).not.toMatch(/\d|https?:|www\.|undefined/)
    expect(added.length + 2).toBeLessThanOrEqual(183)
  }
})

const data = join(import.meta.dir, '../../../../shared/data')
const getRows = (name: string): readonly Record<string, string>[] =>
  readFileSync(join(data, name, 'data.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))

testNeeding(
  'data',
  'enhance: keeps detailed labeled prompts byte-identical and enhances terse ones of a known type',
  () => {
    const read = openPromptAnalyzer().read
    const isChanged = ({ prompt = '' }: Readonly<Record<string, string>>) =>
      enhancePrompt(prompt, read([{ role: 'user', content: [{ type: 'text', text: prompt }], name: null }])).changed
    const detailed = getRows('enhance-gate').filter(({ gate }) => gate === 'unchanged')
    expect(detailed.filter(isChanged).length / detailed.length).toBeLessThanOrEqual(0.01)
    const terse = getRows('query-types').filter(({ detail, type }) => detail === 'terse' && type !== 'others')
    expect(terse.filter(isChanged).length / terse.length).toBeGreaterThanOrEqual(0.95)
  },
)

describe('enhancePrompt with a stated limit', () => {
  test.each(Object.entries(stated.limited))('changes nothing (%s)', (language, prompts) => {
    expect(prompts.filter(prompt => enhancePrompt(prompt, { queryType: 'writing', language }).changed)).toEqual([])
  })

  test.each(Object.entries(stated.unlimited))('adds lines when no limit is stated (%s)', (language, prompts) => {
    const traits = { queryType: 'planning', language } as const
    expect(prompts.filter(prompt => !enhancePrompt(prompt, traits).changed)).toEqual([])
  })

  test('takes a list or table in a request for a program as its data', () => {
    const prompt = 'find the longest word in a list'
    expect(enhancePrompt(prompt, english('code')).changed).toBe(true)
    expect(enhancePrompt(prompt, english('comparison')).changed).toBe(false)
  })
})
