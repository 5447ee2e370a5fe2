/**
 * Writes chat-completions responses, as one body or as chunks. A chunk is a template around one JSON string: a stream is mostly
 * text deltas, and the rest of a chunk never changes.
 */

import type { ReasoningItem, ToolCall } from '../../core/chat/chat.ts'
import type {
  CitedSource,
  FinishReason,
  ProviderFields,
  ResponsePart,
  ResponseStart,
  ResponseSummary,
  TextChannel,
  TokenLogprob,
  TypedPart,
} from '../../core/chat/chat-events.ts'
import { shownTier } from '../../core/chat/provider-features.ts'
import type { CollectedChoice } from '../../core/chat/response-collector.ts'
import { shownCost } from '../../core/usage/money.ts'
import { errorBody, type GatewayError } from '../../core/validation/errors.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import { CustomInput } from '../custom-tools.ts'
import { sealedDetail } from '../reasoning-seal.ts'
import type { CompatibleRequest } from './request.ts'

/** Settings of the request that change the form of the response. */
type CompletionStyle = Pick<CompatibleRequest, 'includeUsage' | 'legacyFunctions' | 'customTools'> & {
  /** Seals reasoning for the client; absent = the client cannot send it back. */
  readonly seal?: (item: ReasoningItem) => string
}

/** A chunk around one text: before it, and from it to the end of the delta. */
type Field = { readonly choice: number; readonly before: string; readonly after: string }

/** The pending chunk: consecutive deltas of one field become one chunk. */
type Piece = { readonly field: Field; text: string; readonly tokens: TokenLogprob[] }

/**
 * Writes the server-sent chunks of one response. It keeps state, so each response needs its own. Finish chunks, the usage chunk and
 * `[DONE]` follow only `done`: a truncated or unsettled response must not look complete. Nothing follows a failure.
 */
export class ChunkWriter implements StreamFormat {
  /** Set by `opened`, the first part. */
  private head = ''
  private readonly tail: string
  private readonly fields = new Map<TextChannel, Field>()
  /** Reasoning by choice since its last end, and the number of its ends. */
  private readonly reasoned = new Map<number, { text: string; ends: number }>()
  private readonly begun = new Set<number>()
  private readonly finished = new Map<number, FinishReason>()
  /** Inputs of calls of free-text tools, by choice and index. */
  private readonly inputs = new Map<string, { readonly field: Field; readonly input: CustomInput }>()
  private piece: Piece | null = null
  /** Annotations that become one chunk. */
  private noted: { readonly choice: number; readonly annotations: object[] } | null = null
  private out = ''

  constructor(
    private readonly style: CompletionStyle,
    private readonly requestId: string,
  ) {
    this.tail = style.includeUsage ? ',"usage":null}\n\n' : '}\n\n'
  }

  text(channel: TextChannel, text: string): void {
    const { type, choice, index } = channel
    // The older form has one call.
    if (index > 0 && this.style.legacyFunctions) return
    if (type === 'reasoning' && this.style.seal !== undefined) this.reasoningAt(choice).text += text
    const own = type === 'tool_arguments' ? this.inputs.get(`${choice}/${index}`) : undefined
    const added = own === undefined ? text : own.input.add(text)
    if (own === undefined || added !== '') this.gather(own?.field ?? this.fieldOf(channel), added)
  }

  add(part: ResponsePart): void {
    switch (part.type) {
      case 'opened':
        this.head = chunkHead(part.opening)
        break
      case 'reasoning_end':
        this.endReasoning(part)
        break
      case 'logprobs': {
        // They belong to the pending text. Without one they go with an empty text delta.
        const { choice, tokens } = part
        const isBeside = this.piece?.field.choice === choice
        const piece = isBeside ? this.piece : this.gather(this.newField(choice, '{"content":', '}'), '')
        piece?.tokens.push(...tokens)
        break
      }
      case 'tool_call':
        if (part.index === 0 || !this.style.legacyFunctions) this.openCall(part)
        break
      case 'citation':
        this.cite(part)
        break
      case 'finish':
        this.finished.set(part.choice, part.reason)
        break
      case 'done':
        this.end(part.receipt)
        break
    }
  }

  take(): string {
    this.flush()
    const { out } = this
    this.out = ''
    return out
  }

  failure(error: GatewayError): string {
    return `data: ${JSON.stringify(errorBody(error, this.requestId))}\n\n`
  }

  private fieldOf(channel: TextChannel): Field {
    const known = this.fields.get(channel)
    if (known !== undefined) return known
    const { type, choice, index } = channel
    const field =
      type !== 'tool_arguments'
        ? this.newField(choice, `{"${textFields[type]}":`, '}')
        : this.style.legacyFunctions
          ? this.newField(choice, '{"function_call":{"arguments":', '}}')
          : this.newField(choice, `{"tool_calls":[{"index":${index},"function":{"arguments":`, '}}]}')
    this.fields.set(channel, field)
    return field
  }

  private newField(choice: number, before: string, after: string): Field {
    return { choice, before: this.start(choice) + before, after }
  }

  private start(choice: number): string {
    return `${this.head}"choices":[{"index":${choice},"delta":`
  }

  private chunk(delta: string, logprobs = 'null', reason = 'null'): void {
    this.out += `${delta},"logprobs":${logprobs},"finish_reason":${reason}}]${this.tail}`
  }

  private flush(): void {
    const { noted, piece } = this
    if (noted !== null) this.chunk(this.start(noted.choice) + JSON.stringify({ annotations: noted.annotations }))
    this.noted = null
    if (piece === null) return
    const { field, text, tokens } = piece
    const logprobs = tokens.length === 0 ? 'null' : JSON.stringify(getLogprobs(tokens))
    this.chunk(field.before + JSON.stringify(text) + field.after, logprobs)
    this.piece = null
  }

  private begin(choice: number): void {
    if (this.begun.has(choice)) return
    this.begun.add(choice)
    this.flush()
    this.chunk(`${this.start(choice)}{"role":"assistant","content":"","refusal":null}`)
  }

  private gather(field: Field, text: string): Piece {
    this.begin(field.choice)
    if (this.piece?.field.before === field.before) this.piece.text += text
    else {
      this.flush()
      this.piece = { field, text, tokens: [] }
    }
    return this.piece
  }

  private reasoningAt(choice: number): { text: string; ends: number } {
    const reasoning = this.reasoned.get(choice) ?? { text: '', ends: 0 }
    this.reasoned.set(choice, reasoning)
    return reasoning
  }

  private endReasoning({ choice, family, kind, data, id }: TypedPart<'reasoning_end'>): void {
    const { seal } = this.style
    if (seal === undefined || data === '') return
    const reasoning = this.reasoningAt(choice)
    this.begin(choice)
    this.flush()
    const item = { family, kind, text: reasoning.text, data, id }
    this.chunk(this.start(choice) + JSON.stringify({ reasoning_details: [sealedDetail(item, reasoning.ends++, seal)] }))
    reasoning.text = ''
  }

  private cite({ choice, source }: TypedPart<'citation'>): void {
    const annotations = getAnnotations([source])
    if (annotations.length === 0) return
    this.begin(choice)
    if (this.noted?.choice !== choice) {
      this.flush()
      this.noted = { choice, annotations: [] }
    }
    this.noted.annotations.push(...annotations)
  }

  private openCall({ choice, index, id, name, signature }: TypedPart<'tool_call'>): void {
    this.flush()
    const isCustom = this.style.customTools.has(name)
    if (isCustom) {
      const field = this.newField(choice, `{"tool_calls":[{"index":${index},"custom":{"input":`, '}}]}')
      this.inputs.set(`${choice}/${index}`, { field, input: new CustomInput() })
    }
    const call = { id, name, arguments: '', signature }
    const wire = isCustom ? wireCustomCall(call, '') : wireCall(call)
    const field = this.style.legacyFunctions
      ? `"function_call":${JSON.stringify({ name, arguments: '' })}`
      : `"tool_calls":[${JSON.stringify({ index, ...wire })}]`
    // If a choice starts with a call, its first chunk has the role and the call.
    const isFirst = !this.begun.has(choice)
    this.begun.add(choice)
    const delta = isFirst ? `{"role":"assistant","content":null,${field},"refusal":null}` : `{${field}}`
    this.chunk(this.start(choice) + delta)
  }

  private end(receipt: ResponseSummary): void {
    for (const { field, input } of this.inputs.values()) {
      const { rest } = input.end()
      if (rest !== '') this.gather(field, rest)
    }
    this.flush()
    for (const choice of this.finished.keys()) this.begin(choice)
    for (const [choice, reason] of this.finished)
      this.chunk(`${this.start(choice)}{}`, 'null', JSON.stringify(wireReason(reason, this.style)))
    if (this.style.includeUsage)
      this.out += `${this.head}"choices":[],"usage":${JSON.stringify(getUsage(receipt))}}\n\n`
    this.out += 'data: [DONE]\n\n'
  }
}

const textFields = { text: 'content', reasoning: 'reasoning_content', refusal: 'refusal' } as const

/** Returns the body of a response that is not streamed. */
export function completionBody(
  answer: readonly CollectedChoice[],
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
    choices: answer.map(choice => ({
      index: choice.index,
      message: getMessage(choice, style),
      logprobs: choice.logprobs.length === 0 ? null : getLogprobs(choice.logprobs),
      finish_reason: wireReason(choice.finishReason ?? 'stop', style),
    })),
    usage: getUsage(receipt),
  }
}

function getMessage(
  { text, reasoning, reasoningItems, refusal, citations, toolCalls }: CollectedChoice,
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
