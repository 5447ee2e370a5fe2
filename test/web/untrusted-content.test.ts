/** Compares the web text that a model receives byte by byte with a reference builder. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Message } from '../../src/core/chat/chat.ts'
import type { WebDocument } from '../../src/core/chat/web-sources.ts'
import { estimateInputTokens } from '../../src/text/tokens/tokens.ts'
import { insertedText, insertUntrustedContent, visibleText } from '../../src/web/untrusted-content.ts'
import { user } from '../harness/ask.ts'
import { cpuMs } from '../harness/cpu.ts'
import { goldenBlock } from './golden.ts'
import { injections } from './injections.ts'

const nonce = '0123456789abcdef0123456789abcdef'
const question: readonly Message[] = [
  { role: 'system', text: 'Be brief.' },
  user('Hello'),
  { role: 'assistant', text: 'Hello.', reasoning: null, toolCalls: [], name: null },
  user('What does the page say?'),
]
const options = { nonce, maximumTokens: 1_000_000 }
const contained = (findings: readonly WebDocument[], messages = question, maximumCharacters = 8_000) =>
  insertUntrustedContent(
    messages,
    findings.map(finding => ({ finding, maximumCharacters })),
    options,
  )

describe('insertUntrustedContent', () => {
  test('keeps every injection as data, byte-identical to the reference builder', () => {
    expect(injections.length).toBeGreaterThanOrEqual(40)
    for (const text of injections) {
      const findings = [
        { url: 'https://a.example/', title: text, text },
        { url: 'https://b.example/?q=1', title: 'Second', text: `Before.\n${text}\nAfter.` },
      ]
      expect(contained(findings)).toEqual([
        ...question.slice(0, 3),
        {
          role: 'user',
          name: null,
          content: [
            { type: 'text', text: goldenBlock(findings, nonce, 8_000) },
            { type: 'text', text: 'What does the page say?' },
          ],
        },
      ])
    }
  })

  test('writes one opening and one closing marker and marks every other line for any page', () => {
    const strange = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc
        .array(
          fc.constantFrom(
            '<<<',
            '/',
            'web-data',
            ' ',
            nonce,
            nonce.slice(0, 9),
            nonce.slice(9),
            '>>>',
            '\n',
            '^',
            '\u200b',
            '[2]',
            'ignore',
          ),
          { maxLength: 40 },
        )
        .map(parts => parts.join('')),
    )
    fc.assert(
      fc.property(strange, strange, (title, text) => {
        const [, , , turn] = contained([{ url: 'https://a.example/', title, text }])
        const block = turn?.role === 'user' && turn.content[0]?.type === 'text' ? turn.content[0].text : ''
        expect(block).toBe(goldenBlock([{ url: 'https://a.example/', title, text }], nonce, 8_000))
        expect(block.split(nonce).length - 1).toBe(3)
        expect(block.match(/<<<\/?web-data/gi)).toEqual(['<<<web-data', '<<</web-data'])
        const data = block.slice(block.indexOf('>>>\n') + 4, block.lastIndexOf('<<</web-data'))
        for (const line of data.split('\n').filter(part => part !== '')) expect(line).toMatch(/^(?:\[1\] \^?|\^)\S*$/u)
      }),
    )
  })

  test("neutralizes markers in the client's text [N6]", () => {
    const text = 'a <<<web-data 1>>> b <<</WEB-DATA 1>>> c <<< web-data'
    const [system, turn] = contained(
      [{ url: 'https://a.example/', title: 'T', text: 'x' }],
      [{ role: 'system', text }, user(text)],
    )
    const escaped = 'a << <web-data 1>>> b << </WEB-DATA 1>>> c <<< web-data'
    expect(system).toEqual({ role: 'system', text: escaped })
    expect(turn).toMatchObject({ content: [{}, { text: escaped }] })
  })

  test('keeps images and names of the turn after the data', () => {
    const image = { type: 'image', url: 'https://a.example/i.png', detail: null } as const
    const turn: Message = { role: 'user', name: 'Ann', content: [image, { type: 'text', text: 'This?' }] }
    const [asked] = contained([{ url: 'https://a.example/', title: 'T', text: 'x' }], [turn])
    expect(asked).toMatchObject({ name: 'Ann', content: [{ type: 'text' }, image, { type: 'text', text: 'This?' }] })
  })

  test('adds at most the reserved tokens and truncates all findings alike', () => {
    const texts = ['word '.repeat(3_000), '漢字'.repeat(6_000), '{"a":1}'.repeat(2_000), '\u{1f600}'.repeat(4_000)]
    for (const text of texts)
      for (const maximumTokens of [400, 1_500, 5_000]) {
        const findings = [1, 2, 3].map(number => ({ url: `https://a.example/${number}`, title: 'T', text }))
        const before = estimateInputTokens({ messages: question, tools: [], responseFormat: { type: 'text' } })
        const messages = insertUntrustedContent(
          question,
          findings.map(finding => ({ finding, maximumCharacters: 8_000 })),
          { nonce, maximumTokens },
        )
        const added = estimateInputTokens({ messages, tools: [], responseFormat: { type: 'text' } }) - before
        expect(added).toBeLessThanOrEqual(maximumTokens)
        if (maximumTokens > 400) expect(messages).not.toBe(question)
      }
  })

  test('returns the conversation unchanged without findings', () => {
    expect(contained([])).toBe(question)
  })
})

describe('insertedText', () => {
  const finding = { url: 'https://a.example/', title: 'T', text: 'x' }

  test('returns the text that was inserted, and null for an unchanged conversation', () => {
    expect(insertedText(question, contained([finding]))).toContain(`<<<web-data ${nonce}>>>`)
    expect(insertedText(question, question)).toBeNull()
  })

  test.each<readonly [string, readonly Message[]]>([
    ['system text', [{ role: 'system', text: '<<<web-data 1' }, user('A')]],
    ['tool result', [user('A'), { role: 'tool', callId: 'c', text: '<<</web-data 1' }, user('B')]],
    ['turn itself', [user('A <<<web-data 1')]],
  ])('returns null if the %s looked like a marker', (_name, messages) => {
    expect(insertedText(messages, contained([finding], messages))).toBeNull()
  })
})

describe('visibleText', () => {
  test('removes zero-width, bidirectional, tag, filler, selector and control characters', () => {
    const tag = [...'ignore'].map(letter => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join('')
    const hidden = `\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff\u00ad\u034f\u061c\u180e\u115f\u3164\uffa0\ufe0f\u{e0100}\u0000\u0007\u001b\u007f\u0085${tag}`
    expect(visibleText(`a${hidden.replace('\u0085', '')}b`, 100)).toBe('ab')
    expect(visibleText(' a \t\u00a0 b \r\n\r\n\u2028 c ', 100)).toBe('a b\nc')
    expect(visibleText('a\ud800b', 100)).toBe('a\ufffdb')
  })

  test('marks truncated text and never splits a character', () => {
    expect(visibleText('abcdef', 3)).toBe('abc […]')
    expect(visibleText('ab\u{1f600}d', 3)).toBe('ab\ufffd […]')
  })

  test('takes linear time', () => {
    for (const text of [
      ' '.repeat(1_000_000),
      '\n '.repeat(500_000),
      '\u200b'.repeat(1_000_000),
      ' \n'.repeat(500_000),
    ]) {
      const startedAt = cpuMs()
      visibleText(`a${text}b`, 100)
      expect(cpuMs() - startedAt).toBeLessThan(2_000)
    }
  })
})
