import { describe, expect, test } from 'bun:test'
import { openPromptAnalyzer } from '../../../src/composition/open-prompt-analyzer.ts'
import type { ChatRequest, Message } from '../../../src/core/chat/chat.ts'
import { webLimits, webPrices } from '../../../src/core/chat/web-sources.ts'
import { noWeb, planWebAccess, toSearchQuery } from '../../../src/core/web/web-plan.ts'

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }], name: null })
const asking = (messages: readonly Message[], web: ChatRequest['web'] = 'auto') => ({ messages, web })
const offer = { canSearch: true, prices: webPrices, read: openPromptAnalyzer() }
const urls = [
  'https://a.example/',
  'https://b.example/x#one',
  'https://b.example/x#two',
  'https://c.example/',
  'https://d.example/',
]

describe('planWebAccess', () => {
  const question = [user('Search the web: who won yesterday?')]

  test('plans nothing for a prompt without need for the web', () => {
    expect(planWebAccess(asking(question), { needsCurrent: false, urls: [] }, {}, offer)).toBe(noWeb)
  })

  test('plans one search and each page once with their maximum cost, and reports more than three as surplus', () => {
    expect(planWebAccess(asking(question), { needsCurrent: true, urls }, {}, offer)).toEqual({
      query: 'Search the web: who won yesterday?',
      urls: ['https://a.example/', 'https://b.example/x#two', 'https://c.example/'],
      surplus: ['https://d.example/'],
      tokens: 3 * webLimits.pageTokens + webLimits.resultsTokens,
      microcents: 3 * webPrices.fetch + webPrices.search,
    })
  })

  test('plans nothing when the request, key or account has web access off', () => {
    const reading = { needsCurrent: true, urls }
    expect(planWebAccess(asking(question, 'off'), reading, {}, offer)).toBe(noWeb)
    expect(planWebAccess(asking(question), reading, { webOff: true }, offer)).toBe(noWeb)
  })

  test('plans no search for a page, unless the text around its URL requires one', () => {
    const reading = { needsCurrent: true, urls: ['https://a.example/'] }
    const query = (text: string) => planWebAccess(asking([user(text)]), reading, {}, offer).query
    expect(query('Read https://a.example/ and sum it up.')).toBeNull()
    expect(query('Search the web for more on https://a.example/')).toBe('Search the web for more on')
  })

  test('plans pages without a search back end', () => {
    const none = { ...offer, canSearch: false }
    expect(planWebAccess(asking(question), { needsCurrent: true, urls: [] }, {}, none)).toBe(noWeb)
    expect(
      planWebAccess(asking(question), { needsCurrent: true, urls: ['https://a.example/'] }, {}, none),
    ).toMatchObject({
      query: null,
      microcents: webPrices.fetch,
    })
  })

  test('plans nothing for a turn with only tool results', () => {
    const call = { id: 'c', name: 'f', arguments: '{}', signature: null }
    const after: Message[] = [
      ...question,
      { role: 'assistant', text: null, reasoning: null, toolCalls: [call], name: null },
      { role: 'tool', callId: 'c', text: '1' },
    ]
    expect(planWebAccess(asking(after), { needsCurrent: true, urls }, {}, offer)).toBe(noWeb)
  })
})

describe('toSearchQuery', () => {
  test.each([
    ['  Who   won\nyesterday? ', 'Who won yesterday?'],
    ['Summarise https://a.example/x and say who won', 'Summarise and say who won'],
    ['```js\nlet a = 1\n``` which version is newest?', 'which version is newest?'],
    [`${'Some background. '.repeat(60)}What is the price today? Thank you.`, 'What is the price today?'],
    ['https://only.example/', null],
    ['', null],
  ])('%j becomes %j', (text, query) => expect(toSearchQuery(text)).toBe(query))

  test('limits the length in linear time', () => {
    for (const text of [
      'a'.repeat(1_000_000),
      'word '.repeat(100_000),
      '? '.repeat(100_000),
      '```'.repeat(100_000),
      'http://'.repeat(50_000),
    ]) {
      const query = toSearchQuery(text) ?? ''
      expect(query.length).toBeLessThanOrEqual(400)
      expect(query.split(' ').length).toBeLessThanOrEqual(50)
    }
  })
})
