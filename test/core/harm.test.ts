import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createFeatureReader } from '../../src/core/features.ts'
import { createHarmJudge } from '../../src/core/harm.ts'
import { createHarmClassifier } from '../../src/core/harm-verdict.ts'
import { harmKinds, wordsOf } from '../../src/core/harm-words.ts'
import { everydayRequests } from './everyday-requests.ts'

const known = harmKinds.flatMap(kind => [...wordsOf(kind)])

test('no text says more to the content head than was told without its neighbours', () => {
  const read = createFeatureReader()
  const judge = createHarmJudge()
  const word = fc.oneof(fc.constantFrom(...known), fc.lorem({ maxCount: 1 }), fc.string({ maxLength: 6 }))
  fc.assert(
    fc.property(fc.array(word, { maxLength: 60 }), words => {
      const features = read(words.join(' '))
      const most = judge.contentAtMost(features)
      expect(judge.read(features).content).toBeLessThanOrEqual(most)
    }),
    { numRuns: 2_000 },
  )
})

test('ordinary requests that nothing was learnt from are let through, but for one in two hundred', () => {
  const { prompt } = createHarmClassifier()
  const refused = everydayRequests.filter(text => prompt(text).category !== null)
  expect(refused.length, refused.join('\n')).toBeLessThanOrEqual(everydayRequests.length / 200)
})
