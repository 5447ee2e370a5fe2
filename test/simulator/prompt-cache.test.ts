import { expect, test } from 'bun:test'
import { createPromptCaches } from '../../src/simulator/prompt-cache.ts'
import type { WireObject } from '../../src/simulator/wire-format.ts'

const minute = 60_000
const mark = { cache_control: { type: 'ephemeral' } }
const block = (text: string, marked: object = {}) => ({ type: 'text', text: text.padEnd(4_000, '.'), ...marked })
const turn = (...content: readonly object[]) => ({ role: 'user', content })

function rig() {
  let now = 0
  const usePromptCache = createPromptCaches({ now: () => now })
  return {
    wait(milliseconds: number) {
      now += milliseconds
    },
    use(provider: 'openai' | 'anthropic' | 'google', body: WireObject, tokens: number, key = 'key_a') {
      const request = { method: 'POST', path: '/v1/messages', headers: { 'x-api-key': key }, body: new Uint8Array() }
      return usePromptCache(provider, request, { model: 'm', ...body }, tokens)
    },
  }
}

test('prompt cache: writes at a mark, reads it again, and forgets it five minutes after the last use', () => {
  const { use, wait } = rig()
  const body = { system: [block('rules', mark)], messages: [turn(block('question'))] }
  expect(use('anthropic', body, 4_000)).toMatchObject({ cached: 0 })
  const first = use('anthropic', body, 4_000)
  expect(first.cached).toBeGreaterThan(1_900)
  expect(first.written).toBe(0)
  wait(4 * minute)
  expect(use('anthropic', body, 4_000).cached).toBe(first.cached)
  wait(4 * minute)
  expect(use('anthropic', body, 4_000).cached).toBe(first.cached)
  wait(6 * minute)
  expect(use('anthropic', body, 4_000)).toMatchObject({ cached: 0, written: first.cached })
})

test('prompt cache: caches nothing without a mark, for another key, another model, or below 1,024 tokens', () => {
  const { use } = rig()
  const body = { system: [block('rules', mark)], messages: [turn(block('question'))] }
  const unmarked = { system: [block('rules')], messages: [turn(block('question'))] }
  use('anthropic', body, 4_000)
  expect(use('anthropic', unmarked, 4_000)).toEqual({ cached: 0, written: 0 })
  expect(use('anthropic', body, 4_000, 'key_b').cached).toBe(0)
  expect(use('anthropic', { ...body, model: 'other' }, 4_000).cached).toBe(0)
  expect(use('anthropic', body, 1_500)).toEqual({ cached: 0, written: 0 })
})

test('prompt cache: finds an earlier mark at most 20 blocks before a new one', () => {
  const messages = (count: number) => [
    turn(block('start', mark)),
    turn(...Array.from({ length: count }, (_, at) => block(`block ${at}`, at === count - 1 ? mark : {}))),
  ]
  const near = rig()
  near.use('anthropic', { messages: [turn(block('start', mark))] }, 2_000)
  expect(near.use('anthropic', { messages: messages(19) }, 40_000).cached).toBeGreaterThan(1_000)
  const far = rig()
  far.use('anthropic', { messages: [turn(block('start', mark))] }, 2_000)
  // The first block carries its own mark, so only a lost mark shows the bound.
  const unmarked = [turn(block('start')), ...messages(20).slice(1)]
  expect(far.use('anthropic', { messages: unmarked }, 42_000).cached).toBe(0)
})

test('prompt cache: writes up to the last block for a mark at the top level', () => {
  const { use } = rig()
  const body = { ...mark, messages: [turn(block('question'))] }
  expect(use('anthropic', body, 3_000)).toEqual({ cached: 0, written: 3_000 })
  expect(use('anthropic', body, 3_000)).toEqual({ cached: 3_000, written: 0 })
})

test.each(['openai', 'google'] as const)(
  'prompt cache: reads the longest equal beginning without marks on %s',
  provider => {
    const { use } = rig()
    const name = provider === 'openai' ? 'messages' : 'contents'
    use(provider, { [name]: [turn(block('one')), turn(block('two'))] }, 3_000)
    const { cached, written } = use(
      provider,
      { [name]: [turn(block('one')), turn(block('two')), turn(block('x'))] },
      4_500,
    )
    expect([cached % 128, written]).toEqual([0, 0])
    expect(cached).toBeGreaterThan(2_800)
    expect(use(provider, { [name]: [turn(block('zero')), turn(block('two'))] }, 3_000).cached).toBe(0)
  },
)
