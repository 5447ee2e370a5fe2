/** Parses the items of a Responses input into messages. */
import { Type } from '@sinclair/typebox'
import type { Message, ReasoningItem } from '../../core/chat/chat.ts'
import { refuseUnknownPart } from '../../core/chat/provider-features.ts'
import type { ReadValues } from '../../core/chat/request-texts.ts'
import { flatToolName } from '../../core/chat/tool-definitions.ts'
import { bodyText, callId } from '../../core/request/part-schemas.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf } from '../../core/validation/validate.ts'
import { customArguments } from '../custom-tools.ts'
import { checkerAt, type Fields, isFields, open, textOrNull } from '../foreign-objects.ts'
import type { ReasoningOpener } from '../reasoning-seal.ts'
import { withCarriedItems } from './carried-items.ts'
import { isTextPart, nativeItem, readParts, textIn } from './parts.ts'
import { searchToolName, type ToolList } from './tools.ts'
import { Turns } from './turns.ts'

export const maximumItems = 10_000

export type ReadInput = {
  readonly messages: readonly Message[]
  /** Tools that the input declares. */
  readonly declared: readonly ToolList[]
  /** Tools that a search of the client found. */
  readonly loaded: readonly ToolList[]
  /** Paths of items that only OpenAI supports. */
  readonly needs: readonly string[]
  /** The input for OpenAI: without IDs of objects that are not stored, and with OpenAI's reasoning unsealed. */
  readonly native: string | readonly unknown[]
  /** The input ends with a text of the user, before which the gateway can insert one. */
  readonly endsWithText: boolean
}

const itemName = Type.String({ minLength: 1, maxLength: 256 })
const checkMessage = checkerAt(Type.Object({ role: oneOf(['user', 'assistant', 'system', 'developer']) }, open))
const checkCall = checkerAt(
  Type.Object({ call_id: callId, name: itemName, namespace: nullable(itemName), arguments: bodyText }, open),
)
const checkCustomCall = checkerAt(
  Type.Object({ call_id: callId, name: itemName, namespace: nullable(itemName), input: bodyText }, open),
)
const checkOutput = checkerAt(Type.Object({ call_id: callId }, open))
const checkSearch = checkerAt(Type.Object({ call_id: nullable(callId) }, open))

type TextScan = {
  readonly turns: Turns
  readonly opener: ReasoningOpener
  readonly declared: ToolList[]
  readonly loaded: ToolList[]
  readonly needs: string[]
  readonly native: unknown[]
  /** What the messages contain. */
  readonly values: ReadValues
  /** The opened reasoning of the current item; null if there is none. */
  opened: ReasoningItem | null
}

/** Parses the input. Throws `invalid_request` with the item at fault. */
export function readInputItems(
  given: string | readonly unknown[],
  instructions: readonly string[],
  opener: ReasoningOpener,
  values: ReadValues,
): ReadInput {
  const input = typeof given === 'string' ? given : withCarriedItems(given, opener)
  const scan: TextScan = {
    turns: new Turns(),
    opener,
    declared: [],
    loaded: [],
    needs: [],
    native: [],
    values,
    opened: null,
  }
  for (const text of instructions) scan.turns.add({ role: 'system', text })
  if (typeof input === 'string') addUser(scan, input, 'input')
  else
    for (const [index, item] of input.entries()) {
      scan.opened = null
      readItem(scan, item, `input.${index}`)
      const native = nativeItem(item, scan.opened)
      // The seal proves that this text came from the provider.
      if (scan.opened !== null) values.add(...native)
      scan.native.push(...native)
    }
  const last = typeof input === 'string' ? null : input.at(-1)
  return {
    messages: scan.turns.messages(),
    declared: scan.declared,
    loaded: scan.loaded,
    needs: scan.needs,
    native: typeof input === 'string' ? input : scan.native,
    endsWithText: typeof input === 'string' || isUserText(last),
  }
}

function isUserText(item: unknown): boolean {
  if (!isFields(item) || item.role !== 'user' || (item.type ?? 'message') !== 'message') return false
  const { content } = item
  return typeof content === 'string' || (Array.isArray(content) && content.some(isTextPart))
}

function readItem(scan: TextScan, item: unknown, place: string): void {
  if (!isFields(item)) throw invalidField(place, 'must be an object')
  refuseUnknownPart('responses', item.type, place)
  const { turns } = scan
  switch (item.type ?? 'message') {
    case 'message':
      readMessage(scan, item, place)
      break
    case 'reasoning':
      readReasoning(scan, item)
      break
    case 'function_call': {
      const call = checkCall(item, place)
      addCall(scan, call)
      scan.values.add(call.arguments)
      turns.call(call.call_id, flatToolName(call.namespace ?? null, call.name), call.arguments)
      break
    }
    case 'custom_tool_call': {
      const call = checkCustomCall(item, place)
      addCall(scan, call)
      const args = customArguments(call.input)
      turns.call(call.call_id, flatToolName(call.namespace ?? null, call.name), args)
      break
    }
    case 'tool_search_call':
      readSearch(scan, item, place)
      break
    case 'function_call_output':
    case 'custom_tool_call_output':
      readOutput(scan, item, place)
      break
    case 'tool_search_output':
      readFoundTools(scan, item, place)
      break
    case 'additional_tools':
      if (!Array.isArray(item.tools)) throw invalidField(`${place}.tools`, 'must be an array of tools')
      scan.declared.push({ tools: item.tools, place: `${place}.tools` })
      break
    // Codex records messages between agents. Other models receive them as user messages.
    case 'agent_message':
    case 'agent_reasoning':
      addSaid(scan, item)
      break
    // The output text already contains the results.
    case 'web_search_call':
      break
    case 'item_reference':
      throw storedItem(item)
    default:
      scan.needs.push(`${place}.type`)
      // Only OpenAI receives the item. Moderation and token counts read it in the body.
      turns.add({ role: 'tool', callId: '', text: '' })
      break
  }
}

type Call = { readonly call_id: string; readonly name: string; readonly namespace?: string | null }

function addCall({ values }: TextScan, { call_id: id, name, namespace }: Call): void {
  values.add(id)
  // A name with other characters has another form in the message.
  if (flatToolName(namespace ?? null, name) === name) values.add(name)
}

function readMessage(scan: TextScan, item: Fields, place: string): void {
  const { turns, needs, values } = scan
  const { role } = checkMessage(item, place)
  if (role === 'user') {
    addUser(scan, item.content, `${place}.content`)
    return
  }
  const { parts, needs: own } = readParts(item.content ?? '', `${place}.content`, values)
  for (const need of own) needs.push(need)
  const attachment = parts.findIndex(part => part.type !== 'text')
  if (attachment !== -1)
    throw invalidField(
      `${place}.content.${attachment}.type`,
      'must be a text part: only user messages can have files and images',
    )
  const texts = parts.flatMap(part => (part.type === 'text' ? [part.text] : []))
  if (role === 'assistant') turns.say(texts.join(''))
  else turns.add({ role: 'system', text: texts.join('\n') })
}

function addUser({ turns, needs, values }: TextScan, content: unknown, place: string): void {
  const { parts, needs: own } = readParts(content, place, values)
  for (const need of own) needs.push(need)
  turns.add({ role: 'user', content: parts, name: null })
}

/** Drops reasoning that the gateway did not seal for this account: no provider can verify it, or another account owns it. */
function readReasoning(scan: TextScan, item: Fields): void {
  const { seal, accountId } = scan.opener
  const sealed = textOrNull(item.encrypted_content)
  scan.opened = sealed === null ? null : seal.open(accountId, sealed)
  if (scan.opened !== null) scan.turns.reason(scan.opened)
}

function readSearch({ turns, needs, values }: TextScan, item: Fields, place: string): void {
  // A search that ran at OpenAI has no call ID.
  const { call_id: id } = checkSearch(item, place)
  if (id == null) {
    needs.push(`${place}.type`)
    return
  }
  values.add(id, item.arguments)
  turns.call(
    id,
    searchToolName,
    typeof item.arguments === 'string' ? item.arguments : JSON.stringify(item.arguments ?? {}),
  )
}

function readOutput({ turns, needs, values }: TextScan, item: Fields, place: string): void {
  const { call_id: id } = checkOutput(item, place)
  values.add(id)
  const { parts, needs: own } = readParts(item.output ?? '', `${place}.output`, values)
  for (const need of own) needs.push(need)
  const text = parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
  const attachments = parts.filter(part => part.type !== 'text')
  if (!turns.answer(id, text, attachments)) throw unknownCall(place)
}

function readFoundTools({ turns, loaded, needs }: TextScan, item: Fields, place: string): void {
  const tools = Array.isArray(item.tools) ? item.tools : []
  loaded.push({ tools, place: `${place}.tools` })
  const { call_id: id } = checkSearch(item, place)
  if (id == null) {
    needs.push(`${place}.type`)
    return
  }
  const names = tools.filter(isFields).map(tool => textOrNull(tool.name) ?? '')
  if (!turns.answer(id, JSON.stringify({ tools: names }), [])) throw unknownCall(place)
}

/** Adds the text of a message between agents, for other models. OpenAI receives the item. */
function addSaid({ turns }: TextScan, item: Fields): void {
  const text = [item.content, item.text, item.message, item.summary].map(textIn).find(said => said !== '')
  if (text !== undefined) turns.add({ role: 'user', content: [{ type: 'text', text }], name: null })
}

function unknownCall(place: string): GatewayError {
  return invalidField(`${place}.call_id`, 'must match the `call_id` of an earlier call in `input`')
}

/** Returns the error for an item reference. It starts with OpenAI's text, which clients recognize. */
function storedItem(item: Fields): GatewayError {
  const id = /^[\w-]{1,64}$/.test(textOrNull(item.id) ?? '') ? textOrNull(item.id) : '…'
  return new GatewayError(
    'not_found',
    `Item with id '${id}' not found. Items are not persisted here: send the item itself, as clients do with \`store: false\` (in the Vercel AI SDK \`providerOptions.openai.store = false\`).`,
    { param: 'input', shouldRetry: false },
  )
}
