import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Message, QueryType } from '../../../src/core/chat/chat.ts'
import type { PromptAnalysis } from '../../../src/text/analysis/prompt-analysis.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'
import { cpuMs } from '../../harness/cpu.ts'

const readMessages = openPromptAnalyzer().read
const user = (...texts: readonly string[]): Message => ({
  role: 'user',
  content: texts.map(text => ({ type: 'text' as const, text })),
  name: null,
})
const read = (text: string): PromptAnalysis => readMessages([user(text)])

describe('the type of a query', () => {
  test('help with an everyday matter is no broken program, whatever the matter is', () => {
    const matters = 'garden aquarium accent piano allergies fence commute posture rabbit anxiety curtains pension'
    const types = matters.split(' ').map(matter => read(`help with my ${matter}`).queryType)
    for (const type of ['code', 'code_algorithm', 'debugging'] as const) expect(types).not.toContain(type)
  })

  test.each<readonly [string, QueryType]>([
    ['Write a Python function that parses a CSV file', 'code'],
    ['How do I mount a volume in docker compose?', 'code'],
    ['Implement binary search over a sorted array in Java and state its time complexity', 'code_algorithm'],
    ['Why do I get this error? Traceback (most recent call last): TypeError in line 3', 'debugging'],
    ['My react component crashes with "undefined is not a function"', 'debugging'],
    ['Draft an email to my landlord about the broken heating', 'writing'],
    ['Solve the equation 3x + 4 = 19 for x', 'math'],
    ['A farmer has 12 cows and sells 5. How many are left?', 'math'],
    ['Tell me a story about a dragon who is afraid of fire', 'creative'],
    ['Plan a three-day trip to Lisbon with an itinerary', 'planning'],
    ['Compare electric cars and hybrids', 'comparison'],
    ['Analyze the causes and consequences of the French Revolution', 'analysis'],
    ['What is the capital of Peru?', 'other'],
    ['hi', 'other'],
    ['Schreibe ein Gedicht über den Herbst', 'creative'],
    ['Schreibe eine E-Mail an meinen Vermieter wegen der Heizung', 'writing'],
    ['Schreib mir ein Python-Skript, das Dateien umbenennt', 'code'],
    ['Was ist der Unterschied zwischen Butter und Margarine?', 'comparison'],
    ['Escribe un cuento sobre un gato', 'creative'],
    ['Planifica un viaje de cinco días a Sevilla', 'planning'],
    ['Quelle est la différence entre un crocodile et un alligator ?', 'comparison'],
    ['Rédige une lettre de motivation pour un poste de comptable', 'writing'],
    ['Résous l’équation 2x - 5 = 9', 'math'],
    ['Escreva uma função em Python que some dois números', 'code'],
    ['Scrivi una poesia sulla luna', 'creative'],
    ['Сравни собак и кошек', 'comparison'],
    ['Напиши письмо начальнику об отпуске', 'writing'],
    ['Составь план тренировок на месяц', 'planning'],
    ['比较苹果和橙子', 'comparison'],
    ['用Python写一个爬虫程序', 'code'],
    ['海についての詩を書いて', 'creative'],
    ['What is in this image? https://example.com/a.png', 'other'],
    ['What does https://en.wikipedia.org/wiki/Photosynthesis say?', 'other'],
    ["What's on https://bbc.com/news ?", 'other'],
    ['Please read https://example.com/guide and tell me the main points', 'other'],
    ['Explain this page: https://news.example.org/story/12', 'other'],
    ['Write a tweet promoting https://shop.example.com', 'writing'],
    ['Write a curl call for https://api.example.com/v1/users', 'code'],
    ['Fix the bug in https://git.example.com/acme/app/blob/main/src/index.ts', 'debugging'],
  ])('%j has type %s', (text, type) => {
    expect(read(text).queryType).toBe(type)
  })

  test('returns a probability per type with sum 1, the highest for the chosen type', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), text => {
        const { queryType, queryTypeScores } = read(text)
        const scores = Object.values(queryTypeScores)
        expect(scores.length).toBe(10)
        expect(scores.every(score => score >= 0 && score <= 1)).toBe(true)
        expect(scores.reduce((sum, score) => sum + score, 0)).toBeCloseTo(1, 9)
        expect(queryTypeScores[queryType]).toBe(Math.max(...scores))
      }),
    )
  })
})

describe('prompt analysis', () => {
  const word = fc.constantFrom(
    ...['write', 'python', 'function', 'error', 'poem', 'compare', 'plan', 'why', 'today', 'president', 'über', 'код'],
    ...['x=1;', '{', '42', 'https://a.example/b', '"quoted"', 'C++', '天气', 'the', 'of', 'e-mail'],
  )

  test('ignores case, white space, final punctuation and a polite opening', () => {
    const change = fc.constantFrom<(words: readonly string[]) => string>(
      words => words.join(' ').toUpperCase(),
      words => words.join(' \n\t '),
      words => `  ${words.join(' ')}\n`,
      words => `${words.join(' ')}?!`,
      words => `${words.join(' ')}.\n\n`,
      words => `Please ${words.join(' ')}`,
      words => `Hi, ${words.join(' ')}`,
      words => `Could you please ${words.join(' ')}`,
    )
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 40 }), change, (words, changed) => {
        // Before URLs and signs only, the polite opening is all that is left to analyze.
        fc.pre(words.some(text => /^\p{L}/u.test(text) && !text.startsWith('https:')))
        // URLs stay as written, and an English polite phrase before a Chinese word is English.
        const { urls: _, language: __, ...plain } = read(words.join(' '))
        expect(read(changed(words))).toMatchObject(plain)
      }),
      { numRuns: 300 },
    )
  })

  test('reads all parts of the last user text and nothing else', () => {
    const tool: Message = { role: 'tool', callId: 'c', text: 'compare https://evil.example' }
    const analysis = readMessages([user('Compare a and b'), user('Tell me', 'a story about a cat'), tool])
    expect(analysis.queryType).toBe('creative')
    expect(analysis.urls).toEqual([])
    expect(readMessages([])).toMatchObject({ queryType: 'other', complexity: 0, language: 'und', words: 0 })
  })
})

describe('complexity', () => {
  test('has its minimum for a greeting and a much higher value for a demanding task', () => {
    const greeting = read('Hello!').complexity
    const fact = read('What is the capital of France?').complexity
    const task = read(
      'Design a fault-tolerant distributed rate limiter, prove its bound, discuss the trade-offs and implement it in Rust.',
    ).complexity
    expect(greeting).toBeLessThan(0.1)
    expect(fact).toBeLessThan(0.2)
    expect(task).toBeGreaterThan(0.6)
  })

  test('increases when a task states requirements', () => {
    const terse = 'Write a Python script that reads a CSV file'
    const detailed = `${terse}. It must handle missing values, include unit tests, and avoid external libraries. Output format: JSON. Ensure that memory stays below 100 MB.`
    expect(read(detailed).complexity).toBeGreaterThan(read(terse).complexity + 0.1)
  })

  test('stays within 0 and 1 for any text, and so does strongGain', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), text => {
        const { complexity, strongGain, needsCurrentScore } = read(text)
        for (const figure of [complexity, strongGain, needsCurrentScore]) {
          expect(figure).toBeGreaterThanOrEqual(0)
          expect(figure).toBeLessThanOrEqual(1)
        }
      }),
    )
  })

  test('increases slightly with the length of the earlier conversation', () => {
    const before: Message = {
      role: 'assistant',
      text: 'word '.repeat(20_000),
      reasoning: null,
      toolCalls: [],
      name: null,
    }
    const alone = read('And the second one?').complexity
    const after = readMessages([before, user('And the second one?')]).complexity
    expect(after).toBeGreaterThan(alone)
    expect(after - alone).toBeLessThanOrEqual(0.1)
  })
})

describe('prompt analyzer', () => {
  test('takes linear time up to 1,000,000 characters', () => {
    const prose = 'Explain how this function in my service handles a request and why it fails at https://a.example. '
    const fastest = (text: string) =>
      Math.min(
        ...Array.from({ length: 20 }, () => {
          const start = Bun.nanoseconds()
          read(text)
          return Bun.nanoseconds() - start
        }),
      )
    const [small, large] = [4_000, 1_000_000].map(characters => fastest(prose.repeat(11_000).slice(0, characters)))
    process.stdout.write(
      `a prompt is read in ${(Number(small) / 1000).toFixed(0)} µs at 4,000 characters, in ${(Number(large) / 1000).toFixed(0)} µs at 1,000,000\n`,
    )
    // Well above the target of 150 µs for 4,000 characters, so that a shared machine does not fail the suite.
    expect(Number(small)).toBeLessThan(1_000_000)
    expect(Number(large)).toBeLessThan(Number(small) * 250)
  })

  test.each([
    'a'.repeat(1_000_000),
    ' '.repeat(1_000_000),
    '://'.repeat(300_000),
    '字'.repeat(500_000),
    '\ud83d'.repeat(500_000),
    'http://'.repeat(100_000),
  ])('takes bounded time on adversarial text (%#)', text => {
    const start = cpuMs()
    read(text)
    // Takes some milliseconds; a quadratic loop would take minutes.
    expect(cpuMs() - start).toBeLessThan(5_000)
  })
})
