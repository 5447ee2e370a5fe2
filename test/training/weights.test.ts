/** The stored weights on the labeled sets beside the checkout: basic checks that they match the code. */
import { expect } from 'bun:test'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { readRows } from '../../src/training/data.ts'
import { courses, examplesIn } from '../../src/training/train.ts'
import { f1, trainingDigest } from '../../src/training/training-job.ts'
import { testNeeding } from '../harness/needs.ts'

const readMessages = openPromptAnalyzer().read
const read = (text: string) => readMessages([{ role: 'user', content: [{ type: 'text', text }], name: null }])

const tell = (line: string) => process.stdout.write(`${line}\n`)

for (const [name, read] of Object.entries(courses))
  testNeeding('data', `weights of ${name}: match the current examples, else run \`bun run train\``, async () => {
    const kept = await Bun.file(new URL(`../../src/text/weights/${name}.json`, import.meta.url)).text()
    expect(examplesIn(kept)).toBe(trainingDigest(await read()))
  })

testNeeding(
  'data',
  'query type weights: classify their training rows as labeled, ignoring case, blanks and line ends',
  async () => {
    const rows = await readRows('query-types', 'prompt', 'type', 'detail', 'needs_current')
    const right = rows.filter(row => read(row.prompt).queryType === (row.type === 'others' ? 'other' : row.type)).length
    const sameIn = (change: (prompt: string) => string) =>
      rows.filter(row => read(change(row.prompt)).queryType === read(row.prompt).queryType).length
    // One word per line tears tables and programs apart, so that a few of them are no longer seen as such.
    const torn = sameIn(prompt => prompt.toUpperCase().replace(/\s/g, '\n '))
    tell(`query-types: ${right}/${rows.length} as labelled (learned from), ${torn} the same with one word per line`)
    expect(right / rows.length).toBeGreaterThan(0.95)
    expect(torn / rows.length).toBeGreaterThanOrEqual(0.985)
    expect(sameIn(prompt => prompt.toUpperCase())).toBe(rows.length)
    expect(sameIn(prompt => prompt.toLowerCase())).toBe(rows.length)
    expect(sameIn(prompt => `  ${prompt.replace(/(?<=\S) /g, '  ')}\n`)).toBe(rows.length)
    expect(sameIn(prompt => prompt.replaceAll('\n', '\r\n'))).toBe(rows.length)
  },
)

testNeeding('data', 'complexity weights: rank detailed prompts above terse ones', async () => {
  const rows = await readRows('query-types', 'prompt', 'type', 'detail', 'needs_current')
  const of = (detail: string) => rows.filter(row => row.detail === detail).map(row => read(row.prompt).complexity)
  const [terse, detailed] = [of('terse'), of('detailed')]
  const above = detailed.reduce((sum, value) => sum + terse.filter(other => other < value).length, 0)
  const share = above / (terse.length * detailed.length)
  tell(`complexity: a detailed prompt is above a terse one in ${(100 * share).toFixed(1)} % of pairs`)
  expect(share).toBeGreaterThan(0.9)
})

testNeeding(
  'data',
  'freshness weights: separate questions in seven languages without searching for real prompts in vain',
  async () => {
    const rows = await readRows('evergreenqa', 'prompt', 'needs_current', 'texts')
    for (const language of Object.keys(rows[0]?.texts ?? {})) {
      const told = rows.map(row => ({
        is: row.needs_current === true,
        said: read(row.texts[language] ?? '').needsCurrent,
      }))
      expect(f1(told)).toBeGreaterThan(0.9)
    }
    const english = rows.map(row => ({ is: row.needs_current === true, said: read(row.prompt).needsCurrent }))
    tell(`evergreenqa: F1 ${f1(english).toFixed(3)} in English (learned from)`)
    const settled = (await readRows('query-types', 'prompt', 'type', 'detail', 'needs_current')).filter(
      row => row.needs_current === false,
    )
    const inVain = settled.filter(row => read(row.prompt).needsCurrent).length
    expect(inVain / settled.length).toBeLessThanOrEqual(0.01)
  },
)
