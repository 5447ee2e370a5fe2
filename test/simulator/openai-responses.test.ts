/** The simulated Responses API, by the official client. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

let simulator: Simulator
let client: OpenAI
beforeAll(async () => {
  simulator = await startSimulator({ clock: { now: () => Date.UTC(2026, 0, 31) }, random: Math.random })
  client = new OpenAI({ baseURL: simulator.urls.openai, apiKey: 'any', maxRetries: 0 })
})
afterAll(() => simulator.stop())

const model = 'gpt-5.5'
const tools: OpenAI.Responses.Tool[] = [
  {
    type: 'function',
    name: 'one',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    strict: false,
  },
  { type: 'custom', name: 'patch' },
]
const asked = {
  model,
  store: false,
  tools,
  include: ['reasoning.encrypted_content' as const],
  reasoning: { effort: 'low', summary: 'auto' } as const,
}

test('simulated Responses API: returns the same items as JSON and as a stream', async () => {
  const input = 'Go [[sim:parallel=2]]'
  const whole = await client.responses.create({ ...asked, input })
  const streamed = await client.responses.stream({ ...asked, input }).finalResponse()
  expect(whole.output.map(({ type }) => type)).toEqual(['reasoning', 'function_call', 'custom_tool_call'])
  const shape = (response: OpenAI.Responses.Response) =>
    response.output.map(item => [
      item.type,
      'summary' in item ? item.summary : 'arguments' in item ? item.arguments : '',
    ])
  expect(shape(streamed)).toEqual(shape(whole))
  expect(streamed.usage).toEqual(whole.usage)
  const capped = await client.responses.create({ ...asked, input: 'Go [[sim:tokens=99]]', max_output_tokens: 20 })
  expect([capped.status, capped.incomplete_details?.reason]).toEqual(['incomplete', 'max_output_tokens'])
})

test('simulated Responses API: rejects changed reasoning, unknown calls and stored references', async () => {
  const first = await client.responses.create({ ...asked, input: 'Go' })
  const again = [...first.output, { role: 'user' as const, content: 'More' }]
  const input: OpenAI.Responses.ResponseInput = JSON.parse(JSON.stringify(again))
  expect((await client.responses.create({ ...asked, input })).status).toBe('completed')
  const changed: OpenAI.Responses.ResponseInput = JSON.parse(JSON.stringify(input).replace('gAAAA', 'gAAAAA'))
  const refused = (fields: object) =>
    client.responses.create({ ...asked, input: 'Go', ...fields }).then(String, (error: unknown) => error)
  expect(await refused({ input: changed })).toMatchObject({ status: 400 })
  expect(await refused({ input: [{ type: 'item_reference', id: 'rs_1' }] })).toMatchObject({ status: 404 })
  expect(await refused({ input: [{ type: 'function_call_output', call_id: 'c', output: '' }] })).toMatchObject({
    status: 400,
  })
  expect(await refused({ store: true })).toMatchObject({ status: 400 })
  expect(await refused({ not_known: 1 })).toMatchObject({ status: 400, param: 'not_known' })
})
