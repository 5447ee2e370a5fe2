/** Parses content blocks of Messages requests into message parts. */
import type { ContentPart, ReasoningItem } from '../../core/chat/chat.ts'
import { forwardableAddress } from '../../core/validation/public-address.ts'
import { invalidField } from '../../core/validation/validate.ts'

export type BlockFields = Readonly<Record<string, unknown>>

export function isBlockFields(value: unknown): value is BlockFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the blocks of a content field; a text is one block. The schema has checked that each has a type. */
export function blocksOf(content: unknown): readonly BlockFields[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isBlockFields) : []
}

/** Returns a field that must be a string. Throws `invalid_request`. */
export function textField(block: BlockFields, name: string, param: string): string {
  const value = block[name]
  if (typeof value === 'string') return value
  throw invalidField(`${param}.${name}`, value == null ? 'is required: a string' : 'must be a string')
}

/** Facts that the parser collects besides the messages. */
export type Findings = {
  /** The features for which only an Anthropic model can serve the request. */
  readonly needs: Set<string>
  /** Texts that are in no message but need moderation. */
  readonly unread: string[]
}

/** Returns the provider-independent parts of a block of a user's turn or of a tool result; null = unknown block type. */
export function contentParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] | null {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: textField(block, 'text', param) }]
    case 'image':
      return imageParts(block, param, findings)
    case 'document':
      return documentParts(block, param, findings)
    case 'search_result':
      return [{ type: 'text', text: searchResultText(block) }]
    case 'tool_reference':
      return [{ type: 'text', text: `Tool: ${String(block.tool_name ?? '')}` }]
    default:
      return null
  }
}

function imageParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] {
  const source = sourceOf(block, param)
  switch (source.type) {
    case 'base64': {
      const type = textField(source, 'media_type', `${param}.source`)
      return [
        { type: 'image', url: `data:${type};base64,${textField(source, 'data', `${param}.source`)}`, detail: null },
      ]
    }
    case 'url': {
      const url = forwardableAddress(textField(source, 'url', `${param}.source`))
      if (url === null)
        throw invalidField(
          `${param}.source.url`,
          'must be a public http or https URL on port 80 or 443 without credentials',
        )
      return [{ type: 'image', url, detail: null }]
    }
    default:
      return anthropicOnly(block, `image.source.${String(source.type)}`, findings)
  }
}

function documentParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] {
  const source = sourceOf(block, param)
  const title = typeof block.title === 'string' && block.title !== '' ? block.title : null
  const about = typeof block.context === 'string' ? block.context : ''
  const context: readonly ContentPart[] = about === '' ? [] : [{ type: 'text', text: about }]
  const heading = title === null ? '' : `${title}\n`
  if (source.type === 'base64') {
    const type = textField(source, 'media_type', `${param}.source`).toLowerCase()
    if (type !== 'application/pdf') return anthropicOnly(block, 'document.source.media_type', findings)
    const url = `data:application/pdf;base64,${textField(source, 'data', `${param}.source`)}`
    return [...context, { type: 'file', url, name: title }]
  }
  if (source.type === 'text')
    return [...context, { type: 'text', text: heading + textField(source, 'data', `${param}.source`) }]
  if (source.type === 'content') {
    const parts = blocksOf(source.content).flatMap(
      (one, index) => contentParts(one, `${param}.source.content.${index}`, findings) ?? unreadBlock(one, findings),
    )
    return [...context, ...(heading === '' ? [] : [{ type: 'text' as const, text: heading }]), ...parts]
  }
  return anthropicOnly(block, `document.source.${String(source.type)}`, findings)
}

function sourceOf(block: BlockFields, param: string): BlockFields {
  if (isBlockFields(block.source)) return block.source
  throw invalidField(`${param}.source`, 'is required: an object')
}

function searchResultText({ title, source, content }: BlockFields): string {
  const texts = blocksOf(content).map(block => (typeof block.text === 'string' ? block.text : ''))
  return [title, source, ...texts].filter(text => typeof text === 'string' && text !== '').join('\n')
}

/** Records the JSON of a block for moderation. Returns no parts. */
function unreadBlock(block: BlockFields, { unread }: Findings): readonly never[] {
  unread.push(JSON.stringify(block))
  return []
}

/** Records that only an Anthropic model can read the block, and its JSON for moderation. Returns no parts. */
export function anthropicOnly(block: BlockFields, what: string, { needs, unread }: Findings): readonly never[] {
  needs.add(what.slice(0, 64))
  return unreadBlock(block, { needs, unread })
}

/** Returns the reasoning of an assistant's block; null = the block has none. */
export function reasoningOf(block: BlockFields): Pick<ReasoningItem, 'kind' | 'text' | 'data'> | null {
  const textIn = (value: unknown) => (typeof value === 'string' ? value : '')
  if (block.type === 'thinking')
    return { kind: 'signature', text: textIn(block.thinking), data: textIn(block.signature) }
  return block.type === 'redacted_thinking' ? { kind: 'redacted', text: '', data: textIn(block.data) } : null
}
