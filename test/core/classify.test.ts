import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Message } from '../../src/core/chat.ts'
import { readPrompt } from '../../src/core/classify.ts'

const user = (...texts: readonly string[]): Message => ({
  role: 'user',
  content: texts.map(text => ({ type: 'text' as const, text })),
  name: null,
})
const read = (text: string) => readPrompt([user(text)])

describe('readPrompt: query type', () => {
  test.each([
    ['Write a Python function that parses a CSV file', 'code'],
    ['Implement binary search over a sorted array in Java and state its time complexity', 'code_algorithm'],
    ['Why do I get this error? Traceback (most recent call last): TypeError in line 3', 'debugging'],
    ['Draft an email to my landlord about the broken heating', 'writing'],
    ['Solve the equation 3x + 4 = 19 for x', 'math'],
    ['Tell me a story about a dragon who is afraid of fire', 'creative'],
    ['Plan a three-day trip to Lisbon with an itinerary', 'planning'],
    ['Compare electric cars and hybrids', 'comparison'],
    ['Analyze the causes and consequences of the French Revolution', 'analysis'],
    ['hi', 'other'],
    ['Schreibe ein Gedicht über den Herbst', 'creative'],
    ['Escribe un cuento sobre un gato', 'creative'],
    ['Сравни собак и кошек', 'comparison'],
    ['比较苹果和橙子', 'comparison'],
    ['Quelle est la différence entre un crocodile et un alligator ?', 'comparison'],
  ] as const)('%j is %s', (text, type) => {
    expect(read(text).queryType).toBe(type)
  })

  test('is the same whatever the case and white space', () => {
    const word = fc.constantFrom(
      'write',
      'python',
      'function',
      'error',
      'poem',
      'compare',
      'plan',
      'why',
      'solve',
      'über',
      'код',
      'x=1;',
      '{',
    )
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 30 }),
        fc.constantFrom(' ', '\n', '\t  '),
        (words, space) => {
          const plain = read(words.join(' '))
          const other = read(words.join(space).toUpperCase())
          expect([other.queryType, other.needsCurrent]).toEqual([plain.queryType, plain.needsCurrent])
          expect(Math.abs(other.complexity - plain.complexity)).toBeLessThan(0.01)
        },
      ),
    )
  })
})

describe('readPrompt: complexity', () => {
  test('a greeting is the least, a demanding task much more', () => {
    const greeting = read('Hello!').complexity
    const fact = read('What is the capital of France?').complexity
    const task = read(
      'Design a fault-tolerant distributed rate limiter, prove its bound, discuss the trade-offs and implement it in Rust.',
    ).complexity
    expect(greeting).toBeLessThan(0.1)
    expect(fact).toBeLessThan(0.2)
    expect(task).toBeGreaterThan(0.6)
  })

  test('stays within 0 and 1, whatever is said', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), text => {
        const { complexity, words } = read(text)
        expect(complexity).toBeGreaterThanOrEqual(0)
        expect(complexity).toBeLessThanOrEqual(1)
        expect(words).toBeGreaterThanOrEqual(0)
      }),
    )
  })

  test('grows with the conversation before it, a little', () => {
    const before: Message = {
      role: 'assistant',
      text: 'word '.repeat(20_000),
      reasoning: null,
      toolCalls: [],
      name: null,
    }
    const alone = read('And the second one?').complexity
    const after = readPrompt([before, user('And the second one?')]).complexity
    expect(after).toBeGreaterThan(alone)
    expect(after - alone).toBeLessThanOrEqual(0.1)
  })
})

describe('readPrompt: what else it sees', () => {
  test.each([
    ['What is the latest news from Berlin?', true],
    ['What is the weather like in Rome today?', true],
    ['Search the web for cheap flights', true],
    ['Who won the match yesterday?', true],
    ['Write a poem about today', false],
    ['What is the capital of France?', false],
    ['Sort an array by the current value in Python', false],
  ])('%j needs current data: %p', (text, expected) => {
    expect(read(text).needsCurrent).toBe(expected)
  })

  test('finds addresses in order, without the punctuation after them', () => {
    const text =
      'See https://a.example/x?y=1, (HTTP://b.example/z). Not ftp://c.example nor "://". [d](https://d.example/p)'
    expect(read(text).urls).toEqual(['https://a.example/x?y=1', 'HTTP://b.example/z', 'https://d.example/p'])
    expect(read('https://a.example '.repeat(50)).urls.length).toBe(16)
  })

  test('reads the last user text, all its parts, and nothing else', () => {
    const tool: Message = { role: 'tool', callId: 'c', text: 'compare https://evil.example' }
    const reading = readPrompt([user('Compare a and b'), user('Tell me', 'a story about a cat'), tool])
    expect(reading.queryType).toBe('creative')
    expect(reading.urls).toEqual([])
    expect(readPrompt([]).queryType).toBe('other')
  })
})

describe('readPrompt: cost and accuracy', () => {
  test('takes microseconds for 4,000 characters and grows no faster than the text', () => {
    const fastest = (text: string) => {
      const messages = [user(text)]
      return Math.min(
        ...Array.from({ length: 60 }, () => {
          const start = Bun.nanoseconds()
          for (let run = 0; run < 5; run++) readPrompt(messages)
          return (Bun.nanoseconds() - start) / 5000
        }),
      )
    }
    const prose = 'Please explain how this function in my service handles a request and why it fails at times. '
    const small = fastest(prose.repeat(50).slice(0, 4000))
    const large = fastest(prose.repeat(500).slice(0, 40_000))
    report(`readPrompt: ${small.toFixed(1)} µs for 4,000 characters, ${large.toFixed(1)} µs for 40,000`)
    // Wide of the 15 µs aimed at: a shared machine must not fail the suite.
    expect(small).toBeLessThan(100)
    expect(large).toBeLessThan(small * 20)
  })

  test('is right about real prompts more often than not', async () => {
    const rows = await sharedRows('query-types')
    if (rows === null) return
    const wanted = (row: Record<string, unknown>) => (row.type === 'others' ? 'other' : row.type)
    const right = rows.filter(row => read(String(row.prompt)).queryType === wanted(row)).length
    report(
      `readPrompt on query-types: ${right}/${rows.length} types as labelled (cues written with these rows in sight)`,
    )
    expect(right / rows.length).toBeGreaterThan(0.6)
  })
})

/** Rows of a labelled set beside the checkout, null where it is not there: said in one line, never silent. */
async function sharedRows(name: string): Promise<Record<string, unknown>[] | null> {
  const file = Bun.file(new URL(`../../../shared/data/${name}/data.jsonl`, import.meta.url))
  if (!(await file.exists())) {
    report(`not run: ../shared/data/${name} is absent`)
    return null
  }
  const lines = (await file.text()).trim().split('\n')
  return lines.map(line => JSON.parse(line) as Record<string, unknown>)
}

function report(line: string): void {
  process.stdout.write(`${line}\n`)
}
