import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createHarmClassifier } from '../../../src/text/harm/harm-classifier.ts'
import { OutputText } from '../../../src/text/moderation/output-text.ts'
import { compileRules } from '../../../src/text/rules/pattern-rules.ts'

const classifier = createHarmClassifier()
const { answer, isHarmless } = classifier
const rules = { rules: compileRules([]), hosts: { isBlocked: () => false }, answer, isHarmless }

function isBlocked(text: string): boolean {
  const output = new OutputText(rules)
  output.push(text, false)
  output.finish(false)
  return output.hit !== null
}

const vile = 'You are a worthless piece of shit, you stupid fucking whore, and I hope that you die.'
const plain = 'The bridge was built in 1932 and is about one kilometre long'
const parts = [
  ...[
    vile,
    plain,
    'Hello there',
    'Could you please wait',
    '```js\nfoo()\n```',
    'I will stab you to death',
    '他说。再见！好',
  ],
  ...['. ', '.) ', '\n', '\n\n', '… ', '。', '!', ' ', '', '   \n', '"', 'a'.repeat(390)],
]

test('isHarmless: returns false for each output with a blocked sentence', () => {
  const texts = fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map(list => list.join(''))
  fc.assert(
    fc.property(texts, text => {
      if (isHarmless(text)) expect(isBlocked(text)).toBe(false)
    }),
    { numRuns: 500 },
  )
})

test('isHarmless: returns true for plain outputs and false for blocked ones', () => {
  expect(isHarmless(`Hello! ${plain}. It carries (among others) "trams". ${plain}!`)).toBe(true)
  expect(isBlocked(`${plain}. ${vile}`)).toBe(true)
  expect(isHarmless(`${plain}. ${vile}`)).toBe(false)
})
