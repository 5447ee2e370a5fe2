import { flatToolName } from '../../core/chat/tool-definitions.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { argumentsText } from '../call-arguments.ts'
import { CitedText } from '../citations.ts'
import { badAnswer, failed, truncated } from '../failure.ts'
import { findName, getText, isRecord, isText, type Json, record, records, wholeNumber } from '../json.ts'
import { failureInAnswer } from '../openai/failure.ts'
import { findUsage, getLogprobs, OpenAiFields } from '../openai/usage.ts'
import type { AnswerPart, StreamReader } from '../provider.ts'
import { uniqueNames } from '../tool-names.ts'

type Call = { readonly index: number; readonly isCustom: boolean; hasText: boolean; isDone: boolean }

/**
 * Reads an answer, streamed or whole. It has ended with `response.completed` or `response.incomplete`, and only then. Must be
 * guarded: parts after an end or failure are meaningless.
 */
export class ResponsesReader implements StreamReader {
  /** Calls by their place in the output. */
  private readonly calls = new Map<number, Call>()
  private readonly unique = uniqueNames()
  private parts: AnswerPart[] = []
  private readonly fields = new OpenAiFields()
  private servedId: string | null = null
  private servedModel: string | null = null
  /** Of the message that goes on. */
  private phase: string | null = null
  private readonly cited = new CitedText(0)
  /** Code points before the current content part, from which its annotations count. */
  private partFrom = 0

  read({ name, data }: Parameters<StreamReader['read']>[0]): readonly AnswerPart[] {
    if (data.trim() === '' || data === '[DONE]') return []
    const event = parseUntrustedJson(data)
    if (!isRecord(event)) return [badAnswer('not_json')]
    this.parts = []
    this.take(isText(event.type) ? event.type : name, event)
    return this.parts
  }

  finish(): readonly AnswerPart[] {
    return []
  }

  whole(body: unknown): readonly AnswerPart[] {
    this.parts = []
    const response = record(body)
    if (isRecord(response.error)) return [failed(failureInAnswer(response.error))]
    if (!Array.isArray(response.output)) return [badAnswer('no_output')]
    this.served(response)
    for (const [place, item] of response.output.entries()) if (isRecord(item)) this.wholeItem(place, item)
    this.end(response)
    return this.parts
  }

  private take(type: string, event: Json): void {
    const { parts } = this
    const delta = getText(event.delta)
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        this.served(record(event.response))
        break
      case 'response.output_item.added':
        this.openItem(getPlace(event), record(event.item))
        break
      case 'response.content_part.added':
        this.partFrom = this.cited.points()
        break
      case 'response.output_text.delta':
        if (delta !== '') parts.push(this.textPart(delta))
        this.probabilities(event.logprobs)
        break
      case 'response.refusal.delta':
        parts.push({ type: 'refusal', choice: 0, text: delta })
        break
      case 'response.reasoning_summary_part.added':
        if (wholeNumber(event.summary_index) !== 0) parts.push({ type: 'reasoning', choice: 0, text: '\n\n' })
        break
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        parts.push({ type: 'reasoning', choice: 0, text: delta })
        break
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.addArguments(getPlace(event), delta)
        break
      case 'response.output_text.annotation.added':
        this.annotation(event.annotation)
        break
      case 'response.output_item.done':
        this.endItem(getPlace(event), record(event.item))
        break
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.end(record(event.response), type.slice('response.'.length))
        break
      case 'error':
        parts.push(failed(failureInAnswer(isRecord(event.error) ? event.error : { ...event, type: null })))
        break
    }
  }

  private served(response: Json): void {
    this.fields.read(response, this.parts)
    const id = findName(response.id) ?? this.servedId
    const model = findName(response.model) ?? this.servedModel
    if (id === this.servedId && model === this.servedModel) return
    if (this.servedId !== null && id !== this.servedId) {
      this.parts.push(truncated('response_restarted'))
      return
    }
    this.servedId = id
    this.servedModel = model
    this.parts.push({ type: 'served', id, model })
  }

  private openItem(place: number, item: Json): void {
    if (item.type === 'message') this.phase = findName(item.phase)
    if (!isCall(item) || this.calls.has(place)) return
    const wireId = findName(item.call_id)
    const index = this.calls.size
    const isCustom = item.type === 'custom_tool_call'
    const name =
      item.type === 'tool_search_call' ? 'tool_search' : flatToolName(findName(item.namespace), getText(item.name))
    this.calls.set(place, { index, isCustom, hasText: false, isDone: false })
    const id = this.unique(wireId, count => `${wireId ?? 'call'}_${count}`)
    this.parts.push({ type: 'tool_call', choice: 0, index, id, name: name.toWellFormed(), signature: null })
    if (isCustom) this.parts.push({ type: 'tool_arguments', choice: 0, index, text: '{"input":"' })
  }

  private addArguments(place: number, delta: string): void {
    const call = this.calls.get(place)
    if (call === undefined || call.isDone || delta === '') return
    call.hasText = true
    // A free text travels within JSON, as every other call's arguments do.
    const text = call.isCustom ? JSON.stringify(delta).slice(1, -1) : delta
    this.parts.push({ type: 'tool_arguments', choice: 0, index: call.index, text })
  }

  private endItem(place: number, item: Json): void {
    switch (item.type) {
      case 'message':
        break
      case 'reasoning':
        this.endReasoning(item)
        break
      default:
        if (isCall(item)) this.endCall(place, item)
        // A client throws at an item without a type.
        else if (isText(item.type))
          this.parts.push({ type: 'provider_item', choice: 0, dialect: 'responses', json: JSON.stringify(item) })
    }
  }

  private endCall(place: number, item: Json): void {
    this.openItem(place, item)
    const call = this.calls.get(place)
    if (call === undefined || call.isDone) return
    if (!call.hasText) this.addArguments(place, getArguments(item))
    call.isDone = true
    const rest = call.isCustom ? '"}' : ''
    // A call that the output cap cut is not closed: it is no whole one.
    if (rest !== '' && item.status !== 'incomplete')
      this.parts.push({ type: 'tool_arguments', choice: 0, index: call.index, text: rest })
  }

  private endReasoning({ encrypted_content: data, id }: Json): void {
    if (!isText(data)) return
    this.parts.push({ type: 'reasoning_end', choice: 0, family: 'openai', kind: 'encrypted', data, id: findName(id) })
  }

  private textPart(text: string): AnswerPart {
    this.cited.add(text)
    return this.phase === null
      ? { type: 'text', choice: 0, text }
      : { type: 'text', choice: 0, text, phase: this.phase }
  }

  private probabilities(list: unknown): void {
    const tokens = getLogprobs(list)
    if (tokens.length > 0) this.parts.push({ type: 'logprobs', choice: 0, tokens })
  }

  private annotation(annotation: unknown): void {
    if (!isRecord(annotation)) return
    const start = wholeNumber(annotation.start_index)
    const end = wholeNumber(annotation.end_index)
    const place = start === null || end === null ? null : { start: this.partFrom + start, end: this.partFrom + end }
    const own = { dialect: 'responses', json: JSON.stringify(annotation) } as const
    this.parts.push(...this.cited.cite({ url: annotation.url, title: annotation.title }, place, own))
  }

  private wholeItem(place: number, item: Json): void {
    if (item.type === 'message') {
      this.phase = findName(item.phase)
      for (const part of records(item.content)) {
        this.partFrom = this.cited.points()
        if (isText(part.text)) this.parts.push(this.textPart(part.text))
        if (isText(part.refusal)) this.parts.push({ type: 'refusal', choice: 0, text: part.refusal })
        this.probabilities(part.logprobs)
        for (const annotation of records(part.annotations)) this.annotation(annotation)
      }
    }
    if (item.type === 'reasoning') {
      const texts = [...records(item.summary), ...records(item.content)].map(({ text }) => getText(text))
      const text = texts.filter(isText).join('\n\n')
      if (text !== '') this.parts.push({ type: 'reasoning', choice: 0, text })
    }
    this.endItem(place, item)
  }

  private end(response: Json, told = getText(response.status)): void {
    if (told === 'failed' || isRecord(response.error)) {
      this.parts.push(failed(failureInAnswer(response.error ?? response)))
      return
    }
    this.served(response)
    const usage = findUsage(record(response.usage))
    if (usage !== null) this.parts.push({ type: 'usage', usage })
    if (told !== 'completed' && told !== 'incomplete') {
      this.parts.push(truncated('unknown_status'))
      return
    }
    const { reason } = record(response.incomplete_details)
    const cut = reason === 'content_filter' ? 'content_filter' : 'length'
    const whole = this.calls.size > 0 ? 'tool_calls' : 'stop'
    this.parts.push({ type: 'finish', choice: 0, reason: told === 'incomplete' ? cut : whole }, { type: 'end' })
  }
}

function getPlace({ output_index: place }: Json): number {
  return wholeNumber(place) ?? 0
}

/** A call that its client runs. A search for tools that OpenAI ran itself is an item like any other. */
function isCall({ type, execution, call_id: id }: Json): boolean {
  if (type === 'function_call' || type === 'custom_tool_call') return true
  return type === 'tool_search_call' && execution === 'client' && isText(id)
}

function getArguments(item: Json): string {
  if (item.type === 'custom_tool_call') return getText(item.input)
  return argumentsText(item.arguments)
}
