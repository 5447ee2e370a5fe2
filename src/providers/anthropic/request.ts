import type { Message, SourceBody } from '../../core/chat/chat.ts'
import { isSendableField } from '../../core/chat/provider-features.ts'
import { isDemanding } from '../../core/chat/tool-definitions.ts'
import type { Model, ParameterRules } from '../../core/models/models.ts'
import { type MarkedBlocks, withCacheMarks } from '../cache-marks.ts'
import { isVisible } from '../conversation-steps.ts'
import { sortExtras } from '../extras.ts'
import { encoded, type Json } from '../json.ts'
import { callInstruction, droppedNames, mayForce, nonEmpty, parametersFor } from '../parameters.ts'
import type { Access, ProviderAsk, ProviderRequest } from '../provider.ts'
import { anthropicTurnsFor, textBlock } from './conversation.ts'
import { type JsonAnswer, jsonAnswerFor, jsonLines } from './json-answer.ts'
import { type Reasoning, reasoningFor } from './reasoning.ts'
import { countBody, modelFields, ownBody, ownSource } from './source-body.ts'
import { isForced, toolsFor } from './tools.ts'

/** Parameters that this API lacks for all models. */
const wordless = {
  penalties: false,
  seed: false,
  logitBias: false,
  logprobs: false,
  maximumChoices: 1,
} satisfies Partial<ParameterRules>

/** Builds the request: the client's own body if it has this form, otherwise a translation. */
export function toAnthropicRequest(question: ProviderAsk, access: Access): ProviderRequest {
  const source = ownSource(question)
  let translation: Translation | null = null
  const translated = () => (translation ??= translatedBody(question))
  const own = source === null ? null : ownBody(question, source, () => modelFields(translated().body))
  return {
    url: `${originOf(access)}/v1/messages`,
    headers: headersFor(access, own === null ? null : source),
    body: own?.text ?? encoded(translated().body),
    droppedParameters: own === null ? translated().dropped : droppedNames(noneDropped, own.dropped),
  }
}

/** The request for a count of a client's own body. */
export function countRequest(source: SourceBody, model: Model, access: Access) {
  return {
    url: `${originOf(access)}/v1/messages/count_tokens`,
    headers: headersFor(access, source),
    body: countBody(source, model),
  }
}

function originOf({ baseUrl }: Access): string {
  return baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')
}

/** A beta's header goes with its fields: one without the other is refused. */
function headersFor({ apiKey }: Access, source: SourceBody | null): ProviderRequest['headers'] {
  return {
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
    ...source?.headers,
    ...(apiKey !== null && { 'x-api-key': apiKey }),
  }
}

const noneDropped: ReadonlySet<never> = new Set()

type Translation = { readonly body: Json; readonly dropped: readonly string[] }

/** Fields of the Messages form that apply wherever the rest of the body came from. */
const passedFields = ['top_k', 'service_tier']

function translatedBody(question: ProviderAsk): Translation {
  const { ask, model, outputCap, stream } = question
  const rules = model.parameters
  const json = jsonAnswerFor(question)
  const marks: MarkedBlocks = new Map()
  const { tools, choice: wantedChoice } = toolsFor(question, json, marks)
  const reasoning = reasoningFor(question, isForced(wantedChoice))
  const thinks = reasoning.thinking !== null && reasoning.thinking.type !== 'disabled'
  const unforced = isForced(wantedChoice) && !mayForce(rules, thinks)
  const choice = unforced ? { ...wantedChoice, type: 'auto', name: undefined } : wantedChoice
  const parameters = parametersFor(ask, { ...rules, ...wordless }, thinks)
  const stops = parameters.stops?.filter(isVisible) ?? []
  const lines = [...jsonLines(json), ...(unforced ? [callInstruction(wantedChoice.name)] : [])]
  const samples = rules.sampling === 'accepted' || (!thinks && rules.sampling === 'accepted_when_thinking_disabled')
  const extras = sortExtras('anthropic', ask.extras, {
    listed: ask.dialect === 'messages' ? passedFields : [],
    takes: (name, value) => (name !== 'top_k' || samples) && isSendableField('messages', name, value),
  })
  const system = [...systemBlocks(ask.messages, marks), ...lines.map(textBlock)]
  const prefill = rules.prefill && !thinks && !isForced(choice) && json.kind !== 'native'
  const turns = anthropicTurnsFor(ask.messages, prefill, marks)
  const blocks = withCacheMarks({ tools, system, turns }, marks, question.cacheMarks ?? null)

  const body = {
    model: model.id,
    max_tokens: outputCap,
    stream,
    system: nonEmpty(blocks.system),
    messages: blocks.turns.map(({ role, parts }) => ({ role, content: parts })),
    tools: nonEmpty(blocks.tools),
    tool_choice: choice ?? undefined,
    temperature: parameters.temperature,
    top_p: parameters.topP,
    stop_sequences: nonEmpty(stops),
    thinking: reasoning.thinking ?? undefined,
    output_config: outputConfigFor(reasoning, json),
    metadata: isOpaqueUser(ask.endUser) ? { user_id: ask.endUser } : undefined,
    ...extras.sent,
  }

  const dropped = new Set(parameters.dropped)
  if (stops.length < (parameters.stops?.length ?? 0)) dropped.add('stop')
  if (unforced) dropped.add(json.kind === 'tool' ? 'response_format' : 'tool_choice')
  if (ask.tools.length === 0 && isDemanding(ask.toolChoice)) dropped.add('tool_choice')
  if (json.kind === 'line' && json.schema !== null) dropped.add('response_format')
  if (reasoning.dropped) dropped.add('reasoning_effort')

  return {
    body,
    dropped: droppedNames(
      dropped,
      blocks.dropsMarks ? [...extras.dropped, 'cache_control'] : extras.dropped,
      ask.source?.dialect === 'responses' ? ask.source : null,
    ),
  }
}

/** Returns the system texts as blocks, and notes those that the client marked. */
function systemBlocks(messages: readonly Message[], marks: MarkedBlocks): readonly Json[] {
  return messages.flatMap(message => {
    if (message.role !== 'system' || !isVisible(message.text)) return []
    const block = textBlock(message.text)
    if (message.cache !== undefined) marks.set(block, message.cache)
    return [block]
  })
}

function outputConfigFor({ effort }: Reasoning, json: JsonAnswer): Json | undefined {
  if (effort === null && json.kind !== 'native') return undefined
  return {
    effort: effort ?? undefined,
    format: json.kind === 'native' ? { type: 'json_schema', schema: json.schema } : undefined,
  }
}

/**
 * Returns true for an allowed user ID. The provider's terms forbid email addresses, and IDs have at most 256
 * characters.
 */
function isOpaqueUser(user: string | null): user is string {
  return user !== null && isVisible(user) && user.length <= 256 && !user.includes('@')
}
