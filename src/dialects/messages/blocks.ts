/** Parses content blocks of Messages requests into message parts. */
import type { CacheMark, ContentPart, ReasoningItem } from '../../core/chat/chat.ts'
import { isImageBase64, isPdfBase64, labeledImage, type ReadValues } from '../../core/chat/request-texts.ts'
import type { GatewayError } from '../../core/validation/errors.ts'
import { forwardableAddress } from '../../core/validation/public-address.ts'
import { invalidField } from '../../core/validation/validate.ts'

export type BlockFields = Readonly<Record<string, unknown>>

export function isBlockFields(value: unknown): value is BlockFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the blocks of a content field; a text is one block. The schema has checked that each has a type. */
export function getBlocks(content: unknown): readonly BlockFields[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isBlockFields) : []
}

/** Returns a field that must be a string, which a message contains. Throws `invalid_request`. */
export function readField(block: BlockFields, name: string, param: string, values: ReadValues): string {
  const text = textField(block, name, param)
  values.add(text)
  return text
}

/** Returns a field that must be a string. Throws `invalid_request`. */
export function textField(block: BlockFields, name: string, param: string): string {
  const value = block[name]
  if (typeof value === 'string') return value
  throw invalidField(`${param}.${name}`, value == null ? 'is required: a string' : 'must be a string')
}

/** Returns the cache mark of a block or a tool as a field of its part; an empty object = none. Anthropic checks its fields. */
export function getMark({ cache_control: mark }: BlockFields): { readonly cache?: CacheMark } {
  return isBlockFields(mark) ? { cache: mark.ttl === '1h' ? '1h' : '5m' } : {}
}

/** Facts that the parser collects besides the messages. */
export type Findings = {
  /** The features for which only an Anthropic model can serve the request. */
  readonly needs: Set<string>
  /** What the messages contain. */
  readonly values: ReadValues
}

/**
 * Returns the provider-independent parts of a block of a user's turn or of a tool result, of which the last has the block's mark;
 * null = unknown block type.
 */
export function contentParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] | null {
  const parts = unmarkedParts(block, param, findings)
  const last = parts?.at(-1)
  return parts == null || last === undefined ? parts : [...parts.slice(0, -1), { ...last, ...getMark(block) }]
}

function unmarkedParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] | null {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: readField(block, 'text', param, findings.values) }]
    case 'image':
      return imageParts(block, param, findings)
    case 'document':
      return documentParts(block, param, findings)
    case 'search_result':
      return [{ type: 'text', text: searchResultText(block, findings) }]
    case 'tool_reference':
      return [{ type: 'text', text: `Tool: ${String(block.tool_name ?? '')}` }]
    default:
      return null
  }
}

/** Returns the parts of a block inside of another one. Throws for a type that cannot be there, as Anthropic does. */
export function innerParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] {
  const parts = contentParts(block, param, findings)
  if (parts !== null) return parts
  throw invalidField(
    `${param}.type`,
    'must be "text", "image", "document", "search_result" or "tool_reference"',
    'unsupported_parameter',
  )
}

function imageParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] {
  const source = getSource(block, param)
  switch (source.type) {
    case 'base64': {
      const type = textField(source, 'media_type', `${param}.source`)
      const data = textField(source, 'data', `${param}.source`)
      if (isImageBase64(data)) findings.values.add(data)
      return [{ type: 'image', url: labeledImage(`data:${type};base64,${data}`), detail: null }]
    }
    case 'url':
      return [{ type: 'image', url: publicUrl(source, `${param}.source.url`), detail: null }]
    default:
      throw unsupportedSource(`${param}.source.type`)
  }
}

function documentParts(block: BlockFields, param: string, findings: Findings): readonly ContentPart[] {
  const source = getSource(block, param)
  const { values } = findings
  const title = typeof block.title === 'string' && block.title !== '' ? block.title : null
  const about = typeof block.context === 'string' ? block.context : ''
  const context: readonly ContentPart[] = about === '' ? [] : [{ type: 'text', text: about }]
  const heading = title === null ? '' : `${title}\n`
  switch (source.type) {
    case 'base64': {
      const type = textField(source, 'media_type', `${param}.source`).toLowerCase()
      const data = textField(source, 'data', `${param}.source`)
      if (type !== 'application/pdf' || !isPdfBase64(data)) return anthropicOnly('document.source.media_type', findings)
      values.add(title, about, data)
      return [...context, { type: 'file', url: `data:application/pdf;base64,${data}`, name: title }]
    }
    case 'text':
      values.add(title, about)
      return [...context, { type: 'text', text: heading + readField(source, 'data', `${param}.source`, values) }]
    case 'content': {
      values.add(title, about)
      const blocks = getBlocks(source.content)
      const parts = blocks.flatMap((item, index) => innerParts(item, `${param}.source.content.${index}`, findings))
      return [...context, ...(heading === '' ? [] : [{ type: 'text' as const, text: heading }]), ...parts]
    }
    case 'url':
      publicUrl(source, `${param}.source.url`)
      return anthropicOnly('document.source.url', findings)
    default:
      throw unsupportedSource(`${param}.source.type`)
  }
}

/** Returns the URL in the form that an upstream may fetch. Throws `invalid_request` for one that is not public. */
export function publicUrl(fields: BlockFields, param: string): string {
  const url = forwardableAddress(textField(fields, 'url', param.replace(/\.url$/, '')))
  if (url !== null && !/^data:/i.test(url)) return url
  throw invalidField(param, 'must be a public http or https URL on port 80 or 443 without credentials')
}

/** Files by ID are the operator's: the account of the gateway at Anthropic owns them. */
function unsupportedSource(param: string): GatewayError {
  return invalidField(
    param,
    'must be "base64", "url", "text" or "content": files are not stored here',
    'unsupported_parameter',
  )
}

function getSource(block: BlockFields, param: string): BlockFields {
  if (isBlockFields(block.source)) return block.source
  throw invalidField(`${param}.source`, 'is required: an object')
}

function searchResultText({ title, source, content }: BlockFields, { values }: Findings): string {
  const texts = [title, source, ...getBlocks(content).map(block => block.text)].filter(
    text => typeof text === 'string' && text !== '',
  )
  values.add(...texts)
  return texts.join('\n')
}

/** Records that only an Anthropic model can read a block, which goes to it in the client's body. Returns no parts. */
export function anthropicOnly(what: string, { needs }: Findings): readonly never[] {
  needs.add(what.slice(0, 64))
  return []
}

/** Returns the reasoning of an assistant's block; null = the block has none. */
export function findReasoning(block: BlockFields): Pick<ReasoningItem, 'kind' | 'text' | 'data'> | null {
  const textIn = (value: unknown) => (typeof value === 'string' ? value : '')
  if (block.type === 'thinking')
    return { kind: 'signature', text: textIn(block.thinking), data: textIn(block.signature) }
  return block.type === 'redacted_thinking' ? { kind: 'redacted', text: '', data: textIn(block.data) } : null
}
