/** Parses the turns of a Messages request into messages. */
import type { ContentPart, Message, ReasoningItem, ToolCall } from '../../core/chat/chat.ts'
import { refuseUnknownPart } from '../../core/chat/provider-features.ts'
import type { ReadValues } from '../../core/chat/request-texts.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField } from '../../core/validation/validate.ts'
import { isSealed, type ReasoningSeal } from '../reasoning-seal.ts'
import {
  anthropicOnly,
  type BlockFields,
  contentParts,
  type Findings,
  findReasoning,
  getBlocks,
  getMark,
  innerParts,
  isBlockFields,
  readField,
  textField,
} from './blocks.ts'

type ParsedConversation = {
  readonly messages: readonly Message[]
  readonly needs: readonly string[]
  /** Positions of blocks with reasoning that the gateway sealed. */
  readonly sealed: readonly (readonly [message: number, part: number])[]
}

type WireMessage = { readonly role: 'user' | 'assistant' | 'system'; readonly content: unknown }

/** State of one parse. */
type TextScan = {
  readonly open: (sealed: string) => ReasoningItem | null
  readonly findings: Findings
  readonly sealed: (readonly [number, number])[]
  /** IDs of the calls that the next turn of the user answers. */
  readonly calls: Set<string>
  isAnswering: boolean
}

/** Parses the system text and the turns. Throws `invalid_request` with the block at fault. */
export function readConversation(
  { system, messages: turns }: { readonly system?: unknown; readonly messages: readonly WireMessage[] },
  { seal, accountId }: { readonly seal: ReasoningSeal; readonly accountId: string },
  values: ReadValues,
): ParsedConversation {
  const findings: Findings = { needs: new Set(), values }
  const open = (text: string) => seal.open(accountId, text)
  const scan: TextScan = { open, findings, sealed: [], calls: new Set(), isAnswering: false }
  const messages = [
    ...systemMessage(system, 'system', values),
    ...turns.flatMap(({ role, content }, index) => {
      if (role === 'assistant') return [assistantMessage(content, index, scan)]
      const param = `messages.${index}.content`
      return role === 'system' ? systemMessage(content, param, values) : userMessages(content, param, scan)
    }),
  ]
  return {
    messages,
    needs: [...findings.needs],
    sealed: scan.sealed,
  }
}

/**
 * Claude Code's first block, which names its version. Anthropic removes it; for other providers a new version would invalidate the
 * prefix cache. The pattern allows only short values, so that no text can avoid moderation.
 */
const attribution = /^x-anthropic-billing-header:(?: ?[\w-]{1,32}=[\w.:-]{1,64};?){1,8}\s?$/

function systemMessage(content: unknown, param: string, values: ReadValues): readonly Message[] {
  const parts = getBlocks(content)
    .map((block, index) => {
      // Others could declare tools.
      if (block.type !== 'text') throw invalidField(`${param}.${index}.type`, 'must be "text"', 'unsupported_parameter')
      return { text: textField(block, 'text', `${param}.${index}`), ...getMark(block) }
    })
    .filter(({ text }) => text !== '' && !attribution.test(text))
  values.add(...parts.map(({ text }) => text))
  const messages: Message[] = []
  let texts: string[] = []
  // A message ends at each mark, so that the mark keeps its place.
  for (const [at, { text, cache }] of parts.entries()) {
    texts.push(text)
    if (cache === undefined && at < parts.length - 1) continue
    messages.push({ role: 'system', text: texts.join('\n\n'), ...(cache && { cache }) })
    texts = []
  }
  return messages
}

/** Puts results first, as every provider requires. Their images and documents follow in the user's turn. */
function userMessages(content: unknown, param: string, scan: TextScan): readonly Message[] {
  const { findings, calls } = scan
  scan.isAnswering = true
  const results: Message[] = []
  const attached: ContentPart[] = []
  const said: ContentPart[] = []
  for (const [index, block] of getBlocks(content).entries()) {
    const place = `${param}.${index}`
    if (block.type === 'tool_result') {
      const { message, attachments } = toolResult(block, place, findings)
      if (!calls.has(message.callId)) throw orphanResult(place)
      results.push(message)
      attached.push(...attachments)
    } else {
      const parts = contentParts(block, place, findings) ?? ownBlock(block, place, findings)
      said.push(...parts)
    }
  }
  const parts = [...attached, ...said]
  if (parts.length === 0 && results.length > 0) return results
  return [...results, { role: 'user', content: parts, name: null }]
}

function toolResult(
  block: BlockFields,
  param: string,
  findings: Findings,
): { readonly message: Extract<Message, { role: 'tool' }>; readonly attachments: readonly ContentPart[] } {
  const texts: string[] = []
  const files: ContentPart[] = []
  for (const [index, item] of getBlocks(block.content).entries())
    for (const part of innerParts(item, `${param}.content.${index}`, findings))
      if (part.type === 'text') texts.push(part.text)
      else files.push(part)
  const callId = readField(block, 'tool_use_id', param, findings.values)
  const isError = block.is_error === true
  const text = texts.join('\n')
  const mark = getMark(getBlocks(block.content).findLast(item => getMark(item).cache !== undefined) ?? block)
  return {
    // Only Anthropic has an error flag. For other providers the text reports the error.
    message: isError
      ? { role: 'tool', callId, text: /^\W*error/i.test(text) ? text : `Error: ${text}`, isError, ...mark }
      : { role: 'tool', callId, text, ...mark },
    attachments:
      files.length === 0 ? [] : [{ type: 'text', text: `From the result of the tool call ${callId}:` }, ...files],
  }
}

/** A model would read the result as the user's words. Clients recognize Anthropic's text. */
function orphanResult(place: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    { param: `${place}.tool_use_id` },
  )
}

/** Returns the parts of a block that only Anthropic reads. Throws for a file in a container, which is the operator's. */
function ownBlock(block: BlockFields, place: string, findings: Findings): readonly ContentPart[] {
  if (block.type === 'container_upload')
    throw invalidField(`${place}.type`, 'refers to a stored file. Files are not stored here', 'unsupported_parameter')
  refuseUnknownPart('messages', block.type, place)
  return anthropicOnly(String(block.type), findings)
}

function assistantMessage(content: unknown, message: number, scan: TextScan): Message {
  const texts: string[] = []
  const items: ReasoningItem[] = []
  const calls: ToolCall[] = []
  /** Google's signatures by call ID. */
  const signatures = new Map<string, string>()
  const unsigned: string[] = []
  const { values } = scan.findings
  if (scan.isAnswering) scan.calls.clear()
  scan.isAnswering = false
  for (const [part, block] of getBlocks(content).entries()) {
    const param = `messages.${message}.content.${part}`
    refuseUnknownPart('messages', block.type, param)
    const reasoning = findReasoning(block)
    if (reasoning !== null) {
      const item = replayed(reasoning, [message, part], scan)
      // A sealed block is not sent as it is.
      values.add(isSealed(reasoning.data) ? block : reasoning.text)
      if (item === null) continue
      if (item.family === 'google' && item.id !== null) signatures.set(item.id, item.data)
      else if (item.data !== '') items.push(item)
      // A summary that its provider does not accept again is dropped.
      else if (item.family === 'compatible' || item.family === 'anthropic') unsigned.push(item.text)
    } else if (block.type === 'text') texts.push(readField(block, 'text', param, values))
    else if (block.type === 'tool_use') calls.push(toolCall(block, param, values))
    // The summary replaces the turns before it.
    else if (block.type === 'compaction' && typeof block.content === 'string')
      texts.push(readField(block, 'content', param, values))
    // Other blocks are calls and results of tools that ran at Anthropic. Other providers receive only the text that followed.
  }
  for (const { id } of calls) scan.calls.add(id)
  return {
    role: 'assistant',
    text: texts.length === 0 ? null : texts.join(''),
    reasoning: unsigned.join('\n') || null,
    ...(items.length === 0 ? {} : { reasoningItems: items }),
    toolCalls: calls.map(call => ({ ...call, signature: signatures.get(call.id) ?? null })),
    name: null,
    ...getMark(getBlocks(content).findLast(block => getMark(block).cache !== undefined) ?? {}),
  }
}

/** Returns the item of a block: the opened one if the gateway sealed it, else Anthropic's. Null = sealed for another account. */
function replayed(
  { kind, text, data }: Pick<ReasoningItem, 'kind' | 'text' | 'data'>,
  place: readonly [number, number],
  { open, sealed }: TextScan,
): ReasoningItem | null {
  if (!isSealed(data)) return { family: 'anthropic', kind, text, data, id: null }
  sealed.push(place)
  const item = open(data)
  return item === null || item.text !== '' ? item : { ...item, text }
}

function toolCall(block: BlockFields, param: string, values: ReadValues): ToolCall {
  const id = readField(block, 'id', param, values)
  const name = readField(block, 'name', param, values)
  if (id === '' || id.length > 512) throw invalidField(`${param}.id`, 'must be a string of 1 to 512 characters')
  if (block.input != null && !isBlockFields(block.input)) throw invalidField(`${param}.input`, 'must be an object')
  values.add(block.input)
  return { id, name, arguments: JSON.stringify(block.input ?? {}), signature: null }
}
