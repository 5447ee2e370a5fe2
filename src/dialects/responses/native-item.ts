import type { ReasoningItem } from '../../core/chat/chat.ts'
import { labeledImage } from '../../core/chat/request-texts.ts'
import { isTokenPricedTool } from '../../core/chat/tool-definitions.ts'
import { type Fields, isFields } from '../check.ts'
import { textIn } from './parts.ts'

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
