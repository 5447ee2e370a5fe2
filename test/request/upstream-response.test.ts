import { expect, test } from 'bun:test'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { applyParts, createUpstreamResponse } from '../../src/request/upstream-response.ts'
import { askWith } from '../harness/ask.ts'

test('applyParts: counts the items of a provider apart from the output', () => {
  const [model] = catalog
  if (model === undefined) throw new Error('the catalog is empty')
  const endpoint = { id: 'a', provider: anthropic, access: { baseUrl: '', apiKey: null }, simulated: false }
  const candidate = {
    model,
    endpoint,
    score: 1,
    place: 'requested' as const,
    health: 'healthy' as const,
    reason: () => '',
    parts: () => null,
  }
  const request = askWith({})
  const response = createUpstreamResponse({
    candidate,
    request,
    droppedParameters: [],
    outputCap: null,
    startedAt: 0,
    startedAtMs: 0,
  })
  const json = JSON.stringify({ type: 'web_search_tool_result', content: 'x'.repeat(50_000) })
  applyParts(
    response,
    [
      { type: 'provider_item', choice: 0, dialect: 'messages', json },
      { type: 'text', choice: 0, text: 'Found.' },
    ],
    1,
  )
  expect([response.text, response.itemCharacters, response.hasContent]).toEqual(['Found.', json.length, true])
})
