/**
 * AWS Bedrock: InvokeModel with Anthropic's own Messages body for Claude, Converse for all other models. Both stream in
 * AWS's event stream. `Access.authorizer` signs the requests; a Bedrock API key is a bearer token.
 */

import { isDemanding } from '../core/chat/tool-definitions.ts'
import type { Model } from '../core/models/models.ts'
import { imageTypes, wireCallIds, wireName } from './anthropic/conversation.ts'
import { toHostedRequest } from './anthropic/request.ts'
import { MessageReader } from './anthropic/response.ts'
import { AwsEventSplitter, exceptionPrefix } from './aws-event-stream.ts'
import { bedrockException, ConverseReader, readBedrockFailure } from './bedrock/response.ts'
import {
  calledNames,
  getTurns,
  inlineImage,
  isVisible,
  type PartWriter,
  placeholderTexts,
  systemTexts,
} from './conversation-steps.ts'
import { sortExtras } from './extras.ts'
import { badAnswer } from './failure.ts'
import { encoded, getText, type Json, objectIn } from './json.ts'
import { formatFor } from './openai/request.ts'
import {
  droppedNames,
  instructionFor,
  mayForce,
  nearestEffort,
  nonEmpty,
  parametersFor,
  rulesOfOthers,
} from './parameters.ts'
import type { Access, AdapterRequest, AnswerSink, Provider, StreamReader } from './provider.ts'
import type { ServerSentEvent } from './sse.ts'

/** Builds the body of Converse and ConverseStream. */
function toConverseBody({ request, model, outputCap }: AdapterRequest): {
  readonly body: string
  readonly droppedParameters: readonly string[]
} {
  const rules = model.parameters
  const effort = request.reasoningEffort === null ? null : nearestEffort(request.reasoningEffort, rules.efforts)
  const thinks = effort !== null && effort !== 'none'
  const parameters = parametersFor(request, rulesOfOthers(rules), thinks)
  const { dropped } = parameters
  if (request.reasoningEffort !== null && effort === null) dropped.add('reasoning_effort')
  if (request.parallelToolCalls !== null && request.tools.length > 0) dropped.add('parallel_tool_calls')
  const { field, instruction, lesser } = formatFor(request.responseFormat, rules.responseFormat)
  if (lesser) dropped.add('response_format')
  const toolConfig = toolsFor({ request, model }, thinks, dropped)
  const unforced = isDemanding(request.toolChoice) && request.tools.length > 0 && toolConfig?.toolChoice === undefined
  const system = [
    ...systemTexts(request.messages),
    ...(instruction === null ? [] : [instruction.text]),
    ...(unforced ? [instructionFor(request.toolChoice)] : []),
  ]
  const body = {
    messages: messagesFor({ request, model }, toolConfig !== undefined),
    system: nonEmpty(system.map(text => ({ text }))),
    inferenceConfig: {
      maxTokens: outputCap,
      temperature: parameters.temperature === undefined ? undefined : Math.min(1, parameters.temperature),
      topP: parameters.topP,
      stopSequences: nonEmpty(parameters.stops?.filter(isVisible) ?? []),
    },
    toolConfig,
    outputConfig: field === undefined ? undefined : outputConfigFor({ request }, field),
    additionalModelRequestFields: effort === null ? undefined : { reasoning_effort: effort },
  }
  const extras = sortExtras('anthropic', request.extras).dropped
  return { body: encoded(body), droppedParameters: droppedNames(dropped, extras, request.source) }
}

/** Converse takes the schema as text. */
function outputConfigFor(
  { request: { responseFormat } }: Pick<AdapterRequest, 'request'>,
  field: Json,
): Json | undefined {
  if (responseFormat.type !== 'json_schema' || field.type !== 'json_schema') return undefined
  const { name, description, schema } = responseFormat
  const jsonSchema = { name: wireName(name), description: description ?? undefined, schema: JSON.stringify(schema) }
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } }
}

type Question = Pick<AdapterRequest, 'request' | 'model'>

/**
 * Returns the tools and the choice; undefined = none. Converse cannot forbid calls while it offers tools, and requires
 * tools if the history has calls.
 */
function toolsFor({ request, model }: Question, thinks: boolean, dropped: Set<string>): Json | undefined {
  const { tools, toolChoice, messages } = request
  const names = calledNames(messages)
  if (tools.length === 0 || (toolChoice === 'none' && names.length === 0)) {
    if (names.length === 0) return undefined
    return { tools: names.map(name => ({ toolSpec: { name, inputSchema: { json: { type: 'object' } } } })) }
  }
  const isForced = isDemanding(toolChoice) && mayForce(model.parameters, thinks)
  if (toolChoice === 'none' || (isDemanding(toolChoice) && !isForced)) dropped.add('tool_choice')
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      toolSpec: {
        name,
        description: description !== null && isVisible(description) ? description : undefined,
        inputSchema: { json: { ...parameters, type: 'object' } },
      },
    })),
    toolChoice: isForced ? (toolChoice === 'required' ? { any: {} } : { tool: { name: toolChoice.name } }) : undefined,
  }
}

function messagesFor({ request, model }: Question, withTools: boolean): readonly Json[] {
  const turns = getTurns<Json>(request.messages, model.parameters.prefill && !withTools, blockWriter())
  return turns.map(({ role, parts }) => ({ role, content: parts }))
}

function blockWriter(): PartWriter<Json> {
  const callId = wireCallIds()
  let documents = 0
  return {
    text: text => ({ text }),
    image(url) {
      const image = inlineImage(url)
      const [, format = 'png'] = imageTypes.get(image?.kind ?? '')?.split('/') ?? []
      // Unsupported data is sent all the same, so that the output does not ignore the image: the API rejects it.
      return { image: { format, source: { bytes: image?.isBase64 ? image.data : '' } } }
    },
    // Bedrock allows few characters in names, and requires unique ones.
    file: ({ url }) => {
      const name = `document-${++documents}`
      return { document: { format: 'pdf', name, source: { bytes: inlineImage(url)?.data ?? '' } } }
    },
    exchange({ call, result, isError }) {
      const toolUseId = callId(call.id)
      const text = result === null ? placeholderTexts.missingResult : isVisible(result) ? result : '(empty)'
      const status = result === null || isError ? 'error' : undefined
      return [
        { toolUse: { toolUseId, name: call.name, input: objectIn(call.arguments) ?? {} } },
        { toolResult: { toolUseId, content: [{ text }], status } },
      ]
    },
  }
}

const shared = { readFailure: readBedrockFailure, createSplitter: () => new AwsEventSplitter() } as const

/** Betas that Bedrock documents for Claude; it answers 400 to any other. */
const knownBetas =
  /^(?:computer-use|token-efficient-tools|interleaved-thinking|output-128k|dev-full-thinking|context-1m|context-management|effort|tool-search-tool|tool-examples|fine-grained-tool-streaming|compact)-\d{4}-\d{2}-\d{2}$/

const messages: Provider = {
  ...shared,
  toRequest(question, access) {
    const { headers, ...request } = toHostedRequest(question, {
      version: 'bedrock-2023-05-31',
      namesStream: false,
      bodyBetas: knownBetas,
    })
    const method = question.stream ? 'invoke-with-response-stream' : 'invoke'
    return { ...request, url: getUrl(access, question.model, method), headers: { ...headers, ...getKey(access) } }
  },
  readResponse: (body, sink) => new MessageReader().whole(body, sink),
  streamReader: () => new ChunkReader(),
}

const converse: Provider = {
  ...shared,
  toRequest(question, access) {
    const { body, droppedParameters } = toConverseBody(question)
    return {
      url: getUrl(access, question.model, question.stream ? 'converse-stream' : 'converse'),
      headers: { 'content-type': 'application/json', ...getKey(access) },
      body,
      droppedParameters,
    }
  },
  readResponse: (body, sink) => new ConverseReader().whole(body, sink),
  streamReader: () => new ConverseReader(),
}

/** The adapter. */
export const bedrock: Provider = {
  ...converse,
  formFor: ({ model }) => (isClaude(model) ? messages : converse),
  takesSource: model => (isClaude(model) ? ['messages'] : []),
  cachesMarkedInput: isClaude,
}

/** As a host of Anthropic's model, or by the ID of a model or inference profile. */
function isClaude({ id, provider }: Pick<Model, 'id' | 'provider'>): boolean {
  return provider === 'anthropic' || /(?:^|[./])anthropic\./.test(id)
}

function getUrl({ baseUrl }: Access, { id }: Model, method: string): string {
  return `${baseUrl}/model/${encodeURIComponent(id)}/${method}`
}

function getKey({ apiKey }: Access): Readonly<Record<string, string>> {
  return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
}

/** Reads the events of Messages inside Bedrock's `chunk` events. */
class ChunkReader implements StreamReader {
  private readonly message = new MessageReader()

  read({ name, data }: ServerSentEvent, sink: AnswerSink): null {
    if (name.startsWith(exceptionPrefix)) sink.fail(bedrockException(name, data))
    if (name !== 'chunk') return null
    const bytes = getText(objectIn(data)?.bytes)
    if (bytes === '') sink.fail(badAnswer('chunk without bytes'))
    else this.message.read({ name: '', data: Buffer.from(bytes, 'base64').toString('utf8') }, sink)
    return null
  }

  finish(): void {
    this.message.finish()
  }
}
