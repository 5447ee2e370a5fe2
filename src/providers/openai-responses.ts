/**
 * OpenAI's own Responses API: the second form in which OpenAI itself is asked, where Chat Completions cannot say what a request
 * needs, or does not serve its model. Compatible servers are never asked in it.
 */
import type { ChatRequest } from '../core/chat/chat.ts'
import type { Model } from '../core/models/models.ts'
import { isRecord, type Json } from './json.ts'
import { readFailure } from './openai/failure.ts'
import { toResponsesRequest } from './openai-responses/request.ts'
import { ResponsesReader } from './openai-responses/response.ts'
import type { AdapterRequest, Provider } from './provider.ts'

/** The adapter. */
export const openaiResponses: Provider = {
  toRequest: toResponsesRequest,
  readResponse: (body, sink) => new ResponsesReader().whole(body, sink),
  streamReader: () => new ResponsesReader(),
  readFailure,
}

/** True where a request is to be asked in this form. */
export function needsResponses({ request, model }: AdapterRequest): boolean {
  if (isResponsesOnly(model)) return true
  const { source, tools, reasoningEffort, messages } = request
  const thinks = model.capabilities.reasoning && reasoningEffort !== 'none'
  if (thinks && tools.length > 0 && reasoningEffort !== null && model.parameters.toolsNeedEffortNone) return true
  if (source?.dialect === 'messages') return thinks && keepsThinking(request, source.fields)
  if (source?.dialect !== 'responses') return false
  if (source.needs.length > 0 || source.sameFormOnly.length > 0) return true
  if (!thinks) return false
  const { include, reasoning } = source.fields
  return (
    tools.length > 0 ||
    (Array.isArray(include) && include.includes('reasoning.encrypted_content')) ||
    (typeof reasoning === 'object' && reasoning !== null && 'summary' in reasoning && reasoning.summary != null) ||
    messages.some(message => message.role === 'assistant' && message.reasoningItems?.some(isOwn))
  )
}

/**
 * True for an agent that asked for thinking: its calls continue one line of thought, which Chat Completions does not hand
 * over. The Responses API has no stop sequences.
 */
function keepsThinking({ tools, stop, reasoningEffort }: ChatRequest, { thinking }: Json): boolean {
  if (tools.length === 0 || stop.length > 0) return false
  return reasoningEffort !== null || (isRecord(thinking) && thinking.type !== 'disabled')
}

function isOwn({ family }: { readonly family: string }): boolean {
  return family === 'openai'
}

/** By OpenAI's model pages: `*-codex`, and the `*-pro` of gpt-5. */
function isResponsesOnly({ id, parameters }: Model): boolean {
  return parameters.responsesOnly ?? /^gpt-5(?:\.\d+)?-pro|-codex/.test(id)
}
