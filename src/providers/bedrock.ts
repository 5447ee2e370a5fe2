/**
 * AWS Bedrock: InvokeModel with Anthropic's own Messages body for Claude, Converse for all other models. Both stream in
 * AWS's event stream. `Access.authorizer` signs the requests; a Bedrock API key is a bearer token.
 */
import type { Model } from '../core/models/models.ts'
import { toHostedRequest } from './anthropic/hosted.ts'
import { streamReader as messageReader, readResponse as readMessage } from './anthropic/response.ts'
import { createAwsEventSplitter, exceptionPrefix } from './aws-event-stream.ts'
import { bedrockException, readBedrockFailure } from './bedrock/failure.ts'
import { toConverseBody } from './bedrock/request.ts'
import { converseReader, readConverseResponse } from './bedrock/response.ts'
import { badAnswer, failed } from './failure.ts'
import { objectIn, textOf } from './json.ts'
import type { Access, AnswerPart, Provider, StreamReader } from './provider.ts'
import { guardBody, guardStream } from './response-guard.ts'

const shared = { readFailure: readBedrockFailure, createSplitter: createAwsEventSplitter } as const

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
    return { ...request, url: urlOf(access, question.model, method), headers: { ...headers, ...keyOf(access) } }
  },
  readResponse: body => guardBody(() => readMessage(body)),
  streamReader: () => guardStream(chunkReader()),
}

const converse: Provider = {
  ...shared,
  toRequest(question, access) {
    const { body, droppedParameters } = toConverseBody(question)
    return {
      url: urlOf(access, question.model, question.stream ? 'converse-stream' : 'converse'),
      headers: { 'content-type': 'application/json', ...keyOf(access) },
      body,
      droppedParameters,
    }
  },
  readResponse: body => guardBody(() => readConverseResponse(body)),
  streamReader: () => guardStream(converseReader()),
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

function urlOf({ baseUrl }: Access, { id }: Model, method: string): string {
  return `${baseUrl}/model/${encodeURIComponent(id)}/${method}`
}

function keyOf({ apiKey }: Access): Readonly<Record<string, string>> {
  return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
}

/** Reads the events of Messages inside Bedrock's `chunk` events. */
function chunkReader(): StreamReader {
  const reader = messageReader()
  return {
    read({ name, data }): readonly AnswerPart[] {
      if (name.startsWith(exceptionPrefix)) return [failed(bedrockException(name, data))]
      if (name !== 'chunk') return []
      const bytes = textOf(objectIn(data)?.bytes)
      if (bytes === '') return [badAnswer('chunk without bytes')]
      return reader.read({ name: '', data: Buffer.from(bytes, 'base64').toString('utf8') })
    },
    finish: () => reader.finish(),
  }
}
