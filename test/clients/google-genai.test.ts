/** The official `@google/genai` with the gateway as its base URL. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  ApiError,
  type Content,
  FunctionCallingConfigMode,
  type GenerateContentParameters,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
} from '@google/genai'
import { type MessagesRig, relayAnswer, startMessagesRig } from './messages-support.ts'
import { oneEach, pixel, placeSchema, simulatedPlace } from './support.ts'

setDefaultTimeout(240_000)

let rig: MessagesRig
let client: GoogleGenAI
const clientWith = (apiKey: string, headers: Record<string, string> = {}) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: rig.gateway.url, headers } })

beforeAll(async () => {
  rig = await startMessagesRig()
  client = clientWith(rig.gateway.key)
})
afterAll(() => rig.stop())

/** The newest request that a provider got. */
const sent = () => {
  const request = rig.sent.at(-1)
  if (request === undefined) throw new Error('no provider was asked')
  return { ...request, body: JSON.parse(request.text) }
}

/** Puts the frames of a stream together, as a client that keeps the history does. */
async function collected(params: GenerateContentParameters) {
  const parts: Part[] = []
  let last: GenerateContentResponse | null = null
  let ends = 0
  for await (const frame of await client.models.generateContentStream(params)) {
    for (const part of frame.candidates?.[0]?.content?.parts ?? []) parts.push(part)
    if (frame.candidates?.[0]?.finishReason !== undefined) ends++
    last = frame
  }
  expect(ends).toBe(1)
  return { parts, last }
}

async function whole(params: GenerateContentParameters) {
  const last = await client.models.generateContent(params)
  return { parts: last.candidates?.[0]?.content?.parts ?? [], last }
}

const saidText = (parts: readonly Part[]) => parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join('')
const user = (text: string): Content => ({ role: 'user', parts: [{ text }] })
const weather = {
  name: 'weather',
  description: 'Weather of a place',
  parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

const ways = [
  ['JSON', whole],
  ['stream', collected],
] as const

describe.each([...ways])('%s', (_way, send) => {
  test.each([...oneEach, 'gateway-ai'])('%s completes a conversation with a system instruction', async model => {
    const contents = [user('One'), { role: 'model', parts: [{ text: 'Two' }] }, user('Why is the sky blue?')]
    const { parts, last } = await send({ model, contents, config: { systemInstruction: 'Be brief.' } })
    expect(saidText(parts)).toContain('sky')
    expect(last?.candidates?.[0]?.finishReason as string).toBe('STOP')
    if (model !== 'gateway-ai') expect(last?.modelVersion).toBe(model)
    expect(last?.usageMetadata?.promptTokenCount).toBeGreaterThan(0)
    expect(last?.usageMetadata?.candidatesTokenCount).toBeGreaterThan(0)
    expect(last?.usageMetadata).toMatchObject({ cost_usd: expect.any(Number) })
  })

  test.each([...oneEach])('%s calls two tools and reads their results', async model => {
    const contents = [user('Weather? [[sim:parallel=2, preamble]]')]
    const config = { tools: [{ functionDeclarations: [weather, { ...weather, name: 'clock' }] }] }
    const { parts, last } = await send({ model, contents, config })
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? [])
    expect(calls.map(({ name, args }) => [name, args])).toEqual([
      ['weather', { city: 'simulated city' }],
      ['clock', { city: 'simulated city' }],
    ])
    expect(last?.candidates?.[0]?.finishReason as string).toBe('STOP')
    // The second result has no ID: its name finds the call.
    const results = calls.map(({ id = '', name = '' }, at) => ({
      functionResponse: { name, response: at === 0 ? { output: 'sunny' } : { error: 'gone' }, ...(at === 0 && { id }) },
    }))
    const turns = [...contents, { role: 'model', parts }, { role: 'user', parts: results }]
    const answered = await send({ model, contents: turns, config })
    expect(saidText(answered.parts)).toContain('sunny')
    expect(sent().text).toContain('gone')
  })

  test.each([...oneEach])('%s follows a schema, in the form of Google and of JSON', async model => {
    const schemas = [
      { responseJsonSchema: placeSchema },
      {
        responseSchema: {
          type: 'OBJECT',
          properties: { city: { type: 'STRING' }, days: { type: 'INTEGER' } },
          required: ['city', 'days'],
        },
      },
    ]
    for (const schema of schemas) {
      const config = { responseMimeType: 'application/json', ...schema }
      const { parts } = await send({ model, contents: 'A place', config } as GenerateContentParameters)
      expect(JSON.parse(saidText(parts))).toEqual(simulatedPlace)
    }
  })

  test.each([...oneEach])('%s reads an image and a document', async model => {
    const [, data = ''] = pixel.split(',')
    const pdf = Buffer.from('%PDF-1.4 a short document').toString('base64')
    const image = { inlineData: { mimeType: 'image/png', data } }
    const file = { inlineData: { mimeType: 'application/pdf', data: pdf } }
    const { parts } = await send({ model, contents: [{ role: 'user', parts: [image, file, { text: 'Look' }] }] })
    expect(saidText(parts)).not.toBe('')
    expect(sent().text).toContain(data)
    expect(sent().text).toContain(pdf)
  })

  test('shows thoughts to a client that wants them', async () => {
    for (const model of ['anthropic/claude-sonnet-5-5', 'google/gemini-3.8-flash'])
      for (const includeThoughts of [true, false]) {
        const config = { thinkingConfig: { includeThoughts } }
        const { parts, last } = await send({ model, contents: 'Think [[sim:reasoning=40]]', config })
        expect([model, parts.some(({ thought }) => thought === true)]).toEqual([model, includeThoughts])
        expect(saidText(parts)).not.toBe('')
        if (includeThoughts) expect(last?.usageMetadata?.thoughtsTokenCount).toBeGreaterThan(0)
      }
  })

  test('reports the cap, a stop by the filter, and cached tokens', async () => {
    const model = 'openai/gpt-5.4-mini'
    const reason = async (text: string, config = {}) =>
      (await send({ model, contents: text, config })).last?.candidates?.[0]?.finishReason as string
    expect(await reason('Tell me [[sim:tokens=200]]', { maxOutputTokens: 20 })).toBe('MAX_TOKENS')
    expect(await reason('Tell me [[sim:content_filter]]')).toBe('SAFETY')
    const { last } = await send({ model, contents: `${'word '.repeat(200)} [[sim:cached=40]]` })
    expect(last?.usageMetadata?.cachedContentTokenCount).toBe(40)
  })
})

describe('@google/genai', () => {
  test('keeps the history of a chat, with tools of every calling mode', async () => {
    const chat = client.chats.create({ model: 'openai/gpt-5.4-mini' })
    for (const message of ['One', 'Two']) for await (const _ of await chat.sendMessageStream({ message }));
    expect(chat.getHistory(true).filter(({ role }) => role === 'user')).toHaveLength(2)
    expect(sent().body.messages.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(sent().body.messages[1].content).toContain('You asked: “One”')
    const tools = [{ functionDeclarations: [weather, { ...weather, name: 'clock' }] }]
    const calling = (mode: FunctionCallingConfigMode, allowedFunctionNames?: string[]) =>
      whole({
        model: 'openai/gpt-5.4-mini',
        contents: 'Hello',
        config: {
          tools,
          toolConfig: { functionCallingConfig: { mode, ...(allowedFunctionNames && { allowedFunctionNames }) } },
        },
      })
    const { parts } = await calling(FunctionCallingConfigMode.ANY, ['clock'])
    expect(parts.map(({ functionCall }) => functionCall?.name)).toEqual(['clock'])
    expect((await calling(FunctionCallingConfigMode.NONE)).parts.some(part => part.functionCall)).toBe(false)
  })

  test('gets vectors, token counts, and the list of models', async () => {
    const model = 'gemini-embedding-001'
    const { embeddings = [] } = await client.models.embedContent({
      model,
      contents: ['a cat', 'a dog'],
      config: { outputDimensionality: 768, taskType: 'RETRIEVAL_QUERY' },
    })
    expect(embeddings.map(({ values }) => values?.length)).toEqual([768, 768])
    expect(sent().text).toContain('RETRIEVAL_QUERY')
    const direct = await rig.gateway.post('/v1/embeddings', { model, input: ['a cat', 'a dog'], dimensions: 768 })
    const { data } = (await direct.json()) as { data: { embedding: number[] }[] }
    expect(embeddings.map(({ values }) => values)).toEqual(data.map(({ embedding }) => embedding))
    const { totalTokens } = await client.models.countTokens({ model: 'gateway-ai', contents: 'How many are these?' })
    expect(totalTokens).toBeGreaterThan(2)
    const names: (string | undefined)[] = []
    for await (const { name } of await client.models.list({ config: { pageSize: 7 } })) names.push(name)
    expect(names.slice(0, 1)).toEqual(['models/gateway-ai'])
    expect(names.length).toBeGreaterThan(20)
    expect(new Set(names).size).toBe(names.length)
    const got = await client.models.get({ model: 'openai/gpt-4.1' })
    expect(got).toMatchObject({ name: 'models/gpt-4.1', supportedActions: expect.arrayContaining(['generateContent']) })
  })

  test('throws typed errors for a wrong key, an unknown model, an unknown field and a limit', async () => {
    const failing = async (send: Promise<unknown>) => {
      const error = await send.then(
        () => null,
        thrown => thrown,
      )
      expect(error).toBeInstanceOf(ApiError)
      const { error: body } = JSON.parse((error as ApiError).message)
      expect(body.code).toBe((error as ApiError).status)
      return [body.code, body.status, body.details[0].reason, body.details[1]?.fieldViolations?.[0].field]
    }
    const asked = { model: 'gateway-ai', contents: 'Hello' }
    expect(await failing(clientWith('gw_live_wrong').models.generateContent(asked))).toEqual([
      401,
      'UNAUTHENTICATED',
      'API_KEY_INVALID',
      undefined,
    ])
    expect(await failing(client.models.generateContent({ ...asked, model: 'none' }))).toEqual([
      404,
      'NOT_FOUND',
      'MODEL_NOT_FOUND',
      'model',
    ])
    const hot = { ...asked, config: { temperature: 9 } }
    expect(await failing(client.models.generateContent(hot))).toEqual([
      400,
      'INVALID_ARGUMENT',
      'INVALID_REQUEST',
      'generationConfig.temperature',
    ])
    const failed = client.models.generateContent({ ...asked, contents: 'Hello [[sim:status=500]]' })
    expect((await failing(failed)).slice(0, 2)).toEqual([502, 'INTERNAL'])
  })

  test('throws for a truncated stream, and never sees its end', async () => {
    for (const model of oneEach) {
      const contents = 'Tell me [[sim:tokens=300, chunk=10, reasoning=0, pace_ms=150, cut_after=4]]'
      let text = ''
      let end: unknown
      const headers = { 'x-gateway-continue': 'off' }
      const read = async () => {
        const stream = await client.models.generateContentStream({
          model,
          contents,
          config: { httpOptions: { headers } },
        })
        for await (const frame of stream) {
          text += frame.text ?? ''
          end ??= frame.candidates?.[0]?.finishReason
        }
      }
      const thrown = await read().then(
        () => null,
        error => error,
      )
      expect([model, thrown instanceof ApiError, end]).toEqual([model, true, undefined])
      expect(text).not.toBe('')
    }
  })
})

describe('reasoning', () => {
  const config = { tools: [{ functionDeclarations: [weather] }], thinkingConfig: { includeThoughts: true } }
  const result = { functionResponse: { name: 'weather', response: { output: 'sunny' } } }
  /** What a client sends back that drops thoughts, as gemini-cli does. */
  const turns = (question: string, parts: readonly Part[]): Content[] => [
    user(question),
    { role: 'model', parts: parts.filter(({ thought }) => thought !== true) },
    { role: 'user', parts: [result] },
  ]

  test('returns signatures of Google to Google as they are, and to no other provider', async () => {
    const question = 'Look it up [[sim:tool=weather]]'
    const model = 'google/gemini-3.8-flash'
    const { parts } = await whole({ model, contents: question, config })
    const signature = parts.find(part => part.functionCall)?.thoughtSignature ?? ''
    expect(signature).toMatch(/^Sim/)
    await whole({ model, contents: turns(question, parts), config })
    expect(sent().text).toContain(signature)
    for (const other of ['openai/gpt-5.4-mini', 'anthropic/claude-sonnet-5-5']) {
      await whole({ model: other, contents: turns(question, parts), config })
      expect(sent().text).not.toContain(signature)
    }
  })

  test.each(ways)('returns signed thinking of Anthropic to Anthropic only, sealed on its call: %s', async (_, send) => {
    const question = 'Look it up [[sim:tool=weather, reasoning=40]]'
    const model = 'anthropic/claude-sonnet-5-5'
    const { parts } = await send({ model, contents: question, config })
    const signature = parts.find(part => part.functionCall)?.thoughtSignature ?? ''
    expect(Buffer.from(signature, 'base64').toString()).toStartWith('gwr1.')
    // A client in Python writes base64 with other characters.
    const spelled = parts.map(part =>
      part.thoughtSignature === undefined
        ? part
        : { ...part, thoughtSignature: part.thoughtSignature.replaceAll('+', '-').replaceAll('/', '_') },
    )
    await send({ model, contents: turns(question, spelled), config })
    expect(sent().body.messages[1].content[0]).toMatchObject({ type: 'thinking', signature: expect.any(String) })
    for (const other of ['openai/gpt-5.4-mini', 'google/gemini-3.8-flash']) {
      await send({ model: other, contents: turns(question, parts), config })
      expect(sent().text).not.toContain(signature.slice(0, 40))
      expect(sent().text).not.toContain('gwr1.')
    }
  })

  test.each(ways)('returns unsigned reasoning to a provider that requires it with the call: %s', async (_, send) => {
    rig.script = request => relayAnswer(request, 'I look it up.', !request.body.includes('sunny'))
    const model = 'relay/thinker'
    const { parts } = await send({ model, contents: 'Weather?', config })
    await send({ model, contents: turns('Weather?', parts), config })
    expect(sent().body.messages[1]).toMatchObject({ reasoning_content: 'I look it up.', tool_calls: [{}] })
  })
})

describe('a body for Gemini', () => {
  const post = (path: string, text: string, headers: Record<string, string> = {}) =>
    fetch(`${rig.gateway.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-goog-api-key': rig.gateway.key, ...headers },
      body: text,
    })
  const path = '/v1beta/models/gemini-3.8-flash:generateContent'
  const contents = '[ {"parts" : [ {"text":"Hello"} ] , "role":"user"} ]'

  test('passes as it is written where it needs no change', async () => {
    const text = `{ "contents":${contents}, "safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"generationConfig" : {"topK":7, "maxOutputTokens":500, "temperature":0.50}}`
    expect((await post(path, text)).status).toBe(200)
    expect(sent().text).toBe(text)
  })

  test('gets only the cap of the gateway, and loses only its fields', async () => {
    const cap = expect.stringMatching(/^\d+$/)
    for (const [text, before, after] of [
      [`{"contents":${contents}}`, `{"contents":${contents},"generationConfig":{"maxOutputTokens":`, '}}'],
      [
        `{"generationConfig":{},"contents":${contents}}`,
        '{"generationConfig":{"maxOutputTokens":',
        `},"contents":${contents}}`,
      ],
      [
        `{"generationConfig":{"topP":0.90},"contents":${contents},"web":"off"}`,
        '{"generationConfig":{"topP":0.90,"maxOutputTokens":',
        `},"contents":${contents}}`,
      ],
    ] as const) {
      expect((await post(path, text)).status).toBe(200)
      const given = sent().text
      expect([given.slice(0, before.length), given.slice(-after.length)]).toEqual([before, after])
      expect(given.slice(before.length, -after.length)).toEqual(cap)
    }
  })

  test('takes names of protocol buffers, and is written again', async () => {
    const text = `{"contents":${contents},"generation_config":{"max_output_tokens":400},"system_instruction":{"parts":{"text":"Be brief."}}}`
    expect((await post(path, text)).status).toBe(200)
    expect(sent().body).toMatchObject({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      generationConfig: { maxOutputTokens: 400 },
    })
  })

  test('names fields that no provider receives', async () => {
    const text = `{"contents":${contents},"labels":{"a":"b"},"generationConfig":{"speechConfig":{}},"tools":[{"codeExecution":{}}]}`
    const { status, headers } = await post(path, text)
    expect(status).toBe(200)
    expect(headers.get('x-gateway-dropped-params')).toBe('labels, generationConfig.speechConfig, tools.codeExecution')
    expect(sent().text).not.toMatch(/labels|speechConfig|codeExecution/)
  })

  test.each([
    ['no contents', '{}', 'contents'],
    [
      'a stored file',
      '{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/a"}}]}]}',
      'contents.0.parts.0.fileData',
    ],
    [
      'audio',
      '{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/wav","data":"AAAA"}}]}]}',
      'contents.0.parts.0.inlineData',
    ],
    ['an unknown part', '{"contents":[{"parts":[{"executableCode":{"code":"1"}}]}]}', 'contents.0.parts.0'],
    ['a cache', `{"contents":${contents},"cachedContent":"cachedContents/a"}`, 'cachedContent'],
    [
      'a result without its call',
      '{"contents":[{"parts":[{"functionResponse":{"name":"a","response":{}}}]}]}',
      'contents.0.parts.0.functionResponse',
    ],
    ['a wrong type', '{"contents":[{"parts":[{"text":1}]}]}', 'contents.0.parts.0.text'],
  ])('gets an error that names the field, with %s', async (_, text, field) => {
    const response = await post(path, text)
    const { error } = (await response.json()) as { error: { details: { fieldViolations?: { field: string }[] }[] } }
    expect([response.status, error.details[1]?.fieldViolations?.[0]?.field]).toEqual([400, field])
  })

  test('has its model in the path in each spelling, and its key in each place', async () => {
    const text = '{"contents":[{"parts":[{"text":"Hello"}]}]}'
    const { key } = rig.gateway
    for (const name of ['models/openai/gpt-4.1', 'models/openai%2Fgpt-4.1', 'openai/gpt-4.1', 'models/gateway-ai'])
      expect([name, (await post(`/v1beta/${name}:generateContent`, text)).status]).toEqual([name, 200])
    const wrong = { 'x-goog-api-key': '' }
    expect((await post(path, text, wrong)).status).toBe(401)
    expect((await post(path, text, { 'x-goog-api-key': '', authorization: `Bearer ${key}` })).status).toBe(200)
    const query = await fetch(`${rig.gateway.url}${path}?key=${key}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: text,
    })
    expect(query.status).toBe(200)
    expect(rig.gateway.logLines.filter(line => line.includes(key))).toEqual([])
    const other = await post('/v1beta/models/gateway-ai:predict', text)
    expect([other.status, ((await other.json()) as { error: { status: string } }).error.status]).toEqual([
      404,
      'NOT_FOUND',
    ])
  })

  test('streams a JSON array without `alt=sse`, which ends in an error where the output is cut', async () => {
    const stream = '/v1beta/models/openai%2Fgpt-4.1:streamGenerateContent'
    const text = (prompt: string) => JSON.stringify({ contents: [{ parts: [{ text: prompt }] }], continue: 'off' })
    const read = async (prompt: string) => {
      const response = await post(stream, text(prompt))
      expect(response.headers.get('content-type')).toBe('application/json')
      return (await response.json()) as { error?: object; candidates?: { finishReason?: string }[] }[]
    }
    const complete = await read('Hello')
    expect(complete.map(({ candidates }) => candidates?.[0]?.finishReason).filter(Boolean)).toEqual(['STOP'])
    const cut = await read('Tell me [[sim:chunk=10, reasoning=0, pace_ms=150, cut_after=4]]')
    expect(cut.some(({ candidates }) => candidates?.[0]?.finishReason !== undefined)).toBe(false)
    expect(cut.at(-1)?.error).toMatchObject({ code: 502, status: 'INTERNAL' })
  })
})
