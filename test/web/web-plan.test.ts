import { describe, expect, mock, test } from 'bun:test'
import type { ChatRequest, Message } from '../../src/core/chat/chat.ts'
import { webLimits, webPrices } from '../../src/core/chat/web-sources.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { noWeb, planWebAccess, toSearchQuery } from '../../src/web/web-plan.ts'
import { user } from '../harness/ask.ts'

const asking = (messages: readonly Message[], web: ChatRequest['web'] = 'auto') => ({ messages, web })
const offer = { canSearch: true, prices: webPrices, read: openPromptAnalyzer().read }
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
    expect(planWebAccess(asking(question), { needsCurrent: false, needsCurrentScore: 0, urls: [] }, {}, offer)).toBe(
      noWeb,
    )
  })

  test('plans one search and each page once with their maximum cost, and reports more than three as surplus', () => {
    expect(planWebAccess(asking(question), { needsCurrent: true, needsCurrentScore: 1, urls }, {}, offer)).toEqual({
      query: 'Search the web: who won yesterday?',
      urls: ['https://a.example/', 'https://b.example/x#two', 'https://c.example/'],
      surplus: ['https://d.example/'],
      tokens: 3 * webLimits.pageTokens + webLimits.resultsTokens,
      microcents: 3 * webPrices.fetch + webPrices.search,
    })
  })

  test('plans nothing when the request, key or account has web access off', () => {
    const isReading = { needsCurrent: true, needsCurrentScore: 1, urls }
    expect(planWebAccess(asking(question, 'off'), isReading, {}, offer)).toBe(noWeb)
    expect(planWebAccess(asking(question), isReading, { webOff: true }, offer)).toBe(noWeb)
  })

  test('plans no search for a page, unless the text around its URL requires one', () => {
    const isReading = { needsCurrent: true, needsCurrentScore: 1, urls: ['https://a.example/'] }
    const query = (text: string) => planWebAccess(asking([user(text)]), isReading, {}, offer).query
    expect(query('Read https://a.example/ and sum it up.')).toBeNull()
    expect(query('Search the web for more on https://a.example/')).toBe('Search the web for more on')
  })

  test('plans pages without a search back end', () => {
    const none = { ...offer, canSearch: false }
    expect(planWebAccess(asking(question), { needsCurrent: true, needsCurrentScore: 1, urls: [] }, {}, none)).toBe(
      noWeb,
    )
    expect(
      planWebAccess(
        asking(question),
        { needsCurrent: true, needsCurrentScore: 1, urls: ['https://a.example/'] },
        {},
        none,
      ),
    ).toMatchObject({
      query: null,
      microcents: webPrices.fetch,
    })
  })

  test.each([true, false])('reads a turn without its conversation only for a search: %p', canSearch => {
    const read = mock(offer.read)
    const turns = asking([user('What does a permit cost in Ghent?'), user('And how old is it?')])
    planWebAccess(turns, { needsCurrent: false, needsCurrentScore: 0, urls: [] }, {}, { ...offer, canSearch, read })
    expect(read.mock.calls.length > 0).toBe(canSearch)
  })

  test('plans nothing for a turn with only tool results', () => {
    const call = { id: 'c', name: 'f', arguments: '{}', signature: null }
    const after: Message[] = [
      ...question,
      { role: 'assistant', text: null, reasoning: null, toolCalls: [call], name: null },
      { role: 'tool', callId: 'c', text: '1' },
    ]
    expect(planWebAccess(asking(after), { needsCurrent: true, needsCurrentScore: 1, urls }, {}, offer)).toBe(noWeb)
  })
})

describe('planWebAccess in a conversation', () => {
  const output = (text: string): Message => ({ role: 'assistant', text, reasoning: null, toolCalls: [], name: null })
  const planned = (messages: readonly Message[]) => planWebAccess(asking(messages), offer.read(messages), {}, offer)
  const after = (opening: string, turn: string) => planned([user(opening), output('Here it is.'), user(turn)])
  const tale = 'Write a fairy tale about a dragon called Smok.'
  const pointer = 'Look at https://a.example/ please.'

  test.each([
    ['Tell me about Airbus.', 'What is its stock price today?'],
    ['介绍一下比亚迪公司', '它今天的股价是多少？'],
    ['Erzähl mir etwas über Siemens.', 'Wie hoch ist der Aktienkurs heute?'],
    ['Расскажи о компании Яндекс.', 'Какая сейчас цена её акций?'],
    ['Who is the president of Brazil?', 'and of Chile?'],
  ])('adds the subject of an earlier turn when it is %j and the turn %j', (opening, turn) =>
    expect(after(opening, turn).query).toBe(`${opening} ${turn}`),
  )

  test.each([
    ['Tell me about Airbus.', 'What is the weather in Berlin today?'],
    [tale, 'Who won the Champions League last night?'],
    [tale, 'Search the web for the current price of Bitcoin.'],
  ])('searches the turn as written when it follows %j and names its subject: %j', (opening, turn) =>
    expect(after(opening, turn).query).toBe(turn),
  )

  test.each([
    [tale, 'next'],
    [tale, 'who is the king now?'],
    [tale, 'how rich is she today?'],
    [tale, 'wie alt ist er jetzt?'],
    [tale, '¿cuánto cuesta ahora?'],
    [tale, 'сколько ему сейчас лет?'],
    [tale, '他现在多大了？'],
    [tale, '지금 몇 살이야?'],
    ['Tell me about Airbus.', 'next question'],
    ['Fix this function: def f(x): return x+1', 'what is the current score?'],
    ['Help me plan my wedding.', 'how much is it?'],
  ])('searches nothing when the turn follows %j and has no current subject: %j', (opening, turn) =>
    expect(after(opening, turn)).toBe(noWeb),
  )

  test('searches nothing when a first turn has no subject', () => {
    expect(planned([user('next')])).toBe(noWeb)
    expect(planned([user('What is its stock price today?')])).toBe(noWeb)
    expect(planned([user('What is the latest news?')]).query).toBe('What is the latest news?')
  })

  test('searches nothing when only an output names the subject', () => {
    const messages = [user('hi'), output('Ask me about Airbus.'), user('What is its stock price today?')]
    expect(planned(messages)).toBe(noWeb)
  })

  test.each(['Summarize it.', 'Who wrote the article?', 'Fasse die Seite zusammen.', '总结一下这篇文章', 'Resúmelo.'])(
    'reads the page of an earlier turn when the turn refers to it: %j',
    turn => expect(after(pointer, turn).urls).toEqual(['https://a.example/']),
  )

  test.each(['make it shorter', 'thanks', 'What is the capital of Peru?'])(
    'reads no earlier page when the turn does not refer to it: %j',
    turn => expect(after(pointer, turn)).toBe(noWeb),
  )

  test('reads pages of the system text when a turn names a page or no turn precedes it', () => {
    const system: Message = { role: 'system', text: 'You answer from https://a.example/.' }
    expect(planned([system, user('Summarize it.')]).urls).toEqual(['https://a.example/'])
    const later = [system, user('hi'), output('Hello.')]
    expect(planned([...later, user('What does the document say about refunds?')]).urls).toEqual(['https://a.example/'])
    expect(planned([...later, user('Is it true?')]).urls).toEqual([])
    const many: Message = { role: 'system', text: urls.join(' ') }
    expect(planned([many, user('Summarize the page.')]).urls).toEqual([])
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
