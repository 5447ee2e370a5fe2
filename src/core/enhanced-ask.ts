import type { Ask, ContentPart, QueryType, Receipt } from './chat.ts'
import { lastUserText } from './classify.ts'
import { enhance, maximumGrowth, mayGain, type PromptReading } from './enhance.ts'
import { estimateInputTokens } from './tokens.ts'

/** What enhancement makes of an ask: settled from the caller's own words, before anything is reserved. */
export type EnhancementPlan = {
  /** As rules have it: the ask itself where they add nothing. */
  readonly ask: Ask
  readonly enhancement: NonNullable<Receipt['enhancement']>
  /** What a model may rewrite in place of the rules; null = nothing. */
  readonly rewritable: string | null
  /** Estimated, of whatever the ask will be. */
  readonly inputTokens: number
}

/** What a rewrite may add, in whatever language: no more is reserved for it, so no longer one is taken. */
const rewriteTokens = Math.ceil(maximumGrowth / 2)

/** The plan of an ask whose caller wants it enhanced, or null. `canRewrite`: a model is there to do it. */
export function planEnhancement(ask: Ask, reading: PromptReading, canRewrite: boolean): EnhancementPlan | null {
  if (!ask.enhance) return null
  const text = enhanceableText(ask)
  if (text === null) return untouched(ask, reading.queryType)
  const { changed, prompt } = enhance(text, reading)
  const enhanced = changed ? withText(ask, prompt) : ask
  const rewritable = canRewrite && mayGain(text, reading) ? text : null
  const tokens = estimateInputTokens(enhanced)
  return {
    ask: enhanced,
    enhancement: { changed, enhancedPrompt: prompt, queryType: reading.queryType },
    rewritable,
    inputTokens: rewritable === null ? tokens : Math.max(tokens, estimateInputTokens(ask) + rewriteTokens),
  }
}

function untouched(ask: Ask, queryType: QueryType): EnhancementPlan {
  const enhancement = { changed: false, enhancedPrompt: lastUserText(ask.messages), queryType }
  return { ask, enhancement, rewritable: null, inputTokens: estimateInputTokens(ask) }
}

/**
 * The one text of a conversation that may be enhanced: the last message's, where it is the user's and its only text. Null
 * where there is none, and where the answer's form is the caller's already: JSON, or a call.
 */
export function enhanceableText({
  messages,
  responseFormat,
  toolChoice,
}: Pick<Ask, 'messages' | 'responseFormat' | 'toolChoice'>): string | null {
  const callsForSure = toolChoice !== null && toolChoice !== 'auto' && toolChoice !== 'none'
  if (responseFormat.type !== 'text' || callsForSure) return null
  const last = messages.at(-1)
  if (last?.role !== 'user') return null
  const [text, ...others] = last.content.flatMap(part => (part.type === 'text' ? [part.text] : []))
  return text === undefined || others.length > 0 ? null : text
}

/** The ask with `text` in the place of the one that may be enhanced. */
export function withText(ask: Ask, text: string): Ask {
  const last = ask.messages.at(-1)
  if (last?.role !== 'user') return ask
  const content = last.content.map((part): ContentPart => (part.type === 'text' ? { ...part, text } : part))
  return { ...ask, messages: ask.messages.with(-1, { ...last, content }) }
}
