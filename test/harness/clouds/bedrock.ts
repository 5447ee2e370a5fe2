/** Wire formats of AWS Bedrock: Converse for any model, and InvokeModel with Anthropic's Messages. */
import { crc32 } from 'node:zlib'
import { anthropicFormat } from '../../../src/simulator/anthropic.ts'
import {
  type Failure,
  type Frame,
  isWireObject,
  joinText,
  jsonTokens,
  mistake,
  numberOr,
  type Output,
  objectsIn,
  readAs,
  readStops,
  type SimulatedFormat,
  type SimulatedRequest,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  textOr,
  unknownField,
  type WireObject,
} from '../../../src/simulator/wire-format.ts'

const exceptions: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  401: 'UnrecognizedClientException',
  402: 'ServiceQuotaExceededException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
}

const wording: Partial<Record<Failure['kind'], string>> = {
  quota: 'Too many tokens per day, please wait before trying again.',
  context_overflow: 'Input is too long for requested model.',
  content_block: 'The request was blocked.',
  model_missing: 'The provided model identifier is invalid.',
}

/** Returns an error of AWS's JSON protocol. */
export function awsFailure(status: number, code: string, message: string): ReturnType<SimulatedFormat['failure']> {
  return { kind: 'refusal', status, headers: { 'x-amzn-errortype': `${code}:http://internal/` }, body: { message } }
}

/** Bytes of a frame: its name is the event's type; the frame of an error is an exception. */
function encode({ name, data }: Frame): Uint8Array {
  const headers =
    name !== null && /Exception$/.test(name)
      ? { ':message-type': 'exception', ':exception-type': name, ':content-type': 'application/json' }
      : { ':event-type': name ?? 'chunk', ':content-type': 'application/json', ':message-type': 'event' }
  return awsMessage({ headers, payload: data })
}

const shared = {
  streamType: 'application/vnd.amazon.eventstream',
  jsonType: 'application/json',
  encode,
  headers: ({ mint, createdAt }: Pick<SimulatedResponse, 'mint' | 'createdAt'>) => ({
    'x-amzn-requestid': mint('', 36),
    date: new Date(createdAt * 1_000).toUTCString(),
  }),
  failure: ({ kind, status, message }: Failure) =>
    awsFailure(
      status,
      exceptions[status] ?? (status >= 500 ? 'InternalServerException' : 'ValidationException'),
      wording[kind] ?? message,
    ),
  errorFrame: (): Frame => ({
    part: 'closing',
    name: 'modelStreamErrorException',
    data: JSON.stringify({ message: 'The model stream failed.', originalStatusCode: 500 }),
  }),
}

/** InvokeModel for Claude. Each event of Messages is the base64 content of a `chunk`. */
export function invokeFormat(model: string, streams: boolean): SimulatedFormat {
  const chunk = (frame: Frame): Frame => ({
    ...frame,
    name: 'chunk',
    data: JSON.stringify({ bytes: Buffer.from(frame.data).toString('base64'), p: 'abcdefgh' }),
  })
  return {
    ...anthropicFormat,
    ...shared,
    read(request, { anthropic_version, anthropic_beta, ...body }, mint) {
      if (anthropic_version !== 'bedrock-2023-05-31')
        return shared.failure(mistake('anthropic_version: Field required'))
      if (anthropic_beta !== undefined && !Array.isArray(anthropic_beta))
        return shared.failure(mistake('anthropic_beta: Input should be a valid list'))
      const extra = ['model', 'stream'].find(name => name in body)
      if (extra !== undefined)
        return shared.failure(mistake(`Malformed input request: extraneous key [${extra}] is not permitted.`))
      const betas = [anthropic_beta].flat().filter(name => typeof name === 'string')
      const headers = {
        ...request.headers,
        'x-api-key': 'signed',
        'anthropic-version': '2023-06-01',
        'anthropic-beta': betas.join(','),
      }
      const read = anthropicFormat.read({ ...request, headers }, { ...body, model, stream: streams }, mint)
      if (read.kind === 'question') return read
      const message =
        isWireObject(read.body) && isWireObject(read.body.error) ? textOr(read.body.error.message, '') : ''
      return shared.failure(mistake(message, null, read.status))
    },
    *frames(turn) {
      for (const frame of anthropicFormat.frames(turn)) yield chunk(frame)
    },
  }
}

const converseFields = new Set(
  `messages system inferenceConfig toolConfig outputConfig additionalModelRequestFields additionalModelResponseFieldPaths
  guardrailConfig performanceConfig promptVariables requestMetadata serviceTier`.split(/\s+/),
)

/** Converse and ConverseStream. */
export function converseFormat(model: string, streams: boolean): SimulatedFormat {
  return {
    ...shared,
    provider: 'anthropic',
    chunkCharacters: 20,
    read: (_, body) => {
      const problem = findProblem(body)
      return problem === null ? readRequest(body, model, streams) : shared.failure(mistake(problem))
    },
    completion: turn => ({
      output: { message: { role: 'assistant', content: writeBlocks(turn).map(({ block }) => block) } },
      stopReason: readStopReason(turn.outputs[0]),
      ...(turn.usage === null ? {} : { usage: writeUsage(turn.usage) }),
      metrics: { latencyMs: 42 },
    }),
    frames,
  }
}

function findProblem(body: WireObject): string | null {
  const unknown = unknownField(body, converseFields)
  if (unknown !== undefined) return `Unknown field: ${unknown}`
  const messages = objectsIn(body.messages)
  if (messages[0]?.role !== 'user') return 'A conversation must start with a user message.'
  let open: readonly unknown[] = []
  for (const [index, { role, content }] of messages.entries()) {
    if (index > 0 && messages[index - 1]?.role === role)
      return 'A conversation must alternate between user and assistant.'
    const blocks = objectsIn(content)
    if (blocks.length === 0) return `The content field in the Message object at messages.${index} is empty.`
    if (blocks.some(({ text }) => typeof text === 'string' && text.trim() === ''))
      return `The text field in the ContentBlock object at messages.${index} is blank.`
    const answered = blocks.flatMap(({ toolResult }) => (isWireObject(toolResult) ? [toolResult.toolUseId] : []))
    if (open.some(id => !answered.includes(id)) || answered.some(id => !open.includes(id)))
      return `Expected toolResult blocks at messages.${index}.content for the previous toolUse blocks.`
    open = blocks.flatMap(({ toolUse }) => (isWireObject(toolUse) ? [toolUse.toolUseId] : []))
  }
  const config = isWireObject(body.toolConfig) ? body.toolConfig : null
  const uses = messages.some(({ content }) =>
    objectsIn(content).some(block => 'toolUse' in block || 'toolResult' in block),
  )
  if (uses && config === null)
    return 'The toolConfig field must be defined when using toolUse and toolResult content blocks.'
  if (config !== null && objectsIn(config.tools).length === 0) return 'toolConfig.tools must have at least 1 item.'
  const inference = isWireObject(body.inferenceConfig) ? body.inferenceConfig : {}
  const { temperature } = inference
  return typeof temperature === 'number' && temperature > 1 ? 'temperature: Value must be at most 1.' : null
}

function readRequest(body: WireObject, model: string, stream: boolean): ReturnType<SimulatedFormat['read']> {
  const messages = objectsIn(body.messages)
  const blocks = messages.map(({ content }) => objectsIn(content))
  const system = joinText(objectsIn(body.system))
  const config = isWireObject(body.toolConfig) ? body.toolConfig : {}
  const inference = isWireObject(body.inferenceConfig) ? body.inferenceConfig : {}
  const specs = objectsIn(config.tools).flatMap(({ toolSpec }) => (isWireObject(toolSpec) ? [toolSpec] : []))
  const last = messages.at(-1)?.role === 'user' ? (blocks.at(-1) ?? []) : []
  return readAs({
    model,
    stream,
    userTexts: blocks.flatMap((list, index) => {
      const text = joinText(list)
      return messages[index]?.role === 'user' && text !== '' ? [text] : []
    }),
    textBefore: joinText(blocks.at(-2)),
    inputTokens:
      (system === '' ? 0 : jsonTokens([{ system }])) +
      blocks.flat().reduce((sum, block) => sum + ('image' in block ? 0 : jsonTokens([block])), 2 * messages.length) +
      jsonTokens(specs),
    images: blocks.flat().filter(block => 'image' in block).length,
    files: blocks.flat().filter(block => 'document' in block).length,
    toolResults: last.flatMap(({ toolResult }) =>
      isWireObject(toolResult) ? [joinText(objectsIn(toolResult.content))] : [],
    ),
    tools: specs.map(({ name, inputSchema }) => ({
      name: String(name),
      schema: isWireObject(inputSchema) ? inputSchema.json : null,
    })),
    toolChoice: readToolChoice(config.toolChoice),
    json: readSchema(body.outputConfig),
    reasoningTokens: isWireObject(body.additionalModelRequestFields) ? 48 : 0,
    reasoningShown: true,
    outputCap: numberOr(inference.maxTokens, null),
    stops: readStops(inference.stopSequences),
  })
}

function readSchema(config: unknown): SimulatedRequest['json'] {
  const format = isWireObject(config) && isWireObject(config.textFormat) ? config.textFormat : {}
  const structure =
    isWireObject(format.structure) && isWireObject(format.structure.jsonSchema) ? format.structure.jsonSchema : null
  return structure === null ? null : { schema: JSON.parse(textOr(structure.schema, 'null')) }
}

function readToolChoice(choice: unknown): SimulatedRequest['toolChoice'] {
  if (!isWireObject(choice)) return 'auto'
  if (isWireObject(choice.tool)) return { name: String(choice.tool.name) }
  return 'any' in choice ? 'required' : 'auto'
}

type Block = { readonly block: WireObject; readonly start: WireObject | null; readonly deltas: readonly WireObject[] }

function writeBlocks({ outputs, mint, chunkCharacters }: SimulatedResponse): readonly Block[] {
  const [output] = outputs
  if (output === undefined) return []
  const { reasoning, text, calls } = output
  const pieces = (whole: string) => [...slices(whole, chunkCharacters)]
  const blocks: Block[] = []
  if (reasoning !== '')
    blocks.push({
      block: { reasoningContent: { reasoningText: { text: reasoning } } },
      start: null,
      deltas: pieces(reasoning).map(piece => ({ reasoningContent: { text: piece } })),
    })
  if (text !== '') blocks.push({ block: { text }, start: null, deltas: pieces(text).map(piece => ({ text: piece })) })
  for (const { name, arguments: input } of calls) {
    const use = { toolUseId: mint('tooluse_', 22), name }
    const deltas = pieces(JSON.stringify(input)).map(piece => ({ toolUse: { input: piece } }))
    blocks.push({ block: { toolUse: { ...use, input } }, start: { toolUse: use }, deltas })
  }
  return blocks
}

function* frames(turn: SimulatedResponse): Generator<Frame> {
  const frame = (part: Frame['part'], name: string, fields: WireObject): Frame => ({
    part,
    name,
    data: JSON.stringify({ ...fields, p: 'abcdefghijklm' }),
  })
  yield frame('opening', 'messageStart', { role: 'assistant' })
  for (const [contentBlockIndex, { start, deltas }] of writeBlocks(turn).entries()) {
    if (start !== null) yield frame('content', 'contentBlockStart', { contentBlockIndex, start })
    for (const delta of deltas) yield frame('content', 'contentBlockDelta', { contentBlockIndex, delta })
    yield frame('content', 'contentBlockStop', { contentBlockIndex })
  }
  yield frame('closing', 'messageStop', { stopReason: readStopReason(turn.outputs[0]) })
  const usage = turn.usage === null ? {} : { usage: writeUsage(turn.usage) }
  yield frame('closing', 'metadata', { ...usage, metrics: { latencyMs: 42 } })
}

function readStopReason(output: Output | undefined): string {
  if (output === undefined || output.refusal !== null) return 'content_filtered'
  const reasons = { stop: 'end_turn', tool_calls: 'tool_use', length: 'max_tokens', content_filter: 'content_filtered' }
  return output.stopSequence === null ? reasons[output.finish] : 'stop_sequence'
}

function writeUsage({ input, cached, cacheWrite, output }: SimulatedUsage) {
  return {
    inputTokens: input - cached - cacheWrite,
    outputTokens: output,
    totalTokens: input + output,
    cacheReadInputTokens: cached,
    cacheWriteInputTokens: cacheWrite,
  }
}

type Message = { readonly headers: Readonly<Record<string, string>>; readonly payload: Uint8Array | string }

/** Returns the bytes of one message; all headers are strings. */
export function awsMessage({ headers, payload }: Message): Uint8Array {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const bytes = Buffer.from(value)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(bytes.length)
      return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, bytes])
    }),
  )
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + head.length + body.length)
  prelude.writeUInt32BE(head.length, 4)
  const message = Buffer.concat([prelude, checksum(prelude), head, body])
  return Buffer.concat([message, checksum(message)])
}

function checksum(bytes: Uint8Array): Buffer {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(bytes))
  return sum
}
