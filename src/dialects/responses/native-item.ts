import type { ReasoningItem } from '../../core/chat/chat.ts'
import { isTokenPricedTool } from '../../core/chat/tool-names.ts'
import { isFields } from '../check.ts'
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
  if (!wholeItems.has(type) || !('id' in item)) return [item]
  const { id: _unknown, ...rest } = item
  return [rest]
}

function isSendable(tool: unknown): boolean {
  return isFields(tool) && isTokenPricedTool(tool)
}
