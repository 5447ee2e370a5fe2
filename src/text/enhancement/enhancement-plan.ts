import { type ChatRequest, type ContentPart, withTurn } from '../../core/chat/chat.ts'
import type { ResponseSummary } from '../../core/chat/chat-events.ts'
import { getUserText } from '../segments/conversation.ts'
import { estimateInputTokens } from '../tokens/tokens.ts'
import { canEnhance, enhancePrompt, maximumGrowth, type PromptTraits } from './enhance.ts'

/** Planned enhancement of a request, decided from the client's text before anything is reserved. */
export type EnhancementPlan = {
  /** The request enhanced by rules; the unchanged request if they add nothing. */
  readonly request: ChatRequest
  readonly enhancement: NonNullable<ResponseSummary['progress']['enhancement']>
  /** The text that a model may rewrite instead of the rules; null = none. */
  readonly rewritable: string | null
  /** Estimate that covers whichever version is sent. */
  readonly inputTokens: number
}

/** Tokens that a rewrite may add in any language. This is what is reserved, so a longer rewrite is rejected. */
const rewriteTokens = Math.ceil(maximumGrowth / 2)

/**
 * Returns the plan of a request, or null if the client did not request enhancement. `canRewrite` = a rewriting model is
 * configured.
 */
export function planEnhancement(
  request: ChatRequest,
  traits: PromptTraits,
  canRewrite: boolean,
): EnhancementPlan | null {
  if (!request.enhance) return null
  const enhancement = enhanceByRules(request, traits)
  const enhanced = enhancement.changed ? replaceUserText(request, enhancement.enhancedPrompt) : request
  const text = canRewrite ? enhanceableText(request) : null
  const rewritable = text !== null && canEnhance(text, traits) ? text : null
  const tokens = estimateInputTokens(enhanced)
  return {
    request: enhanced,
    enhancement,
    rewritable,
    inputTokens: rewritable === null ? tokens : Math.max(tokens, estimateInputTokens(request) + rewriteTokens),
  }
}

/** Returns the last user text of a request enhanced by rules, even if the client did not request it. */
export function enhanceByRules(
  request: ChatRequest,
  traits: PromptTraits,
): NonNullable<ResponseSummary['progress']['enhancement']> {
  const text = enhanceableText(request)
  if (text === null) {
    const enhancedPrompt = getUserText(request.messages.findLast(({ role }) => role === 'user'))
    return { changed: false, enhancedPrompt, queryType: traits.queryType }
  }
  const { changed, prompt, queryType } = enhancePrompt(text, traits)
  return { changed, enhancedPrompt: prompt, queryType }
}

/**
 * Returns the one text of a conversation that may be enhanced: the last message's, if it is from the user and its only
 * text. Null if there is none, or if the client fixed the output form (JSON or a tool call).
 */
function enhanceableText({
  messages,
  responseFormat,
  toolChoice,
}: Pick<ChatRequest, 'messages' | 'responseFormat' | 'toolChoice'>): string | null {
  const callsForSure = toolChoice !== null && toolChoice !== 'auto' && toolChoice !== 'none'
  if (responseFormat.type !== 'text' || callsForSure) return null
  const last = messages.at(-1)
  if (last?.role !== 'user') return null
  const [text, ...others] = last.content.flatMap(part => (part.type === 'text' ? [part.text] : []))
  return text === undefined || others.length > 0 ? null : text
}

/** Returns the request with its enhanceable text replaced by `text`. */
export function replaceUserText(request: ChatRequest, text: string): ChatRequest {
  const last = request.messages.at(-1)
  if (last?.role !== 'user') return request
  const content = last.content.map((part): ContentPart => (part.type === 'text' ? { ...part, text } : part))
  return withTurn(request, request.messages.with(-1, { ...last, content }), { text })
}
