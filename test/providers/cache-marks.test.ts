import { expect, test } from 'bun:test'
import { withCacheMarks } from '../../src/providers/conversation-steps.ts'

const text = (name: string) => ({ type: 'text', text: name })
const ephemeral = { type: 'ephemeral' }

function blocks(users: number) {
  const turns = Array.from({ length: 2 * users - 1 }, (_, at) => ({
    role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
    parts: [text(`${at} a`), text(`${at} b`)],
  }))
  return { tools: [{ name: 'read' }, { name: 'write' }], system: [text('rules'), text('style')], turns }
}

/** Names of the marked blocks, in order. */
function marked({ tools, system, turns }: ReturnType<typeof withCacheMarks>): readonly unknown[] {
  return [...tools, ...system, ...turns.flatMap(({ parts }) => parts)]
    .filter(block => block.cache_control !== undefined)
    .map(block => block.text ?? block.name)
}

test.each([
  [1, null, []],
  [1, 'system', ['style']],
  [1, 'conversation', ['style', '0 b']],
  [3, 'conversation', ['style', '2 b', '4 b']],
] as const)('withCacheMarks: marks %i user turns with %p', (users, automatic, expected) => {
  expect(marked(withCacheMarks(blocks(users), new Map(), automatic))).toEqual([...expected])
})

test('withCacheMarks: marks the tools where there is no system text', () => {
  expect(marked(withCacheMarks({ ...blocks(1), system: [] }, new Map(), 'system'))).toEqual(['write'])
})

test('withCacheMarks: writes only the marks of the client, with their lifetime, if there are some', () => {
  const given = blocks(2)
  const own = new Map([
    [given.system[0] ?? {}, '1h' as const],
    [given.tools[1] ?? {}, '5m' as const],
  ])
  const result = withCacheMarks(given, own, 'conversation')
  expect(marked(result)).toEqual(['write', 'rules'])
  expect(result.system[0]?.cache_control).toEqual({ ...ephemeral, ttl: '1h' })
  expect(result.tools[1]?.cache_control).toEqual(ephemeral)
  expect(result.dropsMarks).toBe(false)
})

test('withCacheMarks: keeps the last four marks, the maximum of Anthropic', () => {
  const given = blocks(3)
  const all = [...given.tools, ...given.system, ...given.turns.flatMap(({ parts }) => parts)]
  const result = withCacheMarks(given, new Map(all.map(block => [block, '5m' as const])), null)
  expect(marked(result)).toEqual(['3 a', '3 b', '4 a', '4 b'])
  expect(result.dropsMarks).toBe(true)
})
