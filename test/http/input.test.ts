/** Bad input over a real socket: each invalid field gets the documented error, and nothing is repeated. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { exchangeRaw, rawText } from '../harness/raw.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

const canary = 'canary-51e8'
const native = '/api/v1/chat'
const compatible = '/v1/chat/completions'
const estimate = '/api/v1/chat/estimate'
const megabyte = 1_048_576

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
})
afterAll(() => gateway.stop())

type ErrorBody = { error: Record<'type' | 'code' | 'message' | 'request_id', string> & { param: string | null } }

/** Each estimate comes from its own IP address without a key, since addresses and accounts are counted. */
let addresses = 0
const elsewhere = (path: string) => ({
  'x-forwarded-for': `10.0.${(++addresses >> 8) & 255}.${addresses & 255}`,
  ...(path === estimate ? { authorization: 'none' } : {}),
})

/** Reads the error for a body; checks its envelope, and that neither it nor the log contains the body. */
async function refusal(path: string, body: unknown, headers: Record<string, string> = {}) {
  const lines = gateway.logLines.length
  const answer = await gateway.post(path, body, { ...elsewhere(path), ...headers })
  const text = await answer.text()
  const { error } = JSON.parse(text) as ErrorBody
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'request_id', 'type'])
  expect(answer.headers.get('x-request-id')).toBe(error.request_id)
  expect(answer.status).toBeLessThan(500)
  expect(text + JSON.stringify([...answer.headers]) + gateway.logLines.slice(lines).join('')).not.toContain(canary)
  return { status: answer.status, ...error }
}

const hello = { role: 'user', content: 'Hello' }
const tool = { type: 'function', function: { name: 'look' } }
const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const long = (length: number) => canary.padEnd(length, 'x')

/** For both endpoints: wrong type, range or length, or missing. The first entry is the expected `param`. */
const wrong: readonly (readonly [string, object])[] = [
  ...['model', 'strategy', 'stream_mode', 'web', 'reasoning_effort', 'mode'].map(
    name => [name, { [name]: 7 }] as const,
  ),
  ...['strategy', 'stream_mode', 'web', 'reasoning_effort', 'mode'].map(name => [name, { [name]: canary }] as const),
  ...['stream', 'enhance_prompt', 'test_mode', 'fallback'].map(name => [name, { [name]: canary }] as const),
  ...['temperature', 'top_p', 'seed', 'max_output_tokens'].flatMap(name =>
    [canary, '1', true, [], {}, -(2 ** 70)].map(value => [name, { [name]: value }] as const),
  ),
  ['temperature', { temperature: 2.01 }],
  ['top_p', { top_p: 1.01 }],
  ['seed', { seed: 1.5 }],
  ['max_output_tokens', { max_output_tokens: 0 }],
  ['max_output_tokens', { max_output_tokens: 1.5 }],
  ['max_output_tokens', { max_output_tokens: 2 ** 31 }],
  ['model', { model: '' }],
  ['model', { model: long(257) }],
  ['mode', { mode: 'gateway-ai', model: 'gpt-5.5' }],
  ['stop', { stop: 7 }],
  ['stop', { stop: ['1', '2', '3', '4', '5'] }],
  ['stop.0', { stop: [long(1025)] }],
  ['metadata', { metadata: canary }],
  ['metadata', { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, ''])) }],
  ['metadata.k', { metadata: { k: long(513) } }],
  ['metadata.k', { metadata: { k: 7 } }],
  ['tools', { tools: canary }],
  ['tools.0.function', { tools: [{ type: 'function' }] }],
  ['tools.0.function.name', { tools: [{ type: 'function', function: {} }] }],
  ['tools.0.function.name', { tools: [{ type: 'function', function: { name: `${canary} !` } }] }],
  ['tools.0.function.name', { tools: [{ type: 'function', function: { name: long(129) } }] }],
  ['tools.1.function.name', { tools: [tool, tool] }],
  ['tools', { tools: Array.from({ length: 1_025 }, (_, index) => ({ ...tool, function: { name: `f${index}` } })) }],
  ['tool_choice', { tools: [tool], tool_choice: canary }],
  ['tool_choice', { tool_choice: 'required' }],
  ['tool_choice.function.name', { tools: [tool], tool_choice: { type: 'function', function: { name: canary } } }],
  ['response_format.json_schema', { response_format: { type: 'json_schema' } }],
  ['response_format', { response_format: canary }],
  ['messages', { messages: [] }],
  ['messages', { messages: null }],
  ['messages', { messages: 7 }],
  ['messages', { messages: Array.from({ length: 10_001 }, () => hello) }],
  ['messages.0', { messages: [null] }],
  ['messages.0.role', { messages: [{}] }],
  ['messages.0.role', { messages: [{ role: canary, content: 'x' }] }],
  ['messages.0.content', { messages: [{ role: 'user' }] }],
  ['messages.0.content', user(7)],
  ['messages.0.content', user(null)],
  ['messages.0.content', user([])],
  ['messages.0.content.0', user([canary])],
  ['messages.0.content.0.type', user([{}])],
  ['messages.0.content.0.text', user([{ type: 'text' }])],
  ['messages.0.content.0.text', user([{ type: 'text', text: 7 }])],
  ['messages.0.content.0.image_url', user([{ type: 'image_url' }])],
  ['messages.0.content.0.image_url.url', user([{ type: 'image_url', image_url: {} }])],
  ['messages.0.content.0.image_url.url', user([{ type: 'image_url', image_url: { url: `file:///${canary}` } }])],
  ['messages.0.tool_call_id', { messages: [{ role: 'tool', content: 'x', tool_call_id: canary }] }],
  ['messages.0.tool_call_id', { messages: [{ role: 'tool', content: 'x' }] }],
  [
    'messages.1.tool_calls.0.function.name',
    { messages: [hello, { role: 'assistant', tool_calls: [{ ...call, function: { arguments: '{}' } }] }] },
  ],
  ['messages.1.tool_calls.0.id', { messages: [hello, { role: 'assistant', tool_calls: [{ ...call, id: 7 }] }] }],
  ['prompt', { prompt: 'x' }],
]

const wrongCompatible: readonly (readonly [string, object])[] = [
  ...['max_tokens', 'max_completion_tokens', 'n', 'top_logprobs'].flatMap(name =>
    [canary, 0.5, -1, 2 ** 53].map(value => [name, { [name]: value }] as const),
  ),
  ...['presence_penalty', 'frequency_penalty'].flatMap(name =>
    [canary, -2.1, 2.1].map(value => [name, { [name]: value }] as const),
  ),
  ...['logprobs', 'parallel_tool_calls'].map(name => [name, { [name]: canary }] as const),
  ['logit_bias', { logit_bias: canary }],
  ['logit_bias.5', { logit_bias: { 5: 101 } }],
  ['stream_options', { stream_options: {} }],
  ['stream_options.include_usage', { stream: true, stream_options: { include_usage: canary } }],
  ['top_logprobs', { top_logprobs: 2 }],
  ['user', { user: long(513) }],
  ['user', { user: 7 }],
  ['functions.0.name', { functions: [{ name: `${canary} ` }] }],
  ['function_call.name', { functions: [{ name: 'look' }], function_call: { name: canary } }],
  ['functions', { functions: [{ name: 'look' }], tools: [tool] }],
]

const wrongEstimate: readonly (readonly [string, object])[] = [
  ['messages', { messages: null }],
  ['messages', { messages: canary }],
  ['messages', { messages: [] }],
  ['messages.0.role', { messages: [{ role: canary, content: 'x' }] }],
  ['messages.0.content', { messages: [{ role: 'user' }] }],
  ['messages.0.content.0.type', user([{ type: canary }])],
  ['model', { model: 7 }],
  ['model', { model: long(257) }],
  ['max_output_tokens', { max_output_tokens: 0 }],
  ['max_output_tokens', { max_output_tokens: canary }],
  ['prompt', { prompt: 'x' }],
  [canary.slice(0, 6), { [canary.slice(0, 6)]: canary }],
]

describe('invalid field', () => {
  const rows = [
    ...wrong.flatMap(([param, fields]) => [native, compatible].map(path => [path, param, fields] as const)),
    ...wrongCompatible.map(([param, fields]) => [compatible, param, fields] as const),
    ...wrongEstimate.map(([param, fields]) => [estimate, param, fields] as const),
  ]
  test.each(rows.map(([path, param, fields]) => [path, param, JSON.stringify(fields).slice(0, 60), fields] as const))(
    'gets 400 with its path in `param`: %s: %s in %s',
    async (path, param, _shown, fields) => {
      const got = await refusal(path, { messages: [hello], ...fields })
      expect({ status: got.status, type: got.type, param: got.param }).toEqual({
        status: 400,
        type: 'invalid_request_error',
        param,
      })
      expect(['invalid_request', 'unsupported_parameter']).toContain(got.code)
    },
  )

  test.each([
    ['X-Gateway-Strategy', canary],
    ['X-Gateway-Stream-Mode', canary],
    ['X-Gateway-Web', ''],
    ['X-Gateway-Enhance', 'yes'],
    ['X-Gateway-Test-Mode', canary],
    ['X-Gateway-No-Fallback', canary],
    ['X-Gateway-Fallback-Max-Cost-Factor', canary],
  ])('gets 400 with its name in `param`: the header %s: %j', async (name, value) => {
    for (const path of [native, compatible])
      expect(await refusal(path, { messages: [hello] }, { [name]: value })).toMatchObject({ status: 400, param: name })
  })
})

describe('unknown fields', () => {
  test('get a named error on native endpoints, at the root and nested', async () => {
    for (const path of [native, estimate])
      for (const [param, body] of [
        ['colour', { messages: [hello], colour: canary }],
        ['messages.0.colour', { messages: [{ ...hello, colour: canary }] }],
        ['__proto__', `{"prompt":"x","__proto__":{"${canary}":1}}`],
      ] as const)
        expect(await refusal(path, body)).toMatchObject({ status: 400, code: 'invalid_request', param })
    expect(
      await refusal(native, { messages: [hello], response_format: { type: 'json_object', colour: canary } }),
    ).toMatchObject({ status: 400, param: 'response_format.colour' })
  })

  test('pass on the compatible endpoint, as do nulls that the format allows', async () => {
    const nulls = ['model', 'temperature', 'top_p', 'n', 'stop', 'max_tokens', 'tools', 'tool_choice', 'seed', 'user']
    const answer = await gateway.post(compatible, {
      messages: [{ ...hello, colour: 'blue', name: null }],
      colour: 'blue',
      ...Object.fromEntries(
        [...nulls, 'stream', 'response_format', 'metadata', 'logit_bias'].map(name => [name, null]),
      ),
    })
    expect(answer.status).toBe(200)
  })
})

test('metadata that Postgres cannot store: loses the invalid entries; its request is recorded and billed', async () => {
  const metadata = { 'a\0b': 'x\0', half: '\ud83d.' }
  const answer = await gateway.post(native, { prompt: '[[sim:tokens=5]] Hi', model: 'openai/gpt-4.1', metadata })
  const id = answer.headers.get('x-request-id') ?? ''
  expect(answer.status).toBe(200)
  await answer.text()
  const written = () =>
    gateway.deps.database.run(
      ({ sql }) => sql`select metadata, billed_microcents > 0 as is_paid from usage_records where request_id = ${id}`,
    )
  await eventually(async () => (await written()).length > 0, 5_000)
  expect([...(await written())]).toEqual([{ metadata: { 'a\ufffdb': 'x\ufffd', half: '\ufffd.' }, is_paid: true }])
})

describe('invalid body', () => {
  const bodies: readonly (readonly [string, string, number, string])[] = [
    ['empty', '', 400, 'invalid_json'],
    ['cut short', `{"prompt":"${canary}`, 400, 'invalid_json'],
    ['not JSON', canary, 400, 'invalid_json'],
    ['two objects', '{}{}', 400, 'invalid_json'],
    ['too deep', `${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}`, 400, 'invalid_json'],
    ['brackets without end', '['.repeat(1_000_000), 400, 'invalid_json'],
    ['of too many values', `{"${canary}":[${'{},'.repeat(262_144)}{}]}`, 400, 'invalid_json'],
    ['an array', `["${canary}"]`, 400, 'invalid_request'],
    ['null', 'null', 400, 'invalid_request'],
    ['a string', `"${canary}"`, 400, 'invalid_request'],
  ]
  test.each(bodies)('%s', async (_name, body, status, code) => {
    for (const path of [native, compatible])
      expect(await refusal(path, body)).toMatchObject({ status, code, param: null, type: 'invalid_request_error' })
    if (body.length <= 262_144) expect(await refusal(estimate, body)).toMatchObject({ status, code })
  })

  test.each([
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'application/jsonx',
    'application/json; charset=utf-16',
    'application/json; charset="iso-8859-1"',
  ])('gets 400 for the content type %s', async type => {
    for (const path of [native, compatible, estimate])
      expect(await refusal(path, { messages: [hello] }, { 'content-type': type })).toMatchObject({
        status: 400,
        code: 'invalid_request',
        param: 'content-type',
      })
  })

  test('gets an error about the encoding when it is compressed', async () => {
    for (const path of [native, compatible, estimate])
      expect(await refusal(path, { messages: [hello] }, { 'content-encoding': 'gzip' })).toMatchObject({
        status: 400,
        code: 'invalid_request',
        param: 'content-encoding',
      })
  })

  test('passes with a missing content type, `application/json; charset=utf-8` or a vendor type', async () => {
    const types = ['', 'application/json; charset=utf-8', 'application/json;charset= "UTF8"', 'application/vnd.me+json']
    for (const type of [...types, 'APPLICATION/JSON']) {
      const text = rawText(
        'POST /api/v1/chat',
        {
          host: 'localhost',
          authorization: `Bearer ${gateway.key}`,
          connection: 'close',
          ...(type === '' ? {} : { 'content-type': type }),
          'content-length': '15',
        },
        '{"prompt":"Hi"}',
      )
      expect((await exchangeRaw(gateway.port, text))?.status).toBe(200)
    }
  })
})

describe('body size', () => {
  /** Returns a native body of exactly this many bytes. */
  const sized = (bytes: number, inside = '') => {
    const [head, tail] = [`{${inside}"prompt":"[[sim:tokens=1]] ${canary}`, '"}']
    return head + 'x'.repeat(bytes - head.length - tail.length) + tail
  }
  const chunked = (body: string) =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        const bytes = new TextEncoder().encode(body)
        for (let at = 0; at < bytes.length; at += 262_144) controller.enqueue(bytes.subarray(at, at + 262_144))
        controller.close()
      },
    })
  const send = async (path: string, body: string, framing: 'length' | 'chunked', authorization = gateway.key) => {
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${authorization}`, 'content-type': 'application/json', ...elsewhere(path) },
      body: framing === 'length' ? body : chunked(body),
    })
    const text = await answer.text()
    expect(text).not.toContain(canary)
    return { status: answer.status, code: (JSON.parse(text) as ErrorBody).error.code }
  }

  for (const framing of ['length', 'chunked'] as const) {
    test(`one byte over 8 MB, ${framing}; 8 MB itself is read`, async () => {
      const tooLarge = { status: 413, code: 'body_too_large' }
      for (const path of [native, compatible]) {
        expect(await send(path, sized(8 * megabyte + 1), framing)).toEqual(tooLarge)
        // The body was read, and is invalid.
        const read = await send(path, sized(8 * megabyte, '"temperature":7,'), framing)
        expect(read).toEqual({ status: 400, code: 'invalid_request' })
      }
      expect(await send(estimate, sized(262_145), framing)).toEqual(tooLarge)
      expect(await send(estimate, sized(262_144), framing)).toEqual({ status: 400, code: 'invalid_request' })
      expect(await send(estimate, sized(4 * megabyte), framing)).toEqual(tooLarge)
    })

    test(`32 MB with images are read, ${framing}; one byte more is not`, async () => {
      const image = (bytes: number) =>
        sized(bytes, '"temperature":7,"messages":[{"role":"user","content":[{"type":"image","url":"data:,"}]}],')
      expect(await send(native, image(32 * megabyte), framing)).toEqual({ status: 400, code: 'invalid_request' })
      expect(await send(native, image(32 * megabyte + 1), framing)).toEqual({ status: 413, code: 'body_too_large' })
      const unauthenticated = await send(native, image(33 * megabyte), framing, 'nobody')
      // A declared length is checked before the key lookup.
      expect(unauthenticated).toEqual(
        framing === 'length' ? { status: 413, code: 'body_too_large' } : { status: 401, code: 'invalid_api_key' },
      )
    })
  }
})

describe('requested model', () => {
  test('gets 404 model_not_found when it is unknown', async () => {
    for (const path of [native, compatible, estimate])
      expect(await refusal(path, { messages: [hello], model: canary })).toMatchObject({
        status: 404,
        type: 'not_found_error',
        code: 'model_not_found',
        param: 'model',
      })
    const response = await fetch(`${gateway.url}/v1/models/${canary}`)
    expect([response.status, (await response.text()).includes(canary)]).toEqual([404, false])
  })

  test('gets 400 for a cap above its limit under the client’s own field name', async () => {
    const model = 'gpt-4.1'
    expect(await refusal(native, { messages: [hello], model, max_output_tokens: 32_769 })).toMatchObject({
      status: 400,
      code: 'invalid_request',
      param: 'max_output_tokens',
      message: '`max_output_tokens` must be at most 32768 for openai/gpt-4.1.',
    })
    for (const name of ['max_tokens', 'max_completion_tokens', 'max_output_tokens']) {
      const got = await refusal(compatible, { messages: [hello], model, [name]: 32_769 })
      expect(got).toMatchObject({ status: 400, code: 'invalid_request', param: name })
      expect(got.message).toContain(`\`${name}\``)
      const atLimit = await gateway.post(compatible, { messages: [hello], model, [name]: 32_768 })
      expect(atLimit.status).toBe(200)
    }
    const auto = await gateway.post(native, { messages: [hello], max_output_tokens: 2_000_000 })
    expect(auto.status).toBe(200)
    const streamed = await gateway.post(compatible, { messages: [hello], model, stream: true, max_tokens: 32_769 })
    expect(streamed.status).toBe(400)
  })
})

describe('invalid API key', () => {
  const keys: readonly (readonly [string, () => Record<string, string>])[] = [
    ['no key', () => ({ authorization: '' })],
    ['a malformed key', () => ({ authorization: 'Bearer sk-1234' })],
    [
      'an unknown key',
      () => ({ authorization: `Bearer ${mintApiKey(size => crypto.getRandomValues(Buffer.alloc(size))).key}` }),
    ],
    ['a key of the wrong scheme', () => ({ authorization: `Basic ${gateway.key}` })],
    ['a good key but for one character', () => ({ authorization: `Bearer ${gateway.key.slice(0, -1)}-` })],
  ]
  test.each(keys)('%s', async (_name, headers) => {
    const bodies = ['{', canary, '{"temperature":7}', '{"prompt":"Hi"}', 'x'.repeat(3 * megabyte)]
    for (const path of [native, compatible])
      for (const body of bodies)
        expect(await refusal(path, body, { 'content-type': 'text/plain', ...headers() })).toMatchObject({
          status: 401,
          type: 'authentication_error',
          code: 'invalid_api_key',
          param: null,
        })
  })

  test('passes when the key is valid, in x-api-key only or with `bearer` in any case', async () => {
    const send = (headers: Record<string, string>) =>
      fetch(gateway.url + native, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{"prompt":"Hi"}',
      })
    expect((await send({ 'x-api-key': gateway.key })).status).toBe(200)
    expect((await send({ authorization: `bEARER ${gateway.key}` })).status).toBe(200)
  })
})

test('client disconnect: causes no logged failure in the middle of a body', async () => {
  const lines = gateway.logLines.length
  for (const framing of [{ 'content-length': '1000' }, { 'transfer-encoding': 'chunked' }]) {
    const text = rawText(
      'POST /api/v1/chat',
      { host: 'localhost', 'x-api-key': gateway.key, ...framing },
      '5\r\n{"pro\r\n',
    )
    await exchangeRaw(gateway.port, text, 100)
  }
  await Bun.sleep(100)
  expect(gateway.logLines.slice(lines).filter(line => line.includes('"error"'))).toEqual([])
})
