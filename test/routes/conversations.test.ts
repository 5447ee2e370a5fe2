/** Sessions of an agent with automatic routing, against simulated providers. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { addAlert, evaluateNextAlert, listAlerts } from '../../src/console/alerts/store.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway(
    {},
    { file: { routing: { runaway: { stalled_turns: 4, lower_factor: 1.5, stop_factor: 2 } } }, ...withoutTimer },
  )
})
afterAll(() => gateway.stop())

const tool = { type: 'function', function: { name: 'run', parameters: { type: 'object', properties: {} } } }
const task =
  'Find why refunds are counted twice after midnight in the ledger, prove the cause, and fix it without a lock.'

/** Messages of an agent after some calls of its tool, with their results. */
function messagesAfter(name: string, results: readonly string[]) {
  const calls = results.flatMap((content, at) => {
    const call = { id: `c${at}`, type: 'function', function: { name: 'run', arguments: `{"step":${at}}` } }
    return [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: `c${at}`, content },
    ]
  })
  return [{ role: 'system', content: `You are ${name}, an agent.` }, { role: 'user', content: task }, ...calls]
}

/** Responses of all tests with a warning. */
let warned = 0

async function send(messages: readonly object[]): Promise<Response> {
  const response = await gateway.post('/v1/chat/completions', { model: 'gateway-ai', tools: [tool], messages })
  if (response.headers.has('x-gateway-conversation-warning')) warned++
  return response
}

test('conversation: keeps model and effort in a tool loop, also when its results are errors', async () => {
  const seen = new Set<string>()
  for (let turn = 0; turn < 4; turn++) {
    const results = Array.from({ length: turn }, (_, at) => (at % 2 === 0 ? 'Error: exit code 1' : 'ok'))
    const response = await send(messagesAfter('a builder', results))
    expect(response.status).toBe(200)
    expect(response.headers.get('x-gateway-conversation-warning')).toBeNull()
    seen.add(`${response.headers.get('x-gateway-model')} ${response.headers.get('x-gateway-effort')}`)
    await response.text()
  }
  expect(seen.size).toBe(1)
  expect([...seen][0]).toMatch(/^\w+\/\S+ (?:none|minimal|low|medium|high)$/)
})

test('conversation: raises the effort of the task after the same error twice, once the loop is over', async () => {
  const results = ['Error: no such table', 'Error: no such table', 'Error: no such table']
  let before: Response | null = null
  for (let turn = 0; turn <= results.length; turn++) {
    before = await send(messagesAfter('a fixer', results.slice(0, turn)))
    await before.text()
  }
  const answer = { role: 'assistant', content: 'It still fails.' }
  const after = await send([...messagesAfter('a fixer', results), answer, { role: 'user', content: 'try it again' }])
  expect(after.status).toBe(200)
  const [model, effort] = ['x-gateway-model', 'x-gateway-effort'] as const
  expect(after.headers.get(model)).toBe(before?.headers.get(model) ?? '')
  expect(after.headers.get(effort)).not.toBe(before?.headers.get(effort) ?? '')
})

test('conversation: warns of an agent that repeats a failure, then stops it with a code until a new topic', async () => {
  const steps: (string | null)[] = []
  let stopped: Response | null = null
  const results: string[] = []
  for (let turn = 0; turn < 9; turn++) {
    const response = await send(messagesAfter('a loop', results))
    steps.push(response.status === 200 ? response.headers.get('x-gateway-conversation-warning') : 'stopped')
    if (response.status !== 200) {
      stopped = response
      break
    }
    await response.text()
    results.push('Error: the same')
  }
  expect(steps.slice(0, 4)).toEqual([null, null, null, null])
  expect(steps.slice(4, 8)).toEqual(steps.slice(4, 8).map((_, at) => `${at + 4} turns in a row without progress`))
  expect(steps.at(-1)).toBe('stopped')
  expect(stopped?.status).toBe(400)
  expect(stopped?.headers.get('x-should-retry')).toBe('false')
  expect(await stopped?.json()).toMatchObject({
    error: { code: 'conversation_stopped', type: 'invalid_request_error' },
  })
  const topic = {
    role: 'user',
    content: 'Forget it. Write a limerick about the river Danube in spring instead, please.',
  }
  const answer = { role: 'assistant', content: 'I could not fix it.' }
  const next = await send([...messagesAfter('a loop', results), answer, topic])
  expect(next.status).toBe(200)
  expect(next.headers.get('x-gateway-conversation-warning')).toBeNull()
  await next.text()
})

test('conversation: an alert counts the requests beyond a bound, and resolves after their window', async () => {
  const { accountId, deps } = gateway
  const { database, config, clock } = deps
  expect(warned).toBeGreaterThan(1)
  const isRecorded = async () => {
    const rows = await database.run(
      ({ sql }) => sql`select from usage_records where trace ->> 'w' in ('warn', 'lower')`,
    )
    return rows.length === warned
  }
  await eventually(isRecorded)
  const rule = { id: 'alr_runaway', metric: 'runaway', threshold: 2, window_minutes: 60 } as const
  expect(await addAlert(database, accountId, { ...rule, budget: null, span: null, project_id: null })).toBe('done')
  const evaluate = (at: number) =>
    evaluateNextAlert(database, { at, plans: config.plans, budgets: new Map(), sendsMail: false })
  const texts = [`${warned} requests are of conversations beyond a bound of \`routing.runaway\``]
  expect(await evaluate(clock.now())).toMatchObject({ metric: 'runaway', value: warned, texts })
  const later = clock.now() + 61 * 60_000
  expect(await evaluate(later)).toBeNull()
  const [alert] = await listAlerts(database, accountId)
  expect(alert).toMatchObject({ firing: false, value: 0 })
})
