import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createFeatureReader } from '../../../src/text/analysis/features.ts'
import { getLanguage } from '../../../src/text/analysis/language.ts'

const read = createFeatureReader()
const readAside = createFeatureReader()
const language = (text: string) => getLanguage(text, read(text), readAside)

describe('languageOf', () => {
  test.each([
    ['en', 'What is the fastest way to learn the violin?'],
    ['en', 'extract dates out of text'],
    ['en', 'planning a trip'],
    ['de', 'Wie lerne ich am schnellsten Geige?'],
    ['fr', 'Quelle est la façon la plus rapide d’apprendre le violon ?'],
    ['es', '¿Cuál es la manera más rápida de aprender el violín?'],
    ['pt', 'Qual é a maneira mais rápida de aprender violino?'],
    ['it', 'Qual è il modo più veloce per imparare il violino?'],
    ['nl', 'Wat is de snelste manier om viool te leren?'],
    ['sv', 'Vad är det snabbaste sättet att lära sig spela fiol?'],
    ['pl', 'Jak najszybciej nauczyć się gry na skrzypcach i dlaczego?'],
    ['tr', 'Keman çalmak için en hızlı yol ne?'],
    ['ru', 'Как быстрее всего научиться играть на скрипке?'],
    ['uk', 'Як найшвидше навчитися грати на скрипці і чому?'],
    ['el', 'Ποιος είναι ο πιο γρήγορος τρόπος;'],
    ['he', 'מה הדרך המהירה ביותר ללמוד כינור?'],
    ['ar', 'ما هي أسرع طريقة لتعلم الكمان؟'],
    ['fa', 'سریع‌ترین راه یادگیری چیست؟'],
    ['hi', 'वायलिन सीखने का सबसे तेज़ तरीका क्या है?'],
    ['zh', '学小提琴最快的方法是什么？'],
    ['ja', 'バイオリンを一番早く学ぶ方法は何ですか？'],
    ['ko', '바이올린을 가장 빨리 배우는 방법은 무엇인가요?'],
    ['th', 'วิธีที่เร็วที่สุดในการเรียนไวโอลินคืออะไร'],
    ['zh', '用Python写一个读取CSV文件的脚本'],
  ])('returns %s for: %s', (code, text) => {
    expect(language(text)).toBe(code)
  })

  test.each([
    ['en', 'resignation letter'],
    ['en', 'javascript remove duplicates'],
    ['en', 'marketing plan'],
    ['en', 'dockerfile for node'],
    ['de', 'Lebenslauf schreiben'],
    ['fr', 'lettre de motivation'],
    ['es', 'traduce hola'],
    ['pt', 'plano de estudos'],
    ['it', 'lettera di dimissioni'],
    ['nl', 'motivatiebrief schrijven'],
    ['pl', 'napisz wiersz'],
    ['tr', 'gezi planı'],
  ])('returns %s for a few words without a common one: %s', (code, text) => {
    expect(language(text)).toBe(code)
  })

  test.each([
    ['that many borrow, beside one that nobody knows', 'budget tabulka'],
    ['that several languages have', 'ordenar lista python'],
    ['that are a name', 'Nelson Mandela'],
    ['of which there is one', 'marketing'],
  ])('returns und for a few words in %s', (_, text) => {
    expect(language(text)).toBe('und')
  })

  test.each(['', '42 + 17', 'python', '{ } ;', '🙂🙂'])('returns und without evidence: %j', text => {
    expect(language(text)).toBe('und')
  })
  test.each([
    ['en', 'Summarise https://example.com/article in 3 bullets'],
    ['en', 'compare https://a.com and https://b.com'],
    ['en', 'Debug nginx for api.example.com'],
    ['en', 'Send a reminder email to john@example.com'],
    ['en', 'Write a tweet promoting https://shop.example.com'],
    ['de', 'Fasse https://example.de/artikel zusammen'],
    ['zh', '总结https://example.com/a/rather/long/path-that-goes-on-and-on.html这篇文章'],
    ['und', 'https://example.com/the/end/of/the/world'],
  ])('returns %s for the text around a URL: %s', (code, text) => {
    expect(language(text)).toBe(code)
  })

  test('ignores a URL after the text', () => {
    const label = fc.stringMatching(/^[a-z]{1,6}$/)
    const host = fc
      .tuple(label, fc.constantFrom('com', 'de', 'es', 'is', 'it', 'pt', 'io'))
      .map(parts => parts.join('.'))
    const address = fc.oneof(
      host,
      fc.tuple(label, host).map(parts => parts.join('@')),
      fc.webUrl().filter(url => !url.includes("'")),
    )
    const text = fc.constantFrom(
      ...['Compare these', 'Make a list', 'python', 'Fasse das zusammen', 'Résume cette page', 'Compara estas'],
      ...['Resuma esta página', '总结', 'これ', 'Сравни', '42 + 17'],
    )
    fc.assert(
      fc.property(text, address, (said, where) => {
        expect(language(`${said} ${where}`)).toBe(language(said))
      }),
      { numRuns: 60 },
    )
  })
})
