/**
 * `bun test/bench/reading.ts`: time of the prompt analysis (type, difficulty, freshness, language) and of the three
 * moderation layers, which every request waits for. Uses the prompts of ../shared/data unchanged, and joined to 4,000
 * characters. Takes the fastest of several rounds per text, which excludes other load; no text is cached.
 */
import type { Message } from '../../src/core/chat/chat.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { readRows } from '../../src/training/data.ts'
import { moderationFor } from '../text/moderation/layers/support.ts'

const turns = Number(process.env.BENCH_ROUNDS ?? 8)
const longCharacters = 4_000
const mostTexts = 2_000
const sets = [
  'query-types',
  'query-families',
  'evergreenqa',
  'harmful-requests',
  'prompt-injection',
  'routellm-gsm8k',
  'routellm-mmlu',
  'routerarena-sub10',
  'llmrouter-9models',
]

const prompts: string[] = []
for (const set of sets) {
  const rows = await readRows(set, 'prompt').catch(() => null)
  if (rows === null) {
    process.stdout.write(`${set} is not beside this checkout: nothing was measured\n`)
    process.exit(1)
  }
  prompts.push(...rows.map(({ prompt }) => prompt))
}
// In a deterministic order that mixes the sets.
prompts.sort((prompt, other) => Bun.hash.crc32(prompt) - Bun.hash.crc32(other))

const { read } = openPromptAnalyzer()
const moderation = moderationFor({}, { digests: null })
await moderation.ready

const short = prompts.filter(({ length }) => length <= longCharacters).slice(0, mostTexts)
const long = joined(prompts, longCharacters).slice(0, mostTexts)
for (const [name, work] of [
  ['reading', read],
  ['three safety layers', moderation.screenMessages],
] as const) {
  measure(`${name}, prompts as they are`, short, work)
  measure(`${name}, ${longCharacters} characters`, long, work)
}
moderation.close()

function measure(name: string, texts: readonly string[], work: (messages: readonly Message[]) => unknown) {
  const asked = texts.map((text): Message[] => [{ role: 'user', content: [{ type: 'text', text }], name: null }])
  const quickest = asked.map(() => Number.POSITIVE_INFINITY)
  for (let turn = 0; turn < turns; turn++)
    for (const [index, messages] of asked.entries()) {
      const startedAt = Bun.nanoseconds()
      work(messages)
      quickest[index] = Math.min(quickest[index] ?? 0, (Bun.nanoseconds() - startedAt) / 1_000)
    }
  const sorted = quickest.toSorted((value, other) => value - other)
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(1)
  process.stdout.write(`${name} (${texts.length}): p50 ${at(0.5)} µs, p99 ${at(0.99)} µs\n`)
}

function joined(texts: readonly string[], characters: number): string[] {
  const all: string[] = []
  let text = ''
  for (const name of texts) {
    text += `${name}\n`
    if (text.length < characters) continue
    all.push(text.slice(0, characters))
    text = ''
  }
  return all
}
