/** Parses the content of items: text, images and documents. */
import { Type } from '@sinclair/typebox'
import { type ContentPart, imageDetails, type ReasoningItem } from '../../core/chat/chat.ts'
import { isImageData, isPdfData, labeledImage, type ReadValues } from '../../core/chat/request-texts.ts'
import { isTokenPricedTool } from '../../core/chat/tool-definitions.ts'
import { fetchable } from '../../core/request/parse-messages.ts'
import { bodyText, imageAddress } from '../../core/request/part-schemas.ts'
import { invalidField, nullable, oneOf } from '../../core/validation/validate.ts'
import { checkerAt, type Fields, isFields, open, textOrNull } from '../foreign-objects.ts'

const checkText = checkerAt(Type.Object({ text: bodyText }, open))
const checkRefusal = checkerAt(Type.Object({ refusal: bodyText }, open))
const checkImage = checkerAt(
  Type.Object(
    { image_url: nullable(imageAddress), file_id: nullable(Type.String()), detail: nullable(Type.String()) },
    open,
  ),
)
const checkFile = checkerAt(
  Type.Object(
    {
      file_data: nullable(bodyText),
      file_url: nullable(Type.String()),
      file_id: nullable(Type.String()),
      filename: nullable(Type.String({ maxLength: 256 })),
    },
    open,
  ),
)
const checkDetail = checkerAt(Type.Object({ detail: nullable(oneOf(imageDetails)) }, open))

type ReadParts = {
  readonly parts: readonly ContentPart[]
  /** Paths of parts that only OpenAI supports. */
  readonly needs: readonly string[]
}

/** Parses the content of an item, a text or a list of parts. Adds what it contains to `values`. Throws `invalid_request` with the part at fault. */
export function readParts(content: unknown, place: string, values: ReadValues): ReadParts {
  if (typeof content === 'string') {
    values.add(content)
    return { parts: [{ type: 'text', text: content }], needs: [] }
  }
  if (!Array.isArray(content)) throw invalidField(place, 'must be a string or an array of parts')
  const parts: ContentPart[] = []
  const needs: string[] = []
  for (const [index, part] of content.entries()) {
    const at = `${place}.${index}`
    const read = readPart(part, at)
    if (read === null) needs.push(at)
    else parts.push(...read)
  }
  for (const part of parts) addRead(part, values)
  return { parts, needs }
}

/** Returns true for a text that a user wrote. */
export function isTextPart(part: unknown): boolean {
  return isFields(part) && (part.type === 'input_text' || part.type === 'text')
}

/** Returns the texts of a content, joined. Ignores other parts. */
export function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .filter(isFields)
    .map(part => textOrNull(part.text) ?? textOrNull(part.refusal) ?? '')
    .join('')
}

/** Returns null for a part that only OpenAI supports. */
function readPart(part: unknown, place: string): readonly ContentPart[] | null {
  if (!isFields(part)) throw invalidField(place, 'must be an object')
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
      return [{ type: 'text', text: checkText(part, place).text }]
    case 'refusal':
      return [{ type: 'text', text: checkRefusal(part, place).refusal }]
    case 'input_image':
      return [getImage(part, place)]
    case 'input_file':
      return findFile(part, place)
    case 'encrypted_content':
      return []
    default:
      throw invalidField(
        `${place}.type`,
        'must be "input_text", "output_text", "refusal", "input_image" or "input_file"',
        'unsupported_parameter',
      )
  }
}

function getImage(part: Fields, place: string): ContentPart {
  const { image_url: url, file_id: id } = checkImage(part, place)
  if (id != null && url == null) throw storedFile(`${place}.file_id`, 'image_url')
  if (url == null) throw invalidField(`${place}.image_url`, 'is required: an http, https or data: URL')
  const { detail } = checkDetail(part, place)
  return {
    type: 'image',
    url: fetchable(url, `${place}.image_url`),
    detail: detail ?? null,
  }
}

function findFile(part: Fields, place: string): readonly ContentPart[] | null {
  const { file_data: data, file_url: url, file_id: id, filename } = checkFile(part, place)
  if (id != null) throw storedFile(`${place}.file_id`, 'file_data')
  if (data != null && isPdfData(data)) return [{ type: 'file', url: data, name: filename ?? null }]
  if (data == null && url == null)
    throw invalidField(`${place}.file_data`, 'is required: send the document as a `data:application/pdf;base64,` URL')
  if (url != null) fetchable(url, `${place}.file_url`)
  return null
}

/** Adds what a part contains. An address is normalized in the part, so the client's own is not read here. */
function addRead(part: ContentPart, values: ReadValues): void {
  if (part.type === 'text') values.add(part.text)
  else if (part.type === 'file') values.add(part.name, part.url)
  else if (isImageData(part.url)) values.add(part.url)
}

function storedFile(place: string, instead: string) {
  return invalidField(
    place,
    `refers to a stored file. Files are not stored here: send it in \`${instead}\``,
    'unsupported_parameter',
  )
}

/** Item types whose IDs OpenAI would look up, although the items are complete. */
const wholeItems: ReadonlySet<unknown> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'tool_search_call',
])

/**
 * Returns an input item in the form for OpenAI, or none: without IDs of objects that are not stored, and with OpenAI's reasoning
 * unsealed. `opened` is the reasoning of the item.
 */
export function nativeItem(item: unknown, opened: ReasoningItem | null): readonly unknown[] {
  if (!isFields(item)) return []
  const type = item.type ?? 'message'
  if (type === 'web_search_call') return []
  if (type === 'additional_tools' || type === 'tool_search_output') {
    const { tools, id: _own, ...rest } = item
    return [{ ...rest, tools: Array.isArray(tools) ? tools.filter(isSendable) : [] }]
  }
  if (type === 'reasoning') {
    if (opened?.family !== 'openai') return []
    // A client can leave the summary out, but not change it.
    const summary = textIn(item.summary) === '' ? [] : [{ type: 'summary_text', text: opened.text }]
    return [{ type, ...(opened.id === null ? {} : { id: opened.id }), summary, encrypted_content: opened.data }]
  }
  const labeled = withLabels(item)
  if (!wholeItems.has(type) || !('id' in labeled)) return [labeled]
  const { id: _unknown, ...rest } = labeled
  return [rest]
}

/** Returns an item whose images have the media types that their bytes have. */
function withLabels(item: Fields): Fields {
  const { content, output } = item
  return {
    ...item,
    ...(Array.isArray(content) ? { content: content.map(labeledPart) } : {}),
    ...(Array.isArray(output) ? { output: output.map(labeledPart) } : {}),
  }
}

function labeledPart(part: unknown): unknown {
  if (!isFields(part) || typeof part.image_url !== 'string') return part
  const url = labeledImage(part.image_url)
  return url === part.image_url ? part : { ...part, image_url: url }
}

function isSendable(tool: unknown): boolean {
  return isFields(tool) && isTokenPricedTool(tool)
}
