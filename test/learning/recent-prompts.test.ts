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
    const request = { ...asking(prompt), enhance: true }
    const first = book.read('acc_1', request, true)
    expect(first.analysis).toEqual(read(request.messages))
    const again = book.read('acc_1', request, true)
    expect(again).toEqual(first)
    if (first.analysis.urls.length === 0) expect(again.analysis).toBe(first.analysis)
  }
})

test('recent prompts: contain only what a request depends on, and all once another needs more', () => {
  const named = { ...asking('Prove that there are infinitely many primes.'), model: 'openai/gpt-4.1' }
  const plain: ChatRequest = { ...named, dialect: 'chat_completions' }
  const all = read(named.messages)
  const { complexity, strongGain, needsCurrent, needsCurrentScore, language, ...traits } = all
  const first = (request: ChatRequest, canSearch: boolean) => open().read('acc_1', request, canSearch).analysis
  expect(first(plain, false)).toEqual(traits)
  expect(first({ ...plain, web: 'off' }, true)).toEqual(traits)
  expect(first(plain, true)).toEqual({ ...traits, needsCurrent, needsCurrentScore })
  expect(first({ ...plain, enhance: true }, false)).toEqual({ ...traits, language })
  for (const request of [named, { ...named, dialect: 'messages' as const, model: null }])
    expect(first(request, false)).toEqual({ ...traits, complexity, strongGain })
  const book = open()
  for (const [request, canSearch, expected] of [
    [plain, false, traits],
    [plain, true, all],
    [named, true, all],
    [plain, false, all],
  ] as const)
    expect(book.read('acc_1', request, canSearch).analysis).toEqual(expected)
})

test('recent prompts: use different digests per account and process, never the plain hash', () => {
  const digest = (account: string, salt: number) =>
    createAnalysisCache(readers, createKeyedDigests(new Uint8Array(32).fill(salt))).read(account, asking('Hi'), true)
      .digest
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
