/**
 * Sends a client's own Messages body to Anthropic with minimal changes. Reordered keys or reformatted numbers would
 * miss the prompt cache, and a changed block would invalidate a signature.
 */
import type { SourceBody } from '../../core/chat/chat.ts'
import { isSendableField } from '../../core/chat/provider-features.ts'
import { contradictingKind } from '../../core/chat/request-texts.ts'
import { fullName, type Model } from '../../core/models/models.ts'
import { hasUses, usesUnlessLimited } from '../../core/usage/source-charges.ts'
import { isText, type Json, record, records } from '../json.ts'
import { type Edit, edited, elementsAt, type JsonSpan, type Member, membersAt, removals } from '../json-spans.ts'
import type { AdapterRequest } from '../provider.ts'
import { askedCall } from './blocks.ts'

/** Fields that depend on the model, as a translated request contains them. */
type ModelFields = Readonly<
  Record<'temperature' | 'top_p' | 'top_k' | 'thinking' | 'output_config' | 'tool_choice', unknown>
>

type OwnBody = { readonly text: string; readonly dropped: readonly string[] }

/** Written by older releases of LangChain for sampling fields that are not set. Newer models accept no sampling field. */
const unset = -1

/**
 * Returns the source of a request if it is up to date; null = the gateway has changed the request, or the source has
 * another form.
 */
export function ownSource({ request }: AdapterRequest): SourceBody | null {
  const { source } = request
  return source?.dialect === 'messages' && source.messages === request.messages ? source : null
}

/**
 * Returns the client's text with the model, the cap and the streaming mode of this attempt. `fields` is called if the
 * client wrote it for another model. Null = the request must be translated.
 */
export function ownBody(question: AdapterRequest, source: SourceBody, fields: () => ModelFields): OwnBody | null {
  const { request, model, outputCap, stream, cacheMarks } = question
  const members = membersAt(source.text, 0)
  const values: Record<string, unknown> = { model: model.id }
  if (outputCap < (request.maxOutputTokens ?? 0)) {
    // Reasoning needs room under the cap, which only the translation balances.
    if (Number(record(source.fields.thinking).budget_tokens ?? 0) >= outputCap) return null
    values.max_tokens = outputCap
  }
  if ((source.fields.stream === true) !== stream) values.stream = stream
  // At the top level it stands for a mark at the last block.
  if (cacheMarks === 'conversation') values.cache_control = { type: 'ephemeral' }
  const { user_id, ...tags } = record(source.fields.metadata)
  // Anthropic accepts only `user_id`; the other members are tags of the gateway.
  if (Object.keys(tags).length > 0) values.metadata = user_id === undefined ? undefined : { user_id }
  for (const name of ['top_p', 'top_k']) if (source.fields[name] === unset) values[name] = undefined
  const isForeign = !isNamed(model, request.model)
  if (isForeign) {
    if (!canSay(source.fields, fields())) return null
    Object.assign(values, changedFields(source.fields, question, fields()))
  } else if (lacksThinking(source)) values.thinking = fields().thinking
  const asked = isForeign ? null : askedCall(source, members, model)
  Object.assign(values, asked?.values)
  const dropped = Object.keys(values).filter(
    name =>
      name !== 'metadata' && values[name] === undefined && source.fields[name] != null && source.fields[name] !== unset,
  )
  if (asked !== null) dropped.unshift('tool_choice')
  dropped.push(...source.refused)
  const turn = turnEdits(source, members)
  if (turn === null) return null
  const sealed = sealedEdits(source, members)
  const others = [...sealed, ...citationEdits(source, members), ...useEdits(source, members), ...turn]
  const labels = labelEdits(source.text, members.find(({ key }) => key === 'messages')?.value, source.fields.messages)
  const lines = asked?.edits ?? []
  const edits = [...labels, ...fieldEdits(members, values, isUnsendable(source)), ...lines, ...others]
  return { text: edited(source.text, edits), dropped }
}

/** The client's text with the model, for a count. */
export function countBody(source: SourceBody, model: Model): string {
  const members = membersAt(source.text, 0)
  const edits = fieldEdits(members, { model: model.id }, isUnsendable(source))
  return edited(source.text, [...edits, ...sealedEdits(source, members), ...citationEdits(source, members)])
}

/** Whether the client meant this very model, and so wrote what it takes. */
export function isNamed(model: Model, name: string | null): boolean {
  const wanted = name?.toLowerCase()
  const { provider, aliases, marketplaceAliases } = model
  const names = [
    fullName(model),
    model.id,
    ...aliases,
    ...aliases.map(id => fullName({ id, provider })),
    ...marketplaceAliases,
  ]
  return names.some(text => text.toLowerCase() === wanted)
}

/**
 * Returns true if the model supports the forced call and the schema directly, without instructions that only a
 * translation adds.
 */
function canSay(written: Json, translated: ModelFields): boolean {
  const choice = record(written.tool_choice).type
  const isDemand = choice === 'any' || choice === 'tool'
  if (isDemand && record(translated.tool_choice).type !== choice) return false
  return record(written.output_config).format == null || record(translated.output_config).format !== undefined
}

/** Returns the fields that this model needs in another form; undefined = it supports none. */
function changedFields(
  written: Json,
  { request: { reasoningEffort }, model }: AdapterRequest,
  translated: ModelFields,
): Partial<ModelFields> {
  const changed: Record<string, unknown> = {}
  for (const name of ['temperature', 'top_p', 'top_k'] as const)
    if (written[name] != null && translated[name] === undefined) changed[name] = undefined
  if (written.thinking != null && !takesThinking(model, record(written.thinking).type))
    changed.thinking = translated.thinking
  const config = record(written.output_config)
  if (config.effort != null && !model.parameters.efforts.some(item => item === config.effort))
    changed.output_config = translated.output_config
  // The client names no effort, so routing has chosen this one. Whether the model shows its thinking stays the client's choice.
  const thinking = record(written.thinking).type ?? 'adaptive'
  if (
    config.effort == null &&
    thinking === 'adaptive' &&
    model.parameters.efforts.some(item => item === reasoningEffort)
  )
    changed.output_config = { ...config, effort: reasoningEffort }
  return changed
}

function takesThinking({ parameters: { reasoning } }: Model, type: unknown): boolean {
  switch (reasoning.kind) {
    case 'adaptive':
      return type === 'adaptive' || type === reasoning.off
    case 'budget':
      return type === 'enabled' || (type === 'disabled' && reasoning.canDisable)
    default:
      return false
  }
}

/**
 * Returns true if reasoning with a budget is requested and the answered calls came from another provider's model: the
 * API requires its own reasoning before them.
 */
function lacksThinking({ fields, sealed = [] }: SourceBody): boolean {
  if (record(fields.thinking).type !== 'enabled' || sealed.length === 0) return false
  const messages = Array.isArray(fields.messages) ? fields.messages : []
  const last = messages.findLastIndex(message => record(message).role === 'assistant')
  return sealed.some(([message]) => message === last)
}

/** Returns the body with these members set or, where undefined, removed. Everything else stays as it is written. */
export function withMembers(text: string, values: Json): string {
  return edited(text, fieldEdits(membersAt(text, 0), values))
}

/** Returns a check for fields that Anthropic does not receive: those of the gateway, and those that may cost more than is known. */
function isUnsendable({ fields }: SourceBody): (key: string) => boolean {
  return key => !isSendableField('messages', key, fields[key])
}

/** Sets members with these names, removes undefined ones and those that `isRemoved` names, and adds missing ones. */
export function fieldEdits(
  members: readonly Member[],
  values: Json,
  isRemoved: (key: string) => boolean = () => false,
) {
  const isSet = ({ key }: Member) => Object.hasOwn(values, key) && values[key] !== undefined
  const isOut = (member: Member) => !isSet(member) && (Object.hasOwn(values, member.key) || isRemoved(member.key))
  const replaced = members.filter(isSet).map(({ key, value }) => ({ ...value, text: JSON.stringify(values[key]) }))
  const removed = removals(members, index => isOut(members[index] ?? noMember))
  const missing = Object.entries(values).filter(
    ([name, value]) => value !== undefined && members.every(({ key }) => key !== name),
  )
  const last = members.at(-1)
  const added = missing.map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`).join('')
  // After the last remaining member. There is one, since `messages` and `model` are required.
  const end = members.findLast(member => !isOut(member)) ?? last
  if (added === '' || end === undefined) return [...replaced, ...removed]
  const at = { from: end.to, to: end.to }
  const own = replaced.find(edit => edit.to === end.to)
  if (own === undefined) return [...replaced, ...removed, { ...at, text: added }]
  return [...replaced.filter(edit => edit !== own), ...removed, { ...own, text: own.text + added }]
}

const noMember: Member = { key: '', from: 0, to: 0, value: { from: 0, to: 0 } }

/** Removes the blocks that the gateway sealed, and turns that contain nothing else. */
function sealedEdits({ text, sealed = [], fields }: SourceBody, members: readonly Member[]): readonly Edit[] {
  const list = members.find(({ key }) => key === 'messages')
  if (sealed.length === 0 || list === undefined) return []
  const parts = new Map<number, Set<number>>()
  for (const [message, part] of sealed) parts.set(message, (parts.get(message) ?? new Set()).add(part))
  const turns = elementsAt(text, list.value.from)
  const messages = Array.isArray(fields.messages) ? fields.messages : []
  const getCount = (turn: number) => {
    const content: unknown = record(messages[turn]).content
    return Array.isArray(content) ? content.length : 0
  }
  const isEmptied = (turn: number) => parts.get(turn)?.size === getCount(turn)
  const blocks = [...parts].flatMap(([turn, out]) => {
    const span = turns[turn]
    if (span === undefined || isEmptied(turn)) return []
    const content = findContent(text, span)
    return content === null ? [] : removals(content, index => out.has(index))
  })
  return [...removals(turns, isEmptied), ...blocks]
}

/** Removes citations that the gateway wrote for other sources than Anthropic's search: Anthropic would reject their index. */
function citationEdits({ text, fields }: SourceBody, members: readonly Member[]): readonly Edit[] {
  const messages: readonly unknown[] = Array.isArray(fields.messages) ? fields.messages : []
  const list = members.find(({ key }) => key === 'messages')
  if (list === undefined || !messages.some(turn => records(record(turn).content).some(isWrittenHere))) return []
  const turns = elementsAt(text, list.value.from)
  return messages.flatMap((turn, at) => {
    const span = turns[at]
    const blocks = span === undefined ? null : findContent(text, span)
    return (blocks ?? []).flatMap((block, index) => {
      const content: unknown = record(turn).content
      const written: unknown = Array.isArray(content) ? content[index] : null
      if (!isWrittenHere(record(written))) return []
      const { citations } = record(written)
      const value = membersAt(text, block.from).findLast(({ key }) => key === 'citations')?.value
      if (value === undefined || !Array.isArray(citations)) return []
      return removals(elementsAt(text, value.from), place => isOfGateway(record(citations[place])))
    })
  })
}

const isWrittenHere = ({ citations }: Json) => records(citations).some(isOfGateway)
const isOfGateway = ({ type, encrypted_index: index }: Json) => type === 'web_search_result_location' && index === ''

/** Inserts the additions of the gateway into the last turn; null = it has no text. */
function turnEdits({ text, fields, turn }: SourceBody, members: readonly Member[]): readonly Edit[] | null {
  if (turn === undefined) return []
  const list = members.find(({ key }) => key === 'messages')
  const span = list === undefined ? undefined : elementsAt(text, list.value.from).at(-1)
  const last: unknown = Array.isArray(fields.messages) ? fields.messages.at(-1) : null
  const { role, content } = record(last)
  const value = span && membersAt(text, span.from).findLast(({ key }) => key === 'content')?.value
  if (value === undefined || role !== 'user') return null
  const before = turn.before === undefined ? null : JSON.stringify({ type: 'text', text: turn.before })
  const said = turn.text === undefined ? null : JSON.stringify(turn.text)
  if (typeof content === 'string') {
    const own = said ?? text.slice(value.from, value.to)
    return [{ ...value, text: before === null ? own : `[${before},{"type":"text","text":${own}}]` }]
  }
  const index = Array.isArray(content) ? content.findIndex(block => record(block).type === 'text') : -1
  const block = elementsAt(text, value.from)[index]
  const own = block && membersAt(text, block.from).findLast(({ key }) => key === 'text')?.value
  if (block === undefined || own === undefined) return null
  return [
    ...(before === null ? [] : [{ from: block.from, to: block.from, text: `${before},` }]),
    ...(said === null ? [] : [{ ...own, text: said }]),
  ]
}

/** Corrects the media types of images that contradict their bytes, in messages and in results of tools. */
function labelEdits(text: string, list: JsonSpan | undefined, values: unknown): readonly Edit[] {
  if (list === undefined || !Array.isArray(values) || !values.some(hasWrongLabel)) return []
  const valueIn = (span: JsonSpan | undefined, name: string) =>
    span && membersAt(text, span.from).findLast(({ key }) => key === name)?.value
  return elementsAt(text, list.from).flatMap((span, index) => {
    const block = record(values[index])
    const kind = kindOfWrongLabel(block)
    const label = kind === null ? undefined : valueIn(valueIn(span, 'source'), 'media_type')
    if (kind === null || label === undefined) return labelEdits(text, valueIn(span, 'content'), block.content)
    return [{ ...label, text: JSON.stringify(kind) }]
  })
}

function hasWrongLabel(value: unknown): boolean {
  const block = record(value)
  return kindOfWrongLabel(block) !== null || (Array.isArray(block.content) && block.content.some(hasWrongLabel))
}

function kindOfWrongLabel({ type, source }: Json): string | null {
  const { media_type: label, data } = record(source)
  return type === 'image' && isText(label) && isText(data) ? contradictingKind(label, data) : null
}

/** Limits searches and fetched pages, where the client set no limit. */
function useEdits({ text, fields }: SourceBody, members: readonly Member[]): readonly Edit[] {
  const tools: readonly unknown[] = Array.isArray(fields.tools) ? fields.tools : []
  const list = members.find(({ key }) => key === 'tools')
  if (list === undefined || !tools.some(hasUses)) return []
  return elementsAt(text, list.value.from).flatMap((span, index) => {
    const tool = tools[index]
    if (!hasUses(tool) || tool.max_uses != null) return []
    return fieldEdits(membersAt(text, span.from), { max_uses: usesUnlessLimited })
  })
}

function findContent(text: string, turn: JsonSpan): readonly JsonSpan[] | null {
  const content = membersAt(text, turn.from).findLast(({ key }) => key === 'content')
  return content === undefined || text[content.value.from] !== '[' ? null : elementsAt(text, content.value.from)
}

/** Returns the fields of a translated body that replace the client's own. */
export function modelFields(body: Json): ModelFields {
  const { temperature, top_p, top_k, thinking, output_config, tool_choice } = body
  return { temperature, top_p, top_k, thinking, output_config, tool_choice }
}
