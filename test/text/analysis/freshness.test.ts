import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { queryTypes } from '../../../src/core/chat/chat.ts'
import { adjustForQueryType } from '../../../src/text/analysis/freshness.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'
import { machineTexts } from '../../core/machine-texts.ts'

const readMessages = openPromptAnalyzer().read
const read = (text: string) => readMessages([{ role: 'user', content: [{ type: 'text', text }], name: null }])
const unit = fc.double({ min: 0, max: 1, noNaN: true })

describe('needsCurrent', () => {
  test.each([
    'What is the latest news from Berlin?',
    'What is the weather like in Rome today?',
    'Who won the match yesterday?',
    'Who is the prime minister of Norway?',
    'What does a share of Siemens cost right now?',
    'How old is Emma Watson?',
    "Is BASF's share price above 60 euros?",
    'How many goals has Harry Kane scored for his current club?',
    'Which airline carried the most passengers last year?',
    'Who is the most recent winner of the Turner Prize?',
    'What is the status of the Artemis II mission?',
    'Is Cloudflare down right now?',
    'Wer ist der aktuelle Trainer von Bayern München?',
    'Wie wird das Wetter morgen in Hamburg?',
    'Qui est le président de la Bolivie ?',
    '¿Quién es el presidente de Chile?',
    'Quanto custa o bitcoin hoje?',
    'Chi è il sindaco di Milano?',
    'Кто сейчас президент Франции?',
    'Какая погода сегодня в Москве?',
    '法国现任总统是谁？',
    '東京の今日の天気は？',
    'من هو رئيس مصر الحالي؟',
    'מי ראש הממשלה הנוכחי של בריטניה?',
    'Hello! What is the price of gold today (unit=ounce)?',
    '======\nWhat is the weather like in Rome today?\n======',
  ])('returns true for %j', text => {
    expect(read(text).needsCurrent).toBe(true)
  })

  test.each([
    'What is the capital of France?',
    'Who wrote Faust?',
    'In what year did the Berlin Wall fall?',
    'What is the boiling point of ethanol?',
    'How does a refrigerator work?',
    'On what date did Carthage fall?',
    'Where is the second president of Brazil buried?',
    'A shop sold 40 cups this week, twice as many as last week. How many cups has it sold in both weeks?',
    'Write a poem about today',
    'Sort an array by the current value in Python',
    'If Ann is 9 years old today and Ben twice as old, how old is Ben now?',
    'Write an email to tell my boss that I am ill today',
    'Wer schrieb die Buddenbrooks?',
    'Quelle est la capitale du Pérou ?',
    'Кто написал «Идиота»?',
    '谁发明了电话？',
    'من كتب ألف ليلة وليلة؟',
    'hello status=503',
    'hello [[sim:status=503]]',
    'Hello! date = today, price=3',
  ])('returns false for %j', text => {
    expect(read(text).needsCurrent).toBe(false)
  })

  test('returns false for 98% of log lines, queries, records, source and commands', () => {
    const searched = machineTexts.filter(text => read(text).needsCurrent)
    expect(searched.length, searched.join('\n')).toBeLessThanOrEqual(machineTexts.length / 50)
  })
})

describe('adjustForQueryType', () => {
  const types = (math: number) => Float64Array.from(queryTypes, type => (type === 'math' ? math : 0))

  test('keeps the probability when the type is uncertain', () => {
    for (const math of [0, 0.3, 0.5]) expect(adjustForQueryType(0.9, types(math))).toBe(0.9)
  })

  test('lowers the probability more the more certain the type is, and never raises it', () => {
    fc.assert(
      fc.property(unit, unit, unit, (chance, some, other) => {
        const [less, surer] = some < other ? [some, other] : [other, some]
        expect(adjustForQueryType(chance, types(surer))).toBeLessThanOrEqual(adjustForQueryType(chance, types(less)))
        expect(adjustForQueryType(chance, types(less))).toBeLessThanOrEqual(chance + 1e-12)
      }),
    )
  })

  test('keeps strong evidence above the threshold when the type is uncertain', () => {
    expect(adjustForQueryType(0.99, types(0.7))).toBeGreaterThan(0.5)
    expect(adjustForQueryType(0.99, types(0.99))).toBeLessThan(0.5)
  })

  test.each([0, 1])('keeps %d unchanged for any type', chance => {
    expect(adjustForQueryType(chance, types(1))).toBe(chance)
  })
})

describe('requestsWeb', () => {
  test.each([
    'Search the web for cheap flights to Oslo',
    'search the internet for a vegan bakery',
    'Browse the web and list three museums',
    'Look up the opening hours online',
    'As of today, which countries use the euro?',
    'Suche im Internet nach einer Ferienwohnung',
    'Kannst du das im Internet nachschlagen?',
    'Busca en internet una receta de paella',
    'Cherche sur internet un hôtel à Nice',
    'найди в интернете расписание автобусов',
    '上网搜一下附近的书店',
    'ネットで検索して',
    'Summarize https://example.com/news/today',
    'https://example.com/post what does this say?',
    'Fasse https://example.com/artikel zusammen',
    'Translate the article at https://example.com/a into German',
  ])('returns true for %j', text => {
    expect(read(text)).toMatchObject({ needsCurrent: true, needsCurrentScore: 1 })
  })

  test.each([
    'Write a Python script that fetches https://example.com and prints the title',
    'const data = await fetch("https://api.example.com/items").then(r => r.json()); // why does this return undefined?',
    'Build a web search engine in Rust',
    'Calculate pi up to 5 decimals and then double it',
  ])('returns false when the text only mentions the web: %j', text => {
    expect(read(text).needsCurrent).toBe(false)
  })
})
