/**
 * Writes chat-completions responses, as one body or as chunks. A chunk is a template around one JSON string: a stream is mostly
 * text deltas, and the rest of a chunk never changes.
 */

import type { ReasoningItem, ToolCall } from '../../core/chat/chat.ts'
import type {
  ChatEvent,
  CitedSource,
  FinishReason,
  ProviderFields,
  ResponseStart,
  ResponseSummary,
  TokenLogprob,
} from '../../core/chat/chat-events.ts'
import { shownTier } from '../../core/chat/provider-features.ts'
import type { CollectedChoice, CollectedResponse } from '../../core/chat/response-collector.ts'
import { shownCost } from '../../core/usage/money.ts'
import { errorBody } from '../../core/validation/errors.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import { CustomInput } from '../custom-tools.ts'
import { sealedDetail } from '../reasoning-seal.ts'
import type { CompatibleRequest } from './request.ts'

/** Settings of the request that change the form of the response. */
type CompletionStyle = Pick<CompatibleRequest, 'includeUsage' | 'legacyFunctions' | 'customTools'> & {
  /** Seals reasoning for the client; absent = the client cannot send it back. */
  readonly seal?: (item: ReasoningItem) => string
}

/**
 * Returns a framer for the server-sent chunks of one response. It keeps state, so each response needs its own. Finish chunks, the
 * usage chunk and `[DONE]` follow only `done`: a truncated or unsettled response must not look complete.
 */
function chunkFramer(style: CompletionStyle): Pick<StreamFormat, 'frame'> {
  const chunks = chunkWriter(style)
  const finished = new Map<number, FinishReason>()
  const add = (event: ChatEvent) => {
    switch (event.type) {
      case 'opened':
        chunks.open(event.opening)
        break
      case 'text':
        chunks.gather(event.choice, textField, event.text)
        break
      case 'reasoning':
        chunks.gather(event.choice, reasoningField, event.text)
        break
      case 'reasoning_end':
        chunks.endReasoning(event)
        break
      case 'refusal':
        chunks.gather(event.choice, refusalField, event.text)
        break
      case 'logprobs':
        chunks.log(event.choice, event.tokens)
        break
      case 'tool_call':
        if (event.index === 0 || !style.legacyFunctions) chunks.openCall(event.choice, event.index, event)
        break
      case 'tool_arguments':
        if (!style.legacyFunctions) chunks.argue(event.choice, event.index, event.text)
        else if (event.index === 0) chunks.gather(event.choice, functionField, event.text)
        break
      case 'citation':
        chunks.cite(event.choice, event.source)
        break
      case 'finish':
        finished.set(event.choice, event.reason)
        break
      case 'done':
        chunks.end(finished, event.receipt)
        break
    }
  }
  return {
    frame(batch) {
      for (const event of batch) add(event)
      return chunks.take()
    },
  }
}

/** A delta's JSON around the text of one of its fields. */
type Field = { readonly before: string; readonly after: string }

const textField: Field = { before: '{"content":', after: '}' }
const reasoningField: Field = { before: '{"reasoning_content":', after: '}' }
const refusalField: Field = { before: '{"refusal":', after: '}' }
const functionField: Field = { before: '{"function_call":{"arguments":', after: '}}' }

function inputField(index: number): Field {
  return { before: `{"tool_calls":[{"index":${index},"custom":{"input":`, after: '}}]}' }
}

function argumentsField(index: number): Field {
  return { before: `{"tool_calls":[{"index":${index},"function":{"arguments":`, after: '}}]}' }
}

/** The pending chunk: consecutive deltas of one field of one choice become one chunk. */
type Piece = { readonly choice: number; readonly field: Field; text: string; readonly tokens: TokenLogprob[] }

/** Writes the chunks of one response as text; `take` returns the text and empties it. */
function chunkWriter(style: CompletionStyle) {
  // Set by `opened`, the first event.
  let head = ''
  /** Reasoning by choice since its last end, and the number of its ends. */
  const reasoned = new Map<number, { text: string; ends: number }>()
  const tail = style.includeUsage ? ',"usage":null}\n\n' : '}\n\n'
  const begun = new Set<number>()
  /** Inputs of calls of free-text tools, by choice and index. */
  const inputs = new Map<string, { readonly choice: number; readonly field: Field; readonly input: CustomInput }>()
  let piece: Piece | null = null
  /** Annotations that become one chunk. */
  let noted: { readonly choice: number; readonly annotations: object[] } | null = null
  let out = ''

  const chunk = (choice: number, delta: string, logprobs = 'null', reason = 'null') => {
    out += `${head}"choices":[{"index":${choice},"delta":${delta},"logprobs":${logprobs},"finish_reason":${reason}}]${tail}`
  }
  const flush = () => {
    if (noted !== null) chunk(noted.choice, JSON.stringify({ annotations: noted.annotations }))
    noted = null
    if (piece === null) return
    const { choice, field, text, tokens } = piece
    const logprobs = tokens.length === 0 ? 'null' : JSON.stringify(getLogprobs(tokens))
    chunk(choice, field.before + JSON.stringify(text) + field.after, logprobs)
    piece = null
  }
  const begin = (choice: number) => {
    if (begun.has(choice)) return
    begun.add(choice)
    flush()
    chunk(choice, '{"role":"assistant","content":"","refusal":null}')
  }
  const reasoningAt = (choice: number) => {
    const known = reasoned.get(choice)
    if (known !== undefined) return known
    const begun = { text: '', ends: 0 }
    reasoned.set(choice, begun)
    return begun
  }
  const gather = (choice: number, field: Field, text: string): Piece => {
    begin(choice)
    if (piece?.choice === choice && piece.field.before === field.before) piece.text += text
    else {
      flush()
      piece = { choice, field, text, tokens: [] }
    }
    return piece
  }
  return {
    open(opening: ResponseStart) {
      head = chunkHead(opening)
    },
    gather(choice: number, field: Field, text: string) {
      if (style.seal !== undefined && field === reasoningField) reasoningAt(choice).text += text
      gather(choice, field, text)
    },
    endReasoning({ choice, family, kind, data, id }: Extract<ChatEvent, { type: 'reasoning_end' }>) {
      if (style.seal === undefined || data === '') return
      const reasoning = reasoningAt(choice)
      begin(choice)
      flush()
      const item = { family, kind, text: reasoning.text, data, id }
      chunk(choice, JSON.stringify({ reasoning_details: [sealedDetail(item, reasoning.ends++, style.seal)] }))
      reasoning.text = ''
    },
    /** Log probabilities belong to the pending text. Without one they go with an empty text delta. */
    log(choice: number, tokens: readonly TokenLogprob[]) {
      const beside = piece?.choice === choice ? piece : gather(choice, textField, '')
      beside.tokens.push(...tokens)
    },
    cite(choice: number, source: CitedSource) {
      const annotations = getAnnotations([source])
      if (annotations.length === 0) return
      begin(choice)
      if (noted?.choice !== choice) {
        flush()
        noted = { choice, annotations: [] }
      }
      noted.annotations.push(...annotations)
    },
    openCall(choice: number, index: number, call: Omit<ToolCall, 'arguments'>) {
      flush()
      const isCustom = style.customTools.has(call.name)
      if (isCustom) inputs.set(`${choice}/${index}`, { choice, field: inputField(index), input: new CustomInput() })
      const wire = isCustom ? wireCustomCall(call, '') : wireCall({ ...call, arguments: '' })
      const field = style.legacyFunctions
        ? `"function_call":${JSON.stringify({ name: call.name, arguments: '' })}`
        : `"tool_calls":[${JSON.stringify({ index, ...wire })}]`
      // If a choice starts with a call, its first chunk has the role and the call.
      chunk(choice, begun.has(choice) ? `{${field}}` : `{"role":"assistant","content":null,${field},"refusal":null}`)
      begun.add(choice)
    },
    argue(choice: number, index: number, json: string) {
      const own = inputs.get(`${choice}/${index}`)
      if (own === undefined) gather(choice, argumentsField(index), json)
      else {
        const text = own.input.add(json)
        if (text !== '') gather(choice, own.field, text)
      }
    },
    end(finished: ReadonlyMap<number, FinishReason>, receipt: ResponseSummary) {
      for (const { choice, field, input } of inputs.values()) {
        const { rest } = input.end()
        if (rest !== '') gather(choice, field, rest)
      }
      flush()
      for (const choice of finished.keys()) begin(choice)
      for (const [choice, reason] of finished) chunk(choice, '{}', 'null', JSON.stringify(wireReason(reason, style)))
      if (style.includeUsage) out += `${head}"choices":[],"usage":${JSON.stringify(getUsage(receipt))}}\n\n`
      out += 'data: [DONE]\n\n'
    },
    take(): string {
      flush()
      const text = out
      out = ''
      return text
    },
  }
}

/** Returns the format of one streamed response. Nothing follows a failure, not even `[DONE]`. */
export function compatibleStream(style: CompletionStyle, requestId: string): StreamFormat {
  return {
    ...chunkFramer(style),
    failure: error => `data: ${JSON.stringify(errorBody(error, requestId))}\n\n`,
  }
}

/** Returns the body of a response that is not streamed. */
export function completionBody(
  folded: CollectedResponse,
  receipt: ResponseSummary,
  opening: ResponseStart,
  style: CompletionStyle,
): object {
  return {
    id: opening.requestId,
    object: 'chat.completion',
    created: opening.createdAt,
    model: opening.askedName ?? opening.model,
    ...getOwnFields(receipt.providerFields),
    choices: folded.choices.map(choice => ({
      index: choice.index,
      message: getMessage(choice, style),
      logprobs: choice.logprobs.length === 0 ? null : getLogprobs(choice.logprobs),
      finish_reason: wireReason(choice.finishReason ?? 'stop', style),
    })),
    usage: getUsage(receipt),
  }
}

function getMessage(
  { text, reasoning, reasoningItems = [], refusal, citations, toolCalls }: CollectedChoice,
  style: CompletionStyle,
): object {
  const calls = toolCalls.map(call =>
    style.customTools.has(call.name) ? wireCustomCall(call, inputIn(call.arguments)) : wireCall(call),
  )
  const [first] = toolCalls
  const { seal } = style
  const details = seal === undefined ? [] : reasoningItems.map((item, index) => sealedDetail(item, index, seal))
  return {
    role: 'assistant',
    // Null only with calls or a refusal. A response whose output cap was used for reasoning has an empty text.
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    refusal: refusal === '' ? null : refusal,
    annotations: getAnnotations(citations),
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0
      ? {}
      : style.legacyFunctions
        ? { function_call: first && { name: first.name, arguments: first.arguments } }
        : { tool_calls: calls }),
  }
}

/** Returns the annotations of cited pages. This API has no form for documents. */
function getAnnotations(citations: readonly CitedSource[]) {
  return citations.flatMap(({ url, title, start, end, quote }) =>
    url === null
      ? []
      : {
          type: 'url_citation',
          url_citation: {
            start_index: start,
            end_index: end,
            title: title ?? url,
            url,
            ...(quote === undefined ? {} : { content: quote }),
          },
        },
  )
}

function wireCall({ id, name, arguments: json, signature }: ToolCall) {
  return {
    id,
    type: 'function',
    function: { name, arguments: json },
    ...signed(signature),
  }
}

function wireCustomCall({ id, name, signature }: Omit<ToolCall, 'arguments'>, input: string) {
  return { id, type: 'custom', custom: { name, input }, ...signed(signature) }
}

function inputIn(json: string): string {
  const input = new CustomInput()
  input.add(json)
  return input.end().whole
}

/** Returns Google's signature in the field that clients send back. */
function signed(signature: string | null) {
  return signature === null ? {} : { extra_content: { google: { thought_signature: signature } } }
}

function wireReason(reason: FinishReason, style: CompletionStyle): FinishReason | 'function_call' {
  return reason === 'tool_calls' && style.legacyFunctions ? 'function_call' : reason
}

function getLogprobs(tokens: readonly TokenLogprob[]): object {
  return { content: tokens, refusal: null }
}

function getUsage(receipt: ResponseSummary): object {
  const { usage, providerFields } = receipt
  const own = providerFields?.form === 'openai' ? providerFields : null
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: own?.acceptedPredictionTokens ?? 0,
      rejected_prediction_tokens: own?.rejectedPredictionTokens ?? 0,
    },
    ...shownCost(receipt),
  }
}

/** Returns OpenAI's own fields, which other providers lack. */
function getOwnFields(fields: ProviderFields | undefined) {
  if (fields?.form !== 'openai') return {}
  const { systemFingerprint } = fields
  const tier = shownTier(fields)
  return {
    ...(tier === null ? {} : { service_tier: tier }),
    ...(systemFingerprint === null ? {} : { system_fingerprint: systemFingerprint }),
  }
}

/** Returns the start of every chunk; `choices` follows. */
function chunkHead(opening: ResponseStart): string {
  const { requestId, createdAt, providerFields } = opening
  const fields = {
    id: requestId,
    object: 'chat.completion.chunk',
    created: createdAt,
    model: opening.askedName ?? opening.model,
    ...getOwnFields(providerFields),
  }
  return `data: ${JSON.stringify(fields).slice(0, -1)},`
}
