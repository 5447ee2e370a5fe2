/** Results of `analyze` without its process. */
import { expect, test } from 'bun:test'
import { openAnalysis } from '../../src/commands/analysis.ts'
import { readConfig } from '../../src/config/config.ts'

const texts = [
  'Hello!',
  'Hello there, what may I call you?',
  'What is the capital of Peru?',
  'Who won the cup last night?',
  'Schreibe ein Gedicht über den Herbst',
  'Compare tea and coffee for someone who sleeps badly.',
  'Why does this loop never end?\n```js\nfor (let at = 0; at < 9; at--) run(at)\n```',
  'Implement a lock-free queue in Rust and prove that it loses nothing.',
  'Prove that there are infinitely many primes of the form 4k + 3, derive a bound for the n-th of them, and discuss its sharpness.',
  'A patient of 61 years presents with chest pain. Which of the following is the most likely diagnosis? A) angina B) reflux C) pleurisy D) anxiety',
  'Plan a week in Lisbon with two children',
  `Summarize: ${'the tide came in and the boats went out. '.repeat(800)}`,
]
const lines = [
  ...texts.map(text => JSON.stringify({ text })),
  ...texts.map(content => JSON.stringify({ messages: [{ role: 'user', content }] })),
  JSON.stringify({
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'What is the capital of Peru?' },
    ],
  }),
  JSON.stringify({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: 'https://images.example/a.png' } },
        ],
      },
    ],
  }),
  'nonsense',
]

async function told(some: readonly string[]): Promise<string[]> {
  const analysis = await openAnalysis(readConfig())
  try {
    return analysis.of(some.join('\n')).text.split('\n').slice(0, -1)
  } finally {
    analysis.close()
  }
}

test('analysis: does not depend on earlier lines', async () => {
  const forwards = await told(lines)
  expect(new Set(forwards.map(line => JSON.stringify(JSON.parse(line).route))).size).toBeGreaterThan(3)
  expect((await told(lines.toReversed())).toReversed()).toEqual(forwards)
})

test('analysis: prints the level, and the ranges of request and material without their text', async () => {
  const [question, program] = ['Why does this loop never end?', '```js\nfor (let at = 0; at < 9; at--) run(at)\n```']
  const hard =
    'Prove that the scheduler cannot deadlock, derive its complexity, then refactor it into a lock-free queue.'
  const [simple, demanding, both] = (
    await told(
      [{ text: 'Hello!' }, { text: hard }, { text: `${question}\n${program}` }].map(line => JSON.stringify(line)),
    )
  ).map(line => JSON.parse(line))
  expect([simple.level, demanding.level]).toEqual(['light', 'strong'])
  expect(demanding.segments).toEqual([{ kind: 'request', from: 0, to: hard.length }])
  expect(both.segments).toEqual([
    { kind: 'request', from: 0, to: question.length },
    { kind: 'material', from: question.length + 1, to: question.length + 1 + program.length },
  ])
})
