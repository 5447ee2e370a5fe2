import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { enhancePrompt, isWithinGrowthLimits } from '../../../src/text/enhancement/enhance.ts'
import { isValidRewrite } from '../../../src/text/enhancement/prompt-rewrite.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'

const read = openPromptAnalyzer().read
const prompt = 'Write a story about Anna and her 3 dogs in "Old Town"'
const added = 'Format: a finished piece with a clear ending.\nConstraints: vivid details, no clichés.'

const kept: readonly (readonly [string, string, string])[] = [
  ['lines behind the text', prompt, `${prompt}\n\n${added}`],
  ['a line in front of it', prompt, `For children of all ages.\n${prompt}\n${added}`],
  ['a list', prompt, `${prompt}\n\n- Format: a finished piece.\n- Tone: warm and calm throughout.`],
  ['mended capitals', 'write a story about a fox', `Write a story about a fox.\n\n${added}`],
  [
    'Russian',
    'Напиши рассказ про старый маяк',
    'Напиши рассказ про старый маяк\n\nФормат: законченный рассказ с началом и концом.\nУсловия: живые подробности.',
  ],
]

const broken: readonly (readonly [string, string, string])[] = [
  ['the same text', prompt, prompt],
  ['an answer in its place', prompt, 'Once upon a time there was a girl with a house full of dogs.\nThey were happy.'],
  ['a text that is gone in part', prompt, `Write a story about Anna in "Old Town".\n\n${added}`],
  ['a number lost', 'plan a trip of 5 days to Rome', `plan a trip of some days to Rome\n\n${added}`],
  ['names in another order', 'compare Anna and Boris as painters', `compare Boris and Anna as painters\n\n${added}`],
  ['an address changed', 'summarize https://a.example/x for me', `summarize https://a.example/y for me\n\n${added}`],
  ['a placeholder lost', 'write a note to {{name}} about lunch', `write a note to name about lunch\n\n${added}`],
  ['code changed', 'explain what `a.sort()` does to a list', `explain what \`a.sort(b)\` does to a list\n\n${added}`],
  ['a number invented', prompt, `${prompt}\n\nFormat: 200 words at most.`],
  ['a number invented in words', prompt, `${prompt}\n\nFormat: five paragraphs with an ending.`],
  ['an address invented', prompt, `${prompt}\n\nSources: https://b.example is a good one.`],
  ['a quotation invented', prompt, `${prompt}\n\nScope: begin with "once upon a time" and go on.`],
  ['a name invented', prompt, `${prompt}\n\nScope: set it in the days when old Napoleon ruled.`],
  [
    'another language',
    prompt,
    `${prompt}\n\nFormat: eine fertige Geschichte mit einem Anfang und einem Ende, die für alle Leser geeignet ist und nicht zu lang wird, mit Dialogen und einer klaren Sprache.`,
  ],
  ['still terse', 'Write a story about a fox', 'Write a story about a fox with a clear ending'],
  ['too long', prompt, `${prompt}\n\n${added.repeat(8)}`],
  [
    'a language where names are not told by capitals',
    '写一个关于灯塔的故事',
    '写一个关于灯塔的故事\n\n格式：有开头有结尾的完整作品。',
  ],
]

describe('isValidRewrite', () => {
  test.each(kept)('accepts a rewrite with %s', (_, original, rewritten) => {
    expect(isValidRewrite(original, rewritten, read)).toBe(true)
  })

  test.each(broken)('rejects a rewrite with %s', (_, original, rewritten) => {
    expect(isValidRewrite(original, rewritten, read)).toBe(false)
  })

  test('accepts only rewrites that fit and are not enhanced again', () => {
    const words = fc.constantFrom(
      ...prompt.split(' '),
      ...added.split(/\s/),
      '\n',
      '7',
      'the',
      'and',
      'https://a.example',
    )
    const texts = fc.array(words, { maxLength: 30 }).map(list => list.join(' '))
    const originals = fc.constantFrom(prompt, 'write a story about a fox', 'plan a trip of 5 days to Rome')
    let taken = 0
    fc.assert(
      fc.property(originals, texts, fc.boolean(), (original, text, isBehind) => {
        const rewritten = isBehind ? `${original}\n${text}` : text
        if (!isValidRewrite(original, rewritten, read)) return
        taken++
        expect(isWithinGrowthLimits(original, rewritten)).toBe(true)
        const numbers = (of: string): readonly string[] => of.match(/\d+/g) ?? []
        expect(numbers(rewritten).filter(number => !numbers(original).includes(number))).toEqual([])
        expect(enhancePrompt(rewritten, { queryType: 'creative', language: 'en' }).changed).toBe(false)
      }),
    )
    expect(taken).toBeGreaterThan(0)
  })
})
