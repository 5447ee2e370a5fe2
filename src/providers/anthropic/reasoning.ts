import type { Message, ReasoningEffort } from '../../core/chat/chat.ts'
import { isVisible } from '../conversation-steps.ts'
import { nearestEffort } from '../parameters.ts'
import type { AdapterRequest } from '../provider.ts'

type Thinking =
  /** Newer models leave the reasoning text empty unless it is requested. */
  | { readonly type: 'adaptive'; readonly display: 'summarized' }
  | { readonly type: 'enabled'; readonly budget_tokens: number }
  | { readonly type: 'disabled' }
  | { readonly type: 'between_tools' }

export type Reasoning = {
  readonly thinking: Thinking | null
  readonly effort: ReasoningEffort | null
  readonly dropped: boolean
}

const unasked: Reasoning = { thinking: null, effort: null, dropped: false }
const summarized: Thinking = { type: 'adaptive', display: 'summarized' }

/** Share of the output cap available for reasoning, so that room for output remains. */
const budgetShares: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.7,
  xhigh: 0.8,
  max: 0.9,
}

/**
 * Converts the client's reasoning effort. If a model supports only one of them, a forced tool call (`forced`) takes
 * precedence: code depends on the call, while less reasoning only lowers quality.
 */
export function reasoningFor({ request, model, outputCap }: AdapterRequest, forced: boolean): Reasoning {
  const { reasoning, efforts, forcedToolChoice, sampling } = model.parameters
  const asked = request.reasoningEffort
  const wanted = asked !== null && asked !== 'none'
  const mustNotThink = forced && forcedToolChoice === 'rejected_when_thinking'
  switch (reasoning.kind) {
    case 'none':
    case 'effort':
    case 'level':
    case 'token_budget':
      return { ...unasked, dropped: wanted }
    case 'adaptive': {
      if (asked === 'none' || (mustNotThink && reasoning.off === 'disabled')) {
        return reasoning.off === 'lowest_effort'
          ? { thinking: summarized, effort: efforts[0] ?? null, dropped: wanted }
          : { thinking: { type: reasoning.off }, effort: null, dropped: wanted }
      }
      if (wanted) return { thinking: summarized, effort: nearestEffort(asked, efforts), dropped: false }
      // These models reason by default; only the text must be requested.
      if (reasoning.off !== 'disabled') return { ...unasked, thinking: summarized }
      const samples = request.temperature !== null || request.topP !== null
      const fixed = samples && sampling === 'accepted_when_thinking_disabled'
      return fixed ? { ...unasked, thinking: { type: 'disabled' } } : unasked
    }
    case 'budget': {
      const { minimum, maximum, canDisable } = reasoning
      const possible = outputCap >= 2 * minimum && !replaysCallsAlone(request.messages) && !(mustNotThink && canDisable)
      if (!possible || (!wanted && canDisable)) return { ...unasked, dropped: wanted }
      const share = wanted ? Math.floor(outputCap * budgetShares[asked]) : minimum
      const budget_tokens = Math.min(Math.max(share, minimum), maximum, outputCap - 1)
      return { thinking: { type: 'enabled', budget_tokens }, effort: null, dropped: false }
    }
  }
}

/**
 * Returns true for a turn with calls, which must be replayed with its own reasoning, which clients of the other API
 * forms do not have.
 */
function replaysCallsAlone(messages: readonly Message[]): boolean {
  const last = messages.findLast(
    message => message.role === 'assistant' && (message.toolCalls.length > 0 || isVisible(message.text ?? '')),
  )
  if (last?.role !== 'assistant' || last.toolCalls.length === 0) return false
  return !last.reasoningItems?.some(({ family }) => family === 'anthropic')
}
