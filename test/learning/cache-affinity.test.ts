import { expect, test } from 'bun:test'
import type { ChatRequest, Message } from '../../src/core/chat/chat.ts'
import { type CacheAffinityTracker, createCacheAffinity } from '../../src/learning/cache-affinity.ts'
import { nextState } from '../../src/models/conversation.ts'
import { movableClock } from '../database/support.ts'
import { askWith, user } from '../harness/ask.ts'

const assistant = (text: string): Message => ({
  role: 'assistant',
  text,
  reasoning: null,
  toolCalls: [],
  name: null,
})
const asking = (messages: readonly Message[]): ChatRequest =>
  askWith({ messages, bodyCharacters: JSON.stringify(messages).length })

const story = 'Once upon a time there was a river. '.repeat(200)
const first = asking([user(story)])
const second = asking([user(story), assistant('I see.'), user('And then?')])
const by = (model: string, isCached: boolean | null = null) => ({
  model,
  inputTokens: 2_000,
  isCached,
  place: { host: 'openai', account: null },
  turn: null,
  effort: null,
  estimatedTokens: 2_000,
  microcents: 0,
})

function rig() {
  const clock = movableClock()
  return { clock, book: createCacheAffinity(clock, 'secret') }
}

test('cache affinity: keeps a conversation with its model for five minutes, per account', () => {
  const { clock, book } = rig()
  book.answered('acc_1', first, by('openai/a'))
  expect(book.of('acc_1', second)).toEqual({
    model: 'openai/a',
    tokens: 2_000,
    place: { host: 'openai', account: null },
  })
  expect(book.of('acc_2', second)).toBeNull()
  expect(book.of('acc_1', asking([user(`${story}!`), assistant('I see.'), user('And then?')]))).toBeNull()
  clock.move(5 * 60_000 + 1)
  expect(book.of('acc_1', second)).toBeNull()
})

test('cache affinity: uses a long system text for a first turn', () => {
  const { book } = rig()
  const system: Message = { role: 'system', text: 'You answer for a library. '.repeat(300) }
  book.answered('acc_1', asking([system, user('Are you open?')]), by('openai/a'))
  expect(book.of('acc_1', asking([system, user('Where is the cat?')]))?.model).toBe('openai/a')
  book.answered('acc_1', first, by('openai/a'))
  expect(book.of('acc_1', first)).toBeNull()
})

test('cache affinity: ends when a repeated request finds nothing cached', () => {
  const { book } = rig()
  book.answered('acc_1', first, by('openai/a'))
  book.answered('acc_1', second, by('openai/a'))
  expect(book.of('acc_1', second)).toBeNull()
  book.answered('acc_1', second, by('openai/a', true))
  expect(book.of('acc_1', second)?.model).toBe('openai/a')
})

test('cache affinity: ignores conversations too short for caching', () => {
  const { book } = rig()
  const short = asking([user('Hi'), assistant('Hello'), user('Bye')])
  book.answered('acc_1', short, by('openai/a'))
  expect(book.of('acc_1', short)).toBeNull()
  book.answered('acc_1', first, { ...by('openai/a'), inputTokens: 1_000 })
  expect(book.of('acc_1', second)).toBeNull()
})

test('cache affinity: ignores a model whose provider reports that it cached nothing', () => {
  const { book } = rig()
  book.answered('acc_1', first, by('anthropic/a', false))
  expect(book.of('acc_1', second)).toBeNull()
  expect(book.seen('acc_1', second)).toBe('conversation')
})

test('cache affinity: keeps a named session together whatever its messages, apart from other instructions', () => {
  const { book } = rig()
  const named = (text: string, system = 'You write code.') => ({
    ...asking([{ role: 'system', text: system }, user(`${text} ${story}`)]),
    session: 'thread_1',
  })
  book.answered('acc_1', named('one'), by('openai/a'))
  expect(book.of('acc_1', named('two'))?.model).toBe('openai/a')
  expect(book.of('acc_2', named('two'))).toBeNull()
  expect(book.of('acc_1', named('two', 'You review code.'))).toBeNull()
})

test('cache affinity: names the place of a conversation, and none for instructions that many share', () => {
  const { book } = rig()
  const system: Message = { role: 'system', text: 'You answer for a library. '.repeat(300) }
  const conversation = [system, user('Are you open?')]
  book.answered('acc_1', asking(conversation), by('openai/a'))
  const next = asking([...conversation, assistant('Yes.'), user('Until when?')])
  expect(book.of('acc_1', next)?.place).toEqual({ host: 'openai', account: null })
  expect(book.of('acc_1', asking([system, user('Where is the cat?')]))?.place).toBeUndefined()
})

test('cache affinity: forgets Anthropic after five minutes whatever OpenAI is asked to keep', () => {
  const { clock, book } = rig()
  book.answered('acc_1', { ...first, extras: { prompt_cache_retention: '24h' } }, by('anthropic/a', true))
  clock.move(6 * 60_000)
  expect(book.seen('acc_1', second)).toBeNull()
})

test('cache affinity: lasts as long as the client asked the provider to keep the prompt', () => {
  const { clock, book } = rig()
  const kept = { ...first, extras: { prompt_cache_retention: '24h' } }
  book.answered('acc_1', kept, by('openai/a'))
  clock.move(23 * 3_600_000)
  expect(book.of('acc_1', second)?.model).toBe('openai/a')
  clock.move(2 * 3_600_000)
  expect(book.of('acc_1', second)).toBeNull()
})

test('cache affinity: takes over a newer note of another instance with the same secret, and no other', () => {
  const clock = movableClock()
  const [here, there, foreign] = ['secret', 'secret', 'other'].map(secret => createCacheAffinity(clock, secret))
  if (here === undefined || there === undefined || foreign === undefined) throw new Error('three trackers')
  const facts = { kind: 'topic', level: 'strong', error: '', call: '', request: 'r', inputTokens: 2_000 } as const
  const turn = { ...nextState(null, facts), model: 'openai/a', effort: 'low' as const }
  const answer = (book: CacheAffinityTracker, model: string) =>
    book.answered('acc_1', second, { ...by(model), turn, effort: 'low' })
  const note = answer(there, 'openai/a')
  if (note === null) throw new Error('a turn leaves a note')
  expect(note.getText()).not.toContain('river')
  expect([here.nameShared('acc_1', second), here.nameShared('acc_1', first)]).toEqual([note.name, null])
  expect(foreign.nameShared('acc_1', second)).not.toBe(note.name)
  expect(foreign.adopt('acc_1', second, note.getText())).toBe(false)
  expect(here.adopt('acc_1', second, note.getText().replace('"low"', '"lower"'))).toBe(false)
  clock.move(60_000)
  expect(here.adopt('acc_1', second, note.getText())).toBe(true)
  expect(here.find('acc_1', second)).toMatchObject({ model: 'openai/a', effort: 'low', level: 'strong', turns: 1 })
  expect(here.of('acc_1', second)?.model).toBe('openai/a')
  expect([here, there].map(book => book.adopt('acc_1', second, note.getText()))).toEqual([false, false])
  // What the other instance has cached ages with the time of the note.
  clock.move(4 * 60_000 + 1)
  expect(here.of('acc_1', second)).toBeNull()
  answer(here, 'openai/b')
  expect(here.adopt('acc_1', second, note.getText())).toBe(false)
})
