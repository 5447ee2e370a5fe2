/** Bedrock against its simulated form: signatures, both APIs, the event stream, and its failures. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import type { Model } from '../../src/core/models/models.ts'
import type { Network } from '../../src/core/ports.ts'
import { type AwsCredentials, awsAuthorizer } from '../../src/credentials/aws.ts'
import { systemClock } from '../../src/database/clock.ts'
import { readCompatible } from '../../src/dialects/chat-completions/request.ts'
import { AwsEventSplitter } from '../../src/providers/aws-event-stream.ts'
import { bedrock } from '../../src/providers/bedrock.ts'
import type { ServerSentEvent } from '../../src/providers/sse.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type AnswerPart, collected, recorded } from '../harness/answer-parts.ts'
import {
  accounts,
  attemptAt,
  type Clouds,
  fileWith,
  hostedAs,
  movableClock,
  ownModel,
  startClouds,
} from '../harness/clouds.ts'

const { region, accessKeyId, secretAccessKey, roleArn, webIdentityToken } = accounts.aws
const scope = { region, service: 'bedrock' }
const keys: AwsCredentials = { kind: 'keys', keys: { accessKeyId, secretAccessKey, sessionToken: null } }

const claude = hostedAs('anthropic', 'eu.anthropic.claude-simulated-v1:0')
const nova = ownModel('bedrock-eu', 'eu.amazon.nova-simulated-v1:0')
const models: readonly (readonly [name: string, model: Model])[] = [
  ['InvokeModel', claude],
  ['Converse', nova],
]

let simulator: Clouds
beforeAll(async () => {
  simulator = startClouds()
})
afterAll(() => simulator.stop())

function accessWith(credentials: AwsCredentials, given: { clock?: typeof systemClock; base?: string } = {}) {
  const deps = { clock: given.clock ?? systemClock, network: systemNetwork }
  return {
    baseUrl: given.base ?? simulator.urls.bedrock,
    apiKey: null,
    authorizer: awsAuthorizer(deps, credentials, scope),
  }
}

const send = (model: Model, body: Record<string, unknown> = {}, access = accessWith(keys)) =>
  attemptAt({ provider: bedrock, access, model, body })

describe.each(models)('Bedrock %s', (_, model) => {
  test('streams and answers whole with counts', async () => {
    for (const stream of [true, false]) {
      const answer = await send(model, { stream })
      expect(answer.failure).toBeNull()
      expect(answer.ended).toBe(true)
      expect(answer.text.length).toBeGreaterThan(20)
      expect(answer.parts.filter(({ type }) => type === 'finish')).toEqual([
        { type: 'finish', choice: 0, reason: 'stop' },
      ])
      const usage = answer.parts.findLast(part => part.type === 'usage')?.usage
      expect(usage?.inputTokens).toBeGreaterThan(0)
      expect(usage?.outputTokens).toBeGreaterThan(0)
    }
  })

  test('calls tools', async () => {
    const tools = [
      {
        type: 'function',
        function: {
          name: 'weather',
          parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      },
    ]
    for (const stream of [true, false]) {
      const { parts, failure } = await send(model, { stream, tools, prompt: 'Weather in Paris? [[sim:tool=weather]]' })
      expect(failure).toBeNull()
      expect(parts.find(part => part.type === 'tool_call')).toMatchObject({ name: 'weather' })
      const json = parts.map(part => (part.type === 'tool_arguments' ? part.text : '')).join('')
      expect(JSON.parse(json)).toHaveProperty('city')
      expect(parts.find(part => part.type === 'finish')).toMatchObject({ reason: 'tool_calls' })
    }
  })

  test('reads the same wherever the bytes of the stream are cut', async () => {
    const { text } = await send(model)
    for (const slice of [1, 3, 7]) {
      const cut = await send(model, { prompt: `Say hello. [[sim:tokens=40, slice=${slice}]]` })
      expect(cut.failure).toBeNull()
      expect(cut.text).toBe(text)
    }
  })

  // The splitter's own test cuts at every byte: a partial message is no event.
  test('never takes a stream that ends after any message for a complete one', async () => {
    const events = collected(new AwsEventSplitter()).push(await getStream(model))
    const isComplete = (count: number) => readEvents(model, events.slice(0, count)).some(({ type }) => type === 'end')
    const stops = events.findIndex(({ name, data }) => {
      const bytes: unknown = JSON.parse(data).bytes
      const text = typeof bytes === 'string' ? Buffer.from(bytes, 'base64').toString() : name
      return text.includes('message_stop') || text === 'messageStop'
    })
    expect(stops).toBeGreaterThan(3)
    for (let count = 0; count <= events.length; count++) expect(isComplete(count)).toBe(count > stops)
  })

  test('ends truncated when the connection closes at any frame', async () => {
    for (const after of [0, 1, 2]) {
      const answer = await send(model, { prompt: `Say hello. [[sim:tokens=40, cut_after=${after}]]` })
      expect(answer.ended).toBe(false)
    }
  })

  test('fails over after an exception in the stream', async () => {
    const { failure, ended } = await send(model, { prompt: 'Say hello. [[sim:tokens=40, error_after=1]]' })
    expect(ended).toBe(false)
    expect(failure).toMatchObject({ kind: 'generation_failed', blame: 'upstream', retryable: true })
    expect(failure?.detail).toBe('200 modelStreamErrorException')
  })

  test.each([
    ['status=429', 'rate_limited', 'upstream'],
    ['quota', 'quota_exhausted', 'us'],
    ['status=503', 'overloaded', 'upstream'],
    ['status=500', 'unavailable', 'upstream'],
    ['status=424', 'generation_failed', 'upstream'],
    ['status=403', 'credential_refused', 'us'],
    ['context_overflow', 'context_overflow', 'caller'],
    ['model_missing', 'model_missing', 'upstream'],
  ] as const)('reads the failure of [[sim:%s]] as %s', async (directive, kind, blame) => {
    const { failure } = await send(model, { prompt: `Hi [[sim:${directive}]]` })
    expect(failure).toMatchObject({ kind, blame })
  })
})

describe('Bedrock Converse', () => {
  test('sends history with calls, images, documents and a schema in Converse’s form', async () => {
    const { body, droppedParameters } = getRequest({
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ id: 'call|1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'call|1', content: '' },
        { role: 'user', content: 'And now?' },
      ],
      stop: ['END'],
      temperature: 1.5,
      seed: 1,
      response_format: { type: 'json_schema', json_schema: { name: 'Answer', schema: { type: 'object' } } },
    })
    expect(body).toMatchObject({
      system: [{ text: 'Be brief.' }],
      messages: [
        { role: 'user', content: [{ text: 'See' }, { image: { format: 'png', source: { bytes: 'AAAA' } } }] },
        { role: 'assistant', content: [{ toolUse: { toolUseId: 'call_1', name: 'f', input: { a: 1 } } }] },
        {
          role: 'user',
          content: [{ toolResult: { toolUseId: 'call_1', content: [{ text: '(empty)' }] } }, { text: 'And now?' }],
        },
      ],
      inferenceConfig: { maxTokens: 100, temperature: 1, stopSequences: ['END'] },
      toolConfig: { tools: [{ toolSpec: { name: 'f' } }] },
      outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: '{"type":"object"}' } } } },
    })
    expect(droppedParameters).toEqual(['seed'])
  })

  test('separates reasoning that a model writes into its text', () => {
    const reader = recorded(bedrock.streamReader())
    const read = (name: string, data: object) => reader.read({ name, data: JSON.stringify(data) })
    const delta = (text: string) => read('contentBlockDelta', { contentBlockIndex: 0, delta: { text } })
    const parts = [
      ...read('messageStart', { role: 'assistant' }),
      ...delta(' <think> Let me'),
      ...delta(' see. </think>'),
      ...delta('Hello'),
      ...read('contentBlockStop', { contentBlockIndex: 0 }),
      ...read('messageStop', { stopReason: 'end_turn' }),
      ...read('metadata', { usage: { inputTokens: 5, outputTokens: 7, cacheReadInputTokens: 3 } }),
    ]
    expect(parts).toEqual([
      { type: 'reasoning', choice: 0, text: ' Let me' },
      { type: 'reasoning', choice: 0, text: ' see. ' },
      { type: 'text', choice: 0, text: 'Hello' },
      { type: 'finish', choice: 0, reason: 'stop' },
      {
        type: 'usage',
        usage: { inputTokens: 8, cachedInputTokens: 3, cacheWriteTokens: 0, outputTokens: 7, reasoningTokens: 0 },
      },
      { type: 'end' },
    ])
  })

  test('ends with counts that precede the stop reason, and completes a call without arguments', () => {
    const reader = recorded(bedrock.streamReader())
    const read = (name: string, data: object) => reader.read({ name, data: JSON.stringify(data) })
    const parts = [
      ...read('contentBlockStart', { contentBlockIndex: 1, start: { toolUse: { toolUseId: 't1', name: 'now' } } }),
      ...read('contentBlockStop', { contentBlockIndex: 1 }),
      ...read('metadata', { usage: { inputTokens: 5, outputTokens: 7 } }),
      ...read('messageStop', { stopReason: 'tool_use' }),
    ]
    expect(parts.map(({ type }) => type)).toEqual(['tool_call', 'usage', 'tool_arguments', 'finish', 'end'])
    expect(parts[2]).toMatchObject({ text: '{}' })
  })

  test('reads an exception that AWS sends before any content as a failure of its kind', () => {
    const findKind = (name: string, message: string) => {
      const [part] = recorded(bedrock.streamReader()).read({
        name: `exception:${name}`,
        data: JSON.stringify({ message }),
      })
      return part?.type === 'failure' ? part.failure.kind : null
    }
    expect(findKind('throttlingException', 'Too many requests')).toBe('rate_limited')
    expect(findKind('serviceUnavailableException', 'Try later')).toBe('overloaded')
    expect(findKind('internalServerException', 'Oops')).toBe('unavailable')
    expect(findKind('modelTimeoutException', 'Slow')).toBe('timeout')
    expect(findKind('validationException', 'Input is too long for requested model.')).toBe('context_overflow')
    expect(findKind('validationException', 'Bad')).toBe('generation_failed')
  })
})

describe('Bedrock signature', () => {
  test('refuses a wrong secret as the gateway’s own failure, without the secret in the detail', async () => {
    const wrong: AwsCredentials = { kind: 'keys', keys: { accessKeyId, secretAccessKey: 'wrong', sessionToken: null } }
    for (const [, model] of models) {
      const { failure } = await send(model, {}, accessWith(wrong))
      expect(failure).toMatchObject({
        kind: 'credential_refused',
        blame: 'us',
        detail: '403 InvalidSignatureException',
      })
    }
  })

  test('covers the body, the path and the session token', async () => {
    const tampered = (change: (init: RequestInit) => RequestInit): Network => ({
      ...systemNetwork,
      fetch: (url, init) => systemNetwork.fetch(url, change(init)),
    })
    const access = accessWith(keys)
    const changes: ((init: RequestInit) => RequestInit)[] = [
      init => ({ ...init, body: `${String(init.body)} ` }),
      init => ({ ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), 'x-amz-security-token': 'x' } }),
    ]
    for (const change of changes) {
      const { failure } = await attemptAt({ provider: bedrock, access, model: nova, network: tampered(change) })
      expect(failure?.kind).toBe('credential_refused')
    }
  })

  test('follows the clock of AWS when this machine’s differs by an hour', async () => {
    for (const shift of [-3_600_000, 3_600_000]) {
      const { clock, move } = movableClock()
      move(shift)
      const access = accessWith(keys, { clock })
      const before = simulator.stats().requests
      // Requests that were signed before the first correction are repeated too.
      const all = await Promise.all(Array.from({ length: 3 }, () => send(nova, {}, access)))
      expect(all.map(({ failure }) => failure)).toEqual([null, null, null])
      expect(simulator.stats().requests - before).toBe(6)
      // The difference is remembered.
      expect((await send(nova, {}, access)).failure).toBeNull()
      expect(simulator.stats().requests - before).toBe(7)
    }
  })

  test('assumes a role by web identity once for concurrent requests, renews it early and after a revocation', async () => {
    const { clock, move } = movableClock()
    const clouds = startClouds(clock)
    try {
      const identity = {
        stsUrl: `${clouds.url}/sts`,
        roleArn,
        sessionName: 'gateway',
        tokenFile: fileWith(`${webIdentityToken}\n`),
      }
      const access = accessWith({ kind: 'web_identity', identity }, { clock, base: clouds.urls.bedrock })
      const all = await Promise.all(Array.from({ length: 8 }, () => send(nova, {}, access)))
      expect(all.map(({ failure }) => failure)).toEqual(all.map(() => null))
      expect(clouds.issued()).toBe(1)
      move(56 * 60_000)
      // Four minutes before their end the keys still serve, while new ones are fetched.
      expect((await send(nova, {}, access)).failure).toBeNull()
      expect((await send(nova, {}, access)).failure).toBeNull()
      expect(clouds.issued()).toBe(2)
      move(120_000)
      clouds.revokeTokens()
      expect((await send(nova, {}, access)).failure).toBeNull()
      expect(clouds.issued()).toBe(3)
    } finally {
      clouds.stop()
    }
  })

  test('reports a refused or unreadable web identity without its token', async () => {
    const stsUrl = `${simulator.url}/sts`
    const at = (tokenFile: string) =>
      accessWith({ kind: 'web_identity', identity: { stsUrl, roleArn, sessionName: 'gateway', tokenFile } })
    const refused = await send(nova, {}, at(fileWith('a-wrong-token')))
    expect(refused.failure).toMatchObject({ kind: 'credential_refused', blame: 'us' })
    expect(refused.failure?.detail).toBe('AWS role: 400 InvalidIdentityToken')
    const missing = await send(nova, {}, at('/nowhere/token'))
    expect(missing.failure?.detail).toBe('AWS role: the web identity token file cannot be read')
  })
})

describe('the simulated Bedrock', () => {
  const client = () =>
    new BedrockRuntimeClient({
      region,
      endpoint: simulator.urls.bedrock,
      credentials: { accessKeyId, secretAccessKey },
      maxAttempts: 1,
      // By default the client speaks HTTP/2.
      requestHandler: new NodeHttpHandler(),
    })
  const input = {
    modelId: 'amazon.nova-simulated-v1:0',
    messages: [{ role: 'user' as const, content: [{ text: 'Say hello. [[sim:tokens=40]]' }] }],
  }

  test('serves AWS’s own client', async () => {
    const whole = await client().send(new ConverseCommand(input))
    const text = whole.output?.message?.content?.[0]?.text ?? ''
    expect(text.length).toBeGreaterThan(20)
    const { stream } = await client().send(new ConverseStreamCommand(input))
    let streamed = ''
    let stopReason: string | undefined
    for await (const event of stream ?? []) {
      streamed += event.contentBlockDelta?.delta?.text ?? ''
      stopReason ??= event.messageStop?.stopReason
    }
    expect(streamed).toBe(text)
    expect(stopReason).toBe(whole.stopReason)
  })

  test('refuses AWS’s own client with a wrong secret', async () => {
    const wrong = new BedrockRuntimeClient({
      region,
      endpoint: simulator.urls.bedrock,
      credentials: { accessKeyId, secretAccessKey: 'wrong' },
      maxAttempts: 1,
      // By default the client speaks HTTP/2.
      requestHandler: new NodeHttpHandler(),
    })
    await expect(wrong.send(new ConverseCommand(input))).rejects.toMatchObject({ name: 'InvalidSignatureException' })
  })
})

/** Returns the bytes of a short stream. */
async function getStream(model: Model): Promise<Uint8Array> {
  let bytes: Uint8Array = new Uint8Array(0)
  const network: Network = {
    ...systemNetwork,
    async fetch(url, init) {
      const response = await systemNetwork.fetch(url, init)
      // A copy: an attempt releases what it has read.
      bytes = await response.bytes()
      return new Response(Buffer.from(bytes), response)
    },
  }
  const body = { prompt: 'Say hello. [[sim:tokens=12, chunk=20]]' }
  await attemptAt({ provider: bedrock, access: accessWith(keys), model, body, network })
  return bytes
}

function readEvents(model: Model, events: readonly ServerSentEvent[]): readonly AnswerPart[] {
  const { request: asked } = readCompatible({ prompt: 'Hi' }, new Headers(), 10)
  const form = bedrock.formFor?.({ request: asked, model, outputCap: 10, stream: true }) ?? bedrock
  const reader = recorded(form.streamReader())
  return [...events.flatMap(event => reader.read(event)), ...reader.finish()]
}

/** Returns the body that Converse gets for a request in OpenAI's form. */
function getRequest(body: Record<string, unknown>, model = nova) {
  const question = readCompatible({ model: 'm', ...body }, new Headers(), 1_000).request
  const request = bedrock.toRequest(
    { request: question, model, outputCap: 100, stream: false },
    { baseUrl: 'http://b', apiKey: null },
  )
  return { ...request, body: JSON.parse(request.body) }
}

test('Converse: asks in the prompt for a call that the model cannot be forced to make', () => {
  const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }
  const choice = { type: 'function', function: { name: 'look' } }
  const body = { messages: [{ role: 'user', content: 'Hi' }], tools: [tool], tool_choice: choice }
  const sentTo = (forcedToolChoice: Model['parameters']['forcedToolChoice']) =>
    getRequest(body, { ...nova, parameters: { ...nova.parameters, forcedToolChoice } }).body
  expect(sentTo('rejected')).toMatchObject({ system: [{ text: 'Answer by calling the tool `look`.' }] })
  expect(sentTo('rejected').toolConfig).not.toHaveProperty('toolChoice')
  expect(sentTo('accepted')).not.toHaveProperty('system')
})
