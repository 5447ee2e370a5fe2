import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { createFeatureReader } from '../../../src/text/analysis/features.ts'
import {
  createCueReader,
  createGainHead,
  createSlotReader,
  percentileRank,
} from '../../../src/text/analysis/quality-gain.ts'
import kept from '../../../src/text/weights/gain.json'
import { areaRecovered } from '../../../src/training/gain.ts'
import { describeNeeding } from '../../harness/needs.ts'

const read = createFeatureReader()
const head = createGainHead(kept)
const getGain = (text: string) => head(read(text))

const prompts = [
  'How many whole numbers below 500 are divisible by 3 or by 7, but not by both?',
  'Which of these is NOT a noble gas?\nA. Neon\nB. Argon\nC. Nitrogen\nD. Xenon',
  'Write a function that returns the longest run of equal items in a list',
  'def area(r):\n    return 3.14159 * r ** 2\n\nWhy does my test fail for r = 0?',
  'Who was the first woman to fly across the Atlantic',
  'Erkläre mir den Unterschied zwischen Wechselstrom und Gleichstrom.',
]

/** Changes that do not alter the question. */
const changes: Readonly<Record<string, (prompt: string) => string>> = {
  'upper case': prompt => prompt.toUpperCase(),
  'lower case': prompt => prompt.toLowerCase(),
  'double spaces': prompt => prompt.replaceAll(' ', '  '),
  'line feeds for spaces': prompt => prompt.replaceAll(' ', '\n'),
  'space around': prompt => `  ${prompt}\n\n`,
  'a question mark at the end': prompt => `${prompt}?`,
  'no punctuation at the end': prompt => prompt.replace(/[.!?:;,\s]+$/u, ''),
  please: prompt => `Please ${prompt}`,
  'hello and please': prompt => `Hello! Please, ${prompt}`,
  'could you please': prompt => `Could you please ${prompt}`,
  'can you': prompt => `Can you ${prompt}`,
}

describe('gain classifier', () => {
  test.each(Object.entries(changes))('returns the same gain after %s', (_, change) => {
    for (const prompt of prompts) expect(getGain(change(prompt))).toBe(getGain(prompt))
  })

  test('returns a gain from 0 to 1 for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), text => {
        const gain = getGain(text)
        expect(gain >= 0 && gain <= 1).toBe(true)
      }),
    )
  })

  test('returns a larger gain for multi-step work than for polite phrases and plain facts', () => {
    const work = [
      'Prove that every bounded monotone sequence of real numbers converges, then show where completeness was used',
      'Refactor this queue so that two consumers never take the same job, and explain why the algorithm cannot deadlock',
    ]
    const small = ['hi', 'thank you', 'What is the capital of Norway?', 'Name a colour']
    const least = Math.min(...work.map(getGain))
    for (const prompt of small) expect(getGain(prompt)).toBeLessThan(least)
  })

  test('does not depend on earlier texts', () => {
    const first = prompts.map(getGain)
    for (const prompt of prompts.toReversed()) getGain(prompt)
    expect(prompts.map(getGain)).toEqual(first)
  })

  test('reads a bounded part of a 1 MB text', () => {
    const long = Array.from({ length: 150_000 }, (_, index) => `word${index}`).join(' ')
    const { count } = createSlotReader(16)(read(long))
    expect(count).toBeLessThanOrEqual(8192)
    expect(getGain(long)).toBeWithin(0, 1.0001)
  })
})

describe('percentileRank', () => {
  test.each([
    [-1, 0],
    [0, 0],
    [5, 0.25],
    [10, 0.5],
    [20, 0.75],
    [30, 1],
    [99, 1],
  ])('returns the rank of %d among 0, 10 and 30 as %d', (value, rank) => {
    expect(percentileRank([0, 10, 30], value)).toBeCloseTo(rank, 12)
  })

  test('increases with the score, and the stored quantiles ascend', () => {
    expect(kept.quantiles).toEqual(kept.quantiles.toSorted((left, right) => left - right))
    expect(kept.quantiles).toHaveLength(101)
  })
})

describe('cues', () => {
  const getCues = (text: string) => Array.from(createCueReader()(read(text)))
  const hasOptions = 20

  test('counts answer options by their letters, but not an article', () => {
    expect(getCues('Which is a fish? A. cat B. dog C. cod D. cow')[hasOptions]).toBe(1)
    expect(getCues('A cat and a dog went to a bar')[hasOptions]).toBe(0)
  })

  test('returns finite values for every text, including an empty one', () => {
    for (const text of ['', '?', '...', ...prompts]) expect(getCues(text).every(Number.isFinite)).toBe(true)
  })
})

const folder = join(import.meta.dir, '../../../../shared/data')

/** The stored weights were trained on these rows: lower bounds on them, not a measure of generalization. */
describeNeeding('data', 'stored gain weights on ../shared', () => {
  const getRows = (set: string) =>
    readFileSync(join(folder, set, 'data.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line): { prompt: string; weak: number; strong: number } => JSON.parse(line))

  test.each([
    ['routellm-gsm8k', 0.68],
    ['routerarena-sub10', 0.68],
    ['routellm-mtbench', 0.68],
  ])('gainOf: recovers more area on %s than the stored lower bound', (set, least) => {
    const outcomes = getRows(set).map(({ prompt, weak, strong }) => ({ score: getGain(prompt), weak, strong }))
    expect(areaRecovered(outcomes)).toBeGreaterThan(least)
  })

  test.each([0.2, 0.5, 0.8])(
    'gainOf: routes at least 98 percent of rephrased prompts the same way for a share of %d',
    share => {
      const texts = ['routellm-gsm8k', 'routerarena-sub10', 'routellm-mtbench']
        .flatMap(getRows)
        .map(({ prompt }) => prompt)
      for (const change of Object.values(changes)) {
        const same = texts.filter(text => getGain(change(text)) >= 1 - share === getGain(text) >= 1 - share)
        expect(same.length / texts.length).toBeGreaterThanOrEqual(0.98)
      }
    },
  )
})
