/**
 * The fault matrix: each way in which a stream of a provider fails, at each place of it, in each API form, streamed and
 * not, as the official client of the form sees it. Another model is healthy, or another host of the same one. The whole
 * matrix runs in the long variant, a part of it otherwise.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { startUpstream, type Upstream, type UpstreamAnswer, type UpstreamRequest } from '../harness/upstream.ts'
import { isLongVariant } from '../harness/variants.ts'
import { streamFaults } from './mid-stream.ts'
import { rig } from './shared-rig.ts'
import {
  eventStream,
  type Format,
  formats,
  getFrames,
  models,
  type Rig,
  readReply,
  reservationsTaken,
  startRig,
} from './support.ts'

const dialects = ['chat', 'responses', 'messages', 'native', 'gemini'] as const
/** The healthy part beside the failing host. */
const seconds = ['model', 'host'] as const
const places = ['before content', 'in text', 'in a call', 'in reasoning', 'in JSON', 'after the text'] as const
type Place = (typeof places)[number]

const beginning = 'The first words are here, '
const whole = `${beginning}and the rest follows.`
const json = '{"city":"Oslo"}'
const schema = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
  additionalProperties: false,
}

const expected = (place: Place) => (place === 'in a call' || place === 'in JSON' ? json : whole)

/** Frames of a call, complete or cut in its arguments. */
function callFrames(format: Format, isWhole: boolean): string {
  const text = isWhole ? json : json.slice(0, 7)
  const event = (type: string, rest: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, index: 1, ...rest })}\n\n`
  switch (format) {
    case 'openai': {
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: text } }
      return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })}\n\n`
    }
    case 'anthropic':
      return [
        event('content_block_start', {
          content_block: { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} },
        }),
        event('content_block_delta', { delta: { type: 'input_json_delta', partial_json: text } }),
        ...(isWhole ? [event('content_block_stop', {})] : []),
      ].join('')
    case 'google': {
      const part = { functionCall: { id: 'call_1', name: 'weather', args: JSON.parse(json) } }
      return `data: ${JSON.stringify({ candidates: [{ index: 0, content: { role: 'model', parts: [part] } }] })}\r\n\r\n`
    }
  }
}

function reasoningFrames(format: Format): string {
  const text = 'Let me think'
  switch (format) {
    case 'openai':
      return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { reasoning_content: text }, finish_reason: null }] })}\n\n`
    case 'anthropic':
      return [
        ['content_block_start', { content_block: { type: 'thinking', thinking: '', signature: '' } }] as const,
        ['content_block_delta', { delta: { type: 'thinking_delta', thinking: text } }] as const,
      ]
        .map(([type, rest]) => `event: ${type}\ndata: ${JSON.stringify({ type, index: 1, ...rest })}\n\n`)
        .join('')
    case 'google':
      return `data: ${JSON.stringify({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text, thought: true }] } }] })}\r\n\r\n`
  }
}

/** The beginning of a stream up to the place of a fault. */
function startUntil(format: Format, place: Place): string {
  const said = place === 'in JSON' ? json.slice(0, 7) : place === 'after the text' ? whole : beginning
  const { opening, content } = getFrames(format, [said])
  const rest = {
    'before content': '',
    'in text': content.join(''),
    'in a call': callFrames(format, false),
    'in reasoning': reasoningFrames(format),
    'in JSON': content.join(''),
    'after the text': content.join(''),
  }
  return opening.join('') + rest[place]
}

/** A whole answer: a call, JSON, or the text from its beginning, also where it continues one. */
function healthy(format: Format, place: Place): UpstreamAnswer {
  const isCall = place === 'in a call'
  const { opening, content, closing } = getFrames(format, isCall ? [] : [expected(place)])
  const frames = [...opening, ...(isCall ? [callFrames(format, true)] : content), ...closing].join('')
  const reasons = [
    ['"finish_reason":"stop"', '"finish_reason":"tool_calls"'],
    ['"end_turn"', '"tool_use"'],
  ] as const
  const text = isCall ? reasons.reduce((all, [from, to]) => all.replace(from, to), frames) : frames
  return { headers: eventStream, framing: 'chunked', pieces: [text] }
}

type Cell = {
  readonly name: string
  readonly fault: (typeof streamFaults)[number]
  readonly dialect: (typeof dialects)[number]
  readonly isStream: boolean
  readonly place: Place
  readonly failing: Format
  readonly second: (typeof seconds)[number]
}

/** A gateway where a second host serves every model. */
let hosts: Rig
let mirror: Upstream
let playMirror: (request: UpstreamRequest) => UpstreamAnswer = () => ({ status: 500 })
beforeAll(async () => {
  mirror = startUpstream(request => playMirror(request))
  const served = formats.map(format => ({ model: models[format] }))
  const file = { providers: [{ id: 'mirror', base_url: `${mirror.url}/v1`, api_key_env: 'MIRROR_KEY', hosts: served }] }
  hosts = await startRig({ file, environment: { MIRROR_KEY: 'key-of-mirror' } })
}, 240_000)
afterAll(async () => {
  await hosts.stop()
  mirror.stop()
})
const getRig = ({ second }: Pick<Cell, 'second'>) => (second === 'host' ? hosts : rig)

/** What a client has when it saw no error. */
type Got = { readonly text: string; readonly isContinued: boolean; readonly isEnded: boolean }

const wasContinued = (usage: unknown) => typeof usage === 'object' && usage !== null && 'continued' in usage

/** By default another host of the model goes on. */
const getHeaders = ({ second }: Cell): Record<string, string> =>
  second === 'host' ? {} : { 'x-gateway-continue': 'any', 'x-gateway-fallback-max-cost-factor': '1000' }

function openai(cell: Cell): OpenAI {
  const { url, key } = getRig(cell).gateway
  const defaultHeaders = getHeaders(cell)
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, logLevel: 'off', defaultHeaders })
}

function getArguments(calls: readonly OpenAI.Chat.ChatCompletionMessageToolCall[] | undefined): string | null {
  const [call] = calls ?? []
  return call?.type === 'function' ? call.function.arguments : null
}

async function chat(cell: Cell): Promise<Got> {
  const { name, isStream, place, failing } = cell
  const asked = {
    model: models[failing],
    messages: [{ role: 'user' as const, content: name }],
    ...(place === 'in a call'
      ? { tools: [{ type: 'function' as const, function: { name: 'weather', parameters: schema } }] }
      : {}),
    ...(place === 'in JSON'
      ? { response_format: { type: 'json_schema' as const, json_schema: { name: 'place', schema, strict: true } } }
      : {}),
  }
  if (!isStream) {
    const { choices, usage } = await openai(cell).chat.completions.create(asked)
    const [choice] = choices
    const text = getArguments(choice?.message.tool_calls) ?? choice?.message.content ?? ''
    return { text, isContinued: wasContinued(usage), isEnded: choice?.finish_reason != null }
  }
  const stream = openai(cell).chat.completions.stream({ ...asked, stream_options: { include_usage: true } })
  const { choices, usage } = await stream.finalChatCompletion()
  const [choice] = choices
  const text = getArguments(choice?.message.tool_calls) ?? choice?.message.content ?? ''
  return { text, isContinued: wasContinued(usage), isEnded: choice?.finish_reason != null }
}

async function responses(cell: Cell): Promise<Got> {
  const { name, isStream, place, failing } = cell
  const asked = {
    model: models[failing],
    input: name,
    ...(place === 'in a call'
      ? { tools: [{ type: 'function' as const, name: 'weather', parameters: schema, strict: true }] }
      : {}),
    ...(place === 'in JSON'
      ? { text: { format: { type: 'json_schema' as const, name: 'place', schema, strict: true } } }
      : {}),
  }
  const response = isStream
    ? await openai(cell).responses.stream(asked).finalResponse()
    : await openai(cell).responses.create(asked)
  if (response.status === 'failed') throw new Error(response.error?.message)
  const calls = response.output.flatMap(item => (item.type === 'function_call' ? [item.arguments] : []))
  const text = calls[0] ?? response.output_text
  return { text, isContinued: wasContinued(response.usage), isEnded: response.status === 'completed' }
}

async function messages(cell: Cell): Promise<Got> {
  const { name, isStream, place, failing } = cell
  const { url, key } = getRig(cell).gateway
  const defaultHeaders = getHeaders(cell)
  const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, logLevel: 'off', defaultHeaders })
  const asked = {
    model: models[failing],
    max_tokens: 8192,
    messages: [{ role: 'user' as const, content: name }],
    ...(place === 'in a call' ? { tools: [{ name: 'weather', input_schema: schema }] } : {}),
    ...(place === 'in JSON' ? { output_config: { format: { type: 'json_schema' as const, schema } } } : {}),
  }
  let isContinued = false
  const stream = () =>
    client.messages.stream(asked).on('streamEvent', event => {
      if (event.type === 'message_delta') isContinued = wasContinued(event.usage)
    })
  const message = isStream ? await stream().finalMessage() : await client.messages.create(asked)
  const parts = message.content.map(block =>
    block.type === 'text' ? block.text : block.type === 'tool_use' ? JSON.stringify(block.input) : '',
  )
  return { text: parts.join(''), isContinued, isEnded: message.stop_reason !== null }
}

async function native(cell: Cell): Promise<Got> {
  const { name, isStream, place, failing } = cell
  const asked = {
    prompt: name,
    model: models[failing],
    stream: isStream,
    ...(place === 'in a call'
      ? { tools: [{ type: 'function', function: { name: 'weather', parameters: schema } }] }
      : {}),
    ...(place === 'in JSON'
      ? { response_format: { type: 'json_schema', json_schema: { name: 'place', schema, strict: true } } }
      : {}),
  }
  const response = await getRig(cell).gateway.post('/api/v1/chat', asked, getHeaders(cell))
  const reply = readReply(response.status, response.headers, await response.text())
  if (reply.errors.length > 0) throw new Error(reply.errors[0]?.code)
  // The end of a stream has the whole calls once more.
  const [raw = ''] = isStream ? reply.raw.split('"type":"done"') : [reply.raw]
  const calls = [...raw.matchAll(/"arguments":("(?:[^"\\]|\\.)*")/g)].map(([, text = '""']) => JSON.parse(text))
  const text = place === 'in a call' ? calls.join('') : reply.text
  return { text, isContinued: reply.raw.includes('"continued":['), isEnded: reply.endings > 0 }
}

async function gemini(cell: Cell): Promise<Got> {
  const { name, isStream, place, failing } = cell
  const { url, key } = getRig(cell).gateway
  const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url, headers: getHeaders(cell) } })
  const asked = {
    model: models[failing],
    contents: name,
    config: {
      ...(place === 'in a call'
        ? { tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: schema }] }] }
        : {}),
      ...(place === 'in JSON' ? { responseMimeType: 'application/json', responseJsonSchema: schema } : {}),
    },
  }
  const frames = isStream
    ? await Array.fromAsync(await client.models.generateContentStream(asked))
    : [await client.models.generateContent(asked)]
  const parts = frames.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
  const texts = parts.map(({ text = '', thought, functionCall }) =>
    functionCall === undefined ? (thought ? '' : text) : JSON.stringify(functionCall.args),
  )
  return {
    text: texts.join(''),
    isContinued: frames.some(({ usageMetadata }) => wasContinued(usageMetadata)),
    isEnded: frames.some(({ candidates }) => candidates?.[0]?.finishReason !== undefined),
  }
}

const askIn = { chat, responses, messages, native, gemini }

type Verdict = 'finished' | 'continued' | 'error' | 'finished but cut'

async function judge(cell: Cell): Promise<Verdict> {
  let got: Got
  try {
    got = await askIn[cell.dialect](cell)
  } catch {
    return 'error'
  }
  if (!got.isEnded || got.text.replaceAll(' ', '') !== expected(cell.place).replaceAll(' ', ''))
    return 'finished but cut'
  return got.isContinued ? 'continued' : 'finished'
}

const cells: readonly Cell[] = streamFaults
  .flatMap((fault, row) =>
    dialects.flatMap((dialect, column) =>
      [true, false].flatMap(isStream =>
        places.flatMap((place, at) => {
          // A call of Gemini arrives whole.
          const failings = place === 'in a call' ? formats.filter(format => format !== 'google') : formats
          const failing = failings[(row + column + at) % failings.length] ?? 'openai'
          return seconds.map((second): Cell => ({ name: '', fault, dialect, isStream, place, failing, second }))
        }),
      ),
    ),
  )
  .map((cell, at) => ({ ...cell, name: `cell-${at}.` }))

/** A prime to the counts of dialects and places, so that a part has all of them. */
const step = isLongVariant() ? 1 : 13

const findName = (body: string) => /cell-\d+\./.exec(body)?.[0] ?? ''

/** Lets a fault wait until the gateway has read the beginning of its stream: a reset discards what it has not. */
function watchReads(watched: Rig) {
  const reads = new Map<string, { left: number; readonly resolve: () => void }>()
  watched.watch((body, response) => {
    const read = reads.get(findName(body))
    if (read === undefined || response.body === null) return response
    const transform = (bytes: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>) => {
      controller.enqueue(bytes)
      read.left -= bytes.length
      if (read.left <= 0) read.resolve()
    }
    const { status, headers } = response
    return new Response(response.body.pipeThrough(new TransformStream({ transform })), { status, headers })
  })
  return (name: string, first: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (first === '') resolve()
    reads.set(name, { left: Buffer.byteLength(first), resolve })
    return promise
  }
}

test('fault matrix: no client takes a cut output for a finished one, and texts go on', async () => {
  const wanted = cells.filter((_, at) => at % step === 0)
  const verdicts = new Map<Cell, Verdict>()
  const met = new Set<string>()
  const byName = new Map(wanted.map(cell => [cell.name, cell]))
  playMirror = ({ body }) => healthy('openai', byName.get(findName(body))?.place ?? 'in text')
  for (const all of [rig, hosts]) {
    const untilRead = watchReads(all)
    for (const format of formats)
      all.play(format, ({ body }) => {
        const cell = byName.get(findName(body))
        if (cell === undefined) return { status: 500 }
        if (cell.failing !== format) return healthy(format, cell.place)
        met.add(cell.name)
        const first = startUntil(format, cell.place)
        return cell.fault[2](format, { first, delivered: untilRead(cell.name, first) })
      })
  }
  const isWait = ({ fault: [, code] }: Cell) => code === 'upstream_timeout'
  const runLane = async (lane: readonly Cell[]) => {
    for (const cell of lane) {
      verdicts.set(cell, await judge(cell))
      // Each cell finds its provider healthy.
      const { health } = getRig(cell).gateway.deps
      for (let count = 0; count < 20; count++) health.report(models[cell.failing], { outcome: 'ok' })
    }
  }
  for (const waits of [false, true]) {
    for (const all of [rig, hosts]) {
      all.heal()
      all.waitBriefly(waits)
    }
    const phase = wanted.filter(cell => isWait(cell) === waits)
    const lanes = Map.groupBy(phase, ({ failing, second }) => `${failing} ${second}`)
    await Promise.all([...lanes.values()].map(runLane))
  }
  for (const line of table(verdicts)) process.stdout.write(`${line}\n`)
  rig.watch((_, response) => response)
  expect(wanted.filter(({ name }) => !met.has(name)).map(({ name }) => name)).toEqual([])
  const unlike = [...verdicts].filter(([cell, verdict]) => verdict !== getVerdict(cell))
  expect(
    unlike.map(([{ fault, dialect, isStream, place, failing, second }, verdict]) =>
      [fault[0], dialect, isStream, place, failing, second, verdict].join(),
    ),
  ).toEqual([])
  const texts = [...verdicts].filter(([{ place, isStream }]) => isStream && verdictsOfStreams[place] === 'continued')
  const wentOn = texts.filter(([, verdict]) => verdict === 'continued').length
  process.stdout.write(`${wanted.length} cells, ${wentOn} of ${texts.length} texts that were cut went on\n`)
  expect(texts.length).toBeGreaterThan(wanted.length / 5)
  expect(wentOn).toBeGreaterThanOrEqual(0.9 * texts.length)
  expect([reservationsTaken(rig), reservationsTaken(hosts)]).toEqual([0, 0])
}, 480_000)

/** Structured output and calls cannot go on. */
const verdictsOfStreams: Readonly<Record<Place, Verdict>> = {
  'before content': 'finished',
  'in text': 'continued',
  'in a call': 'error',
  'in reasoning': 'continued',
  'in JSON': 'error',
  'after the text': 'continued',
}
/** A JSON client has received nothing, so that its request starts again. */
const getVerdict = ({ place, isStream }: Cell): Verdict => (isStream ? verdictsOfStreams[place] : 'finished')

/** One line per fault and what is healthy: per dialect the verdicts at each place, streamed / JSON. */
function table(verdicts: ReadonlyMap<Cell, Verdict>): readonly string[] {
  const letters = { finished: 'F', continued: 'C', error: 'E', 'finished but cut': '!' }
  const found = new Map(
    [...verdicts].map(([{ fault, dialect, isStream, place, second }, verdict]) => [
      [fault[0], second, dialect, isStream, place].join(),
      letters[verdict],
    ]),
  )
  const at = (name: string, second: string, dialect: string, isStream: boolean) =>
    places.map(place => found.get([name, second, dialect, isStream, place].join()) ?? '.').join('')
  return [
    `F finished, C continued, E error, ! finished but cut. Places: ${places.join(', ')}; streamed/JSON.`,
    ['fault, healthy'.padEnd(48), ...dialects.map(dialect => dialect.padEnd(13))].join(' '),
    ...streamFaults.flatMap(([name]) =>
      seconds.map(second => {
        const verdictsIn = (dialect: string) =>
          [true, false].map(isStream => at(name, second, dialect, isStream)).join('/')
        return [`${name}, ${second}`.padEnd(48), ...dialects.map(verdictsIn)].join(' ')
      }),
    ),
  ]
}
