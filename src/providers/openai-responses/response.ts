import { flatToolName } from '../../core/chat/tool-definitions.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { CitedText } from '../citations.ts'
import { badAnswer, truncated } from '../failure.ts'
import { findName, getText, isRecord, isText, type Json, record, records, wholeNumber } from '../json.ts'
import { failureInAnswer } from '../openai/failure.ts'
import { findUsage, getLogprobs, OpenAiFields } from '../openai/usage.ts'
import type { AnswerSink, StreamReader } from '../provider.ts'
import { argumentsText, uniqueNames } from '../tool-names.ts'

type Call = { readonly index: number; readonly isCustom: boolean; hasText: boolean; isDone: boolean }

/**
 * Reads an answer, streamed or whole. It has ended with `response.completed` or `response.incomplete`, and only then. What it
 * says after an end or failure is meaningless.
 */
export class ResponsesReader implements StreamReader {
  /** Calls by their place in the output. */
  private readonly calls = new Map<number, Call>()
  private readonly unique = uniqueNames()
  private readonly fields = new OpenAiFields()
  private servedId: string | null = null
  private servedModel: string | null = null
  /** Of the message that goes on. */
  private phase: string | null = null
  private readonly cited = new CitedText(0)
  /** Code points before the current content part, from which its annotations count. */
  private partFrom = 0

  read({ name, data }: Parameters<StreamReader['read']>[0], sink: AnswerSink): null {
    if (data.trim() === '' || data === '[DONE]') return null
    const event = parseUntrustedJson(data)
    if (isRecord(event)) this.take(isText(event.type) ? event.type : name, event, sink)
    else sink.fail(badAnswer('not_json'))
    return null
  }

  finish(): void {}

  whole(body: unknown, sink: AnswerSink): void {
    const response = record(body)
    if (isRecord(response.error)) {
      sink.fail(failureInAnswer(response.error))
      return
    }
    if (!Array.isArray(response.output)) {
      sink.fail(badAnswer('no_output'))
      return
    }
    this.served(response, sink)
    for (const [place, item] of response.output.entries()) if (isRecord(item)) this.wholeItem(place, item, sink)
    this.end(response, sink)
  }

  private take(type: string, event: Json, sink: AnswerSink): void {
    const delta = getText(event.delta)
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        this.served(record(event.response), sink)
        break
      case 'response.output_item.added':
        this.openItem(getPlace(event), record(event.item), sink)
        break
      case 'response.content_part.added':
        this.partFrom = this.cited.points()
        break
      case 'response.output_text.delta':
        this.say(delta, sink)
        this.probabilities(event.logprobs, sink)
        break
      case 'response.refusal.delta':
        sink.addRefusal(0, delta)
        break
      case 'response.reasoning_summary_part.added':
        if (wholeNumber(event.summary_index) !== 0) sink.addReasoning(0, '\n\n')
        break
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        sink.addReasoning(0, delta)
        break
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.addArguments(getPlace(event), delta, sink)
        break
      case 'response.output_text.annotation.added':
        this.annotation(event.annotation, sink)
        break
      case 'response.output_item.done':
        this.endItem(getPlace(event), record(event.item), sink)
        break
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.end(record(event.response), sink, type.slice('response.'.length))
        break
      case 'error':
        sink.fail(failureInAnswer(isRecord(event.error) ? event.error : { ...event, type: null }))
        break
    }
  }

  private served(response: Json, sink: AnswerSink): void {
    this.fields.read(response, sink)
    const id = findName(response.id) ?? this.servedId
    const model = findName(response.model) ?? this.servedModel
    if (id === this.servedId && model === this.servedModel) return
    if (this.servedId !== null && id !== this.servedId) {
      sink.fail(truncated('response_restarted'))
      return
    }
    this.servedId = id
    this.servedModel = model
    sink.identify(id, model)
  }

  private openItem(place: number, item: Json, sink: AnswerSink): void {
    if (item.type === 'message') this.phase = findName(item.phase)
    if (!isCall(item) || this.calls.has(place)) return
    const wireId = findName(item.call_id)
    const index = this.calls.size
    const isCustom = item.type === 'custom_tool_call'
    const name =
      item.type === 'tool_search_call' ? 'tool_search' : flatToolName(findName(item.namespace), getText(item.name))
    this.calls.set(place, { index, isCustom, hasText: false, isDone: false })
    const id = this.unique(wireId, count => `${wireId ?? 'call'}_${count}`)
    sink.openCall(0, index, { id, name: name.toWellFormed(), signature: null })
    if (isCustom) sink.addArguments(0, index, '{"input":"')
  }

  private addArguments(place: number, delta: string, sink: AnswerSink): void {
    const call = this.calls.get(place)
    if (call === undefined || call.isDone || delta === '') return
    call.hasText = true
    // A free text travels within JSON, as every other call's arguments do.
    sink.addArguments(0, call.index, call.isCustom ? JSON.stringify(delta).slice(1, -1) : delta)
  }

  private endItem(place: number, item: Json, sink: AnswerSink): void {
    switch (item.type) {
      case 'message':
        break
      case 'reasoning':
        this.endReasoning(item, sink)
        break
      default:
        if (isCall(item)) this.endCall(place, item, sink)
        // A client throws at an item without a type.
        else if (isText(item.type))
          sink.add({ type: 'provider_item', choice: 0, dialect: 'responses', json: JSON.stringify(item) })
    }
  }

  private endCall(place: number, item: Json, sink: AnswerSink): void {
    this.openItem(place, item, sink)
    const call = this.calls.get(place)
    if (call === undefined || call.isDone) return
    if (!call.hasText) this.addArguments(place, getArguments(item), sink)
    call.isDone = true
    // A call that the output cap cut is not closed: it is no whole one.
    if (call.isCustom && item.status !== 'incomplete') sink.addArguments(0, call.index, '"}')
  }

  private endReasoning({ encrypted_content: data, id }: Json, sink: AnswerSink): void {
    if (!isText(data)) return
    sink.add({ type: 'reasoning_end', choice: 0, family: 'openai', kind: 'encrypted', data, id: findName(id) })
  }

  private say(text: string, sink: AnswerSink): void {
    if (text === '') return
    this.cited.add(text)
    sink.addText(0, text, this.phase)
  }

  private probabilities(list: unknown, sink: AnswerSink): void {
    const tokens = getLogprobs(list)
    if (tokens.length > 0) sink.add({ type: 'logprobs', choice: 0, tokens })
  }

  private annotation(annotation: unknown, sink: AnswerSink): void {
    if (!isRecord(annotation)) return
    const start = wholeNumber(annotation.start_index)
    const end = wholeNumber(annotation.end_index)
    const place = start === null || end === null ? null : { start: this.partFrom + start, end: this.partFrom + end }
    const own = { dialect: 'responses', json: JSON.stringify(annotation) } as const
    this.cited.cite(sink, { url: annotation.url, title: annotation.title }, place, own)
  }

  private wholeItem(place: number, item: Json, sink: AnswerSink): void {
    if (item.type === 'message') {
      this.phase = findName(item.phase)
      for (const part of records(item.content)) {
        this.partFrom = this.cited.points()
        this.say(getText(part.text), sink)
        if (isText(part.refusal)) sink.addRefusal(0, part.refusal)
        this.probabilities(part.logprobs, sink)
        for (const annotation of records(part.annotations)) this.annotation(annotation, sink)
      }
    }
    if (item.type === 'reasoning') {
      const texts = [...records(item.summary), ...records(item.content)].map(({ text }) => getText(text))
      const text = texts.filter(isText).join('\n\n')
      if (text !== '') sink.addReasoning(0, text)
    }
    this.endItem(place, item, sink)
  }

  private end(response: Json, sink: AnswerSink, told = getText(response.status)): void {
    if (told === 'failed' || isRecord(response.error)) {
      sink.fail(failureInAnswer(response.error ?? response))
      return
    }
    this.served(response, sink)
    const usage = findUsage(record(response.usage))
    if (usage !== null) sink.reportUsage(usage)
    if (told !== 'completed' && told !== 'incomplete') {
      sink.fail(truncated('unknown_status'))
      return
    }
    const { reason } = record(response.incomplete_details)
    const cut = reason === 'content_filter' ? 'content_filter' : 'length'
    const whole = this.calls.size > 0 ? 'tool_calls' : 'stop'
    sink.finish(0, told === 'incomplete' ? cut : whole)
    sink.end()
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
