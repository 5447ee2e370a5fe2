import { describe, expect, test } from 'bun:test'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import { createKeyedDigests } from '../../src/core/text/keyed-digests.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { createAnalysisCache } from '../../src/learning/recent-prompts.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'

const asking = (prompt: string): ChatRequest => readNative({ prompt }, new Headers(), prompt.length)
const readers = openPromptAnalyzer()
const { read } = readers
const open = () => createAnalysisCache(readers, createKeyedDigests(new Uint8Array(32)))

test('recent prompts: returns the usual analysis, the second time from memory', () => {
  const book = open()
  for (const prompt of ['Write a haiku.', 'Fix this: TypeError in line 3', 'Read https://example.com/a', 'Hi']) {
    const first = book.read('acc_1', asking(prompt))
    expect(first.analysis).toEqual(read(asking(prompt).messages))
    const again = book.read('acc_1', asking(prompt))
    expect(again).toEqual(first)
    if (first.analysis.urls.length === 0) expect(again.analysis).toBe(first.analysis)
  }
})

test('recent prompts: contain no difficulty for a named model until a request needs it', () => {
  const book = open()
  const named = { ...asking('Prove that there are infinitely many primes.'), model: 'openai/gpt-4.1' }
  const { complexity, strongGain, ...traits } = read(named.messages)
  expect(book.read('acc_1', { ...named, dialect: 'chat_completions' }).analysis).toEqual(traits)
  expect(book.read('acc_1', named).analysis).toEqual({ ...traits, complexity, strongGain })
  expect(book.read('acc_1', { ...named, dialect: 'messages', model: null }).analysis).toMatchObject({ strongGain })
  expect(book.read('acc_1', { ...named, dialect: 'chat_completions' }).analysis).toMatchObject({ complexity })
})

test('recent prompts: use different digests per account and process, never the plain hash', () => {
  const digest = (account: string, salt: number) =>
    createAnalysisCache(readers, createKeyedDigests(new Uint8Array(32).fill(salt))).read(account, asking('Hi')).digest
  const names = [digest('acc_1', 1), digest('acc_2', 1), digest('acc_1', 2)]
  expect(new Set(names).size).toBe(3)
  expect(names).not.toContain(new Bun.CryptoHasher('sha256').update('Hi').digest('base64'))
})

describe('repeated prompt', () => {
  const at = (id: string, from: number, to = from + 1_000) => ({ id, from, to })

  test('counts when sent again after reading time and before expiry', () => {
    for (const [pause, isRepeat] of [
      [0, false],
      [1_999, false],
      [2_000, true],
      [120_000, true],
      [120_001, false],
    ] as const) {
      const book = open()
      expect(book.answered('d', at('req_1', 0))).toBeNull()
      expect(book.answered('d', at('req_2', 1_000 + pause))).toBe(isRepeat ? 'req_1' : null)
    }
  })

  test('counts once, since programs repeat prompts', () => {
    const book = open()
    expect([1, 2, 3, 4].map(n => book.answered('d', at(`req_${n}`, n * 10_000)))).toEqual([null, 'req_1', null, null])
    expect(book.answered('other', at('req_5', 50_000))).toBeNull()
  })
})
