import { expect, test } from 'bun:test'
import type { Tool } from '../../../src/core/chat/chat.ts'
import { collectDefinitions, mapDefinitionTexts } from '../../../src/core/chat/tool-definitions.ts'
import { createKeyedDigests } from '../../../src/core/text/keyed-digests.ts'
import { askWith } from '../../harness/ask.ts'

const tool = (description: string | null, parameters: Tool['parameters'] = null): Tool => {
  return { name: 'look_up', description, parameters, strict: null }
}
const of = (...tools: Tool[]) => collectDefinitions(askWith({ tools }))

test('createKeyedDigests: returns the same digest for definitions with the same content only', () => {
  const { of: digest } = createKeyedDigests(new Uint8Array(32))
  const digests = (...tools: Tool[]) => of(...tools).map(digest)
  const city = { type: 'object', properties: { city: { type: 'string', description: 'Where.' } } }
  const item = tool('Tells the weather.', city)
  expect(digests(structuredClone(item))).toEqual(digests(item))
  const other = structuredClone(city)
  other.properties.city.description = 'Where?'
  const distinct = digests(item, tool('Tells the weather', city), tool('Tells the weather.', other), tool(null, city))
  expect(new Set(distinct).size).toBe(4)
  expect(of()).toEqual([])
})

test('collectDefinitions: returns every key and text of a schema at any depth, without words of the API forms', () => {
  let deep: Record<string, unknown> = { type: 'string', enum: ['red', 'blue'], description: 'The end.' }
  for (let depth = 0; depth < 2_000; depth++) deep = { type: 'array', items: deep }
  const parameters = { properties: { 'not a plain name': deep, plain: {} }, required: ['plain'] }
  const texts = of(tool('Looks up.', parameters)).flatMap(item => item.texts)
  expect(texts.map(text => text.split('\n').sort())).toEqual([
    ['Looks up.'],
    ['The end.', 'blue', 'enum', 'look_up', 'not a plain name', 'plain', 'plain', 'red'],
  ])
  expect(mapDefinitionTexts(askWith({ tools: [tool(null, parameters)] }), text => text).tools).toEqual([
    tool(null, parameters),
  ])
})
