import type { ContentPart, Message, ReasoningItem } from '../../core/chat/chat.ts'
import type { ParameterRules } from '../../core/models/models.ts'
import { type ConversationStep, placeholderTexts, stepsOf } from '../conversation-steps.ts'
import type { Json } from '../json.ts'
import { toolIdsFor } from '../openai/conversation.ts'
import { dialectOf } from '../openai/dialects.ts'

/** The conversation as items. */
export function inputFor(messages: readonly Message[], rules: ParameterRules): readonly Json[] {
  const callId = toolIdsFor(dialectOf('', true))
  return stepsOf(messages).flatMap(step => itemsOf(step, rules, callId))
}

function itemsOf(step: ConversationStep, rules: ParameterRules, callId: (id: string) => string): readonly Json[] {
  switch (step.role) {
    case 'system':
      return [{ role: rules.systemRole, content: step.text }]
    case 'user':
      return [{ role: 'user', content: step.content.map(partFor) }]
    case 'assistant': {
      const { text, reasoningItems = [], exchanges } = step
      const calls = exchanges.map(({ call }) => ({
        type: 'function_call',
        call_id: callId(call.id),
        name: call.name,
        arguments: call.arguments || '{}',
      }))
      const results = exchanges.map(({ call, result }) => ({
        type: 'function_call_output',
        call_id: callId(call.id),
        output: result ?? placeholderTexts.missingResult,
      }))
      const said = text !== null && text !== '' ? [{ role: 'assistant', content: text }] : []
      return [...reasoningItems.flatMap(reasoningFor), ...said, ...calls, ...results]
    }
  }
}

/** Reasoning of another family means nothing here. */
function reasoningFor({ family, text, data, id }: ReasoningItem): readonly Json[] {
  if (family !== 'openai' || data === '') return []
  const summary = text === '' ? [] : [{ type: 'summary_text', text }]
  return [{ type: 'reasoning', id: id ?? undefined, summary, encrypted_content: data }]
}

function partFor(part: ContentPart): Json {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image':
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'file':
      return { type: 'input_file', filename: part.name || 'document.pdf', file_data: part.url }
  }
}
