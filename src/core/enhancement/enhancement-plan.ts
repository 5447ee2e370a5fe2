import { lastUserText } from '../analysis/prompt-analysis.ts'
import type { ChatRequest, ContentPart, ResponseSummary } from '../chat/chat.ts'
import { estimateInputTokens } from '../tokens/tokens.ts'
import { canEnhance, type EnhancementInput, enhance, maximumGrowth } from './enhance.ts'

/** What enhancement makes of an ask: settled from the caller's own words, before anything is reserved. */
export type EnhancementPlan = {
  /** As rules have it: the ask itself where they add nothing. */
  readonly ask: ChatRequest
  readonly enhancement: NonNullable<ResponseSummary['enhancement']>
  /** What a model may rewrite in place of the rules; null = nothing. */
  readonly rewritable: string | null
  /** Estimated, of whatever the ask will be. */
  readonly inputTokens: number
}

/** What a rewrite may add, in whatever language: no more is reserved for it, so no longer one is taken. */
const rewriteTokens = Math.ceil(maximumGrowth / 2)

/** The plan of an ask whose caller wants it enhanced, or null. `canRewrite`: a model is there to do it. */
export function planEnhancement(
  ask: ChatRequest,
  reading: EnhancementInput,
  canRewrite: boolean,
): EnhancementPlan | null {
  if (!ask.enhance) return null
  const enhancement = enhanceByRules(ask, reading)
  const enhanced = enhancement.changed ? replaceUserText(ask, enhancement.enhancedPrompt) : ask
  const text = canRewrite ? enhanceableText(ask) : null
  const rewritable = text !== null && canEnhance(text, reading) ? text : null
  const tokens = estimateInputTokens(enhanced)
  return {
    ask: enhanced,
    enhancement,
    rewritable,
    inputTokens: rewritable === null ? tokens : Math.max(tokens, estimateInputTokens(ask) + rewriteTokens),
  }
}

/** What rules make of an ask's last words, whether the caller wants it or not. */
export function enhanceByRules(
  ask: ChatRequest,
  reading: EnhancementInput,
): NonNullable<ResponseSummary['enhancement']> {
  const text = enhanceableText(ask)
  if (text === null) return { changed: false, enhancedPrompt: lastUserText(ask.messages), queryType: reading.queryType }
  const { changed, prompt, queryType } = enhance(text, reading)
  return { changed, enhancedPrompt: prompt, queryType }
}

/**
 * The one text of a conversation that may be enhanced: the last message's, where it is the user's and its only text. Null
 * where there is none, and where the answer's form is the caller's already: JSON, or a call.
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

/** The ask with `text` in the place of the one that may be enhanced. */
export function replaceUserText(ask: ChatRequest, text: string): ChatRequest {
  const last = ask.messages.at(-1)
  if (last?.role !== 'user') return ask
  const content = last.content.map((part): ContentPart => (part.type === 'text' ? { ...part, text } : part))
  return { ...ask, messages: ask.messages.with(-1, { ...last, content }) }
}
