/** Words for the fallback policy and hedging, of a key and of the account. */
import { type FallbackPolicy, fallbackPolicies } from '../../core/chat/chat.ts'

export const fallbackTitles: Readonly<Record<FallbackPolicy, string>> = {
  any: 'Any model',
  same_model: 'Same model only',
  none: 'No fallback',
}

/** What each policy does and costs. */
export const fallbackHints: Readonly<Record<FallbackPolicy, string>> = {
  any: 'If the model fails, another model may answer. You pay its price: by default at most 3 times that of the model that a request names.',
  same_model:
    'If a call fails, only other hosts and keys of the same model may answer, at their price. Otherwise the request fails.',
  none: 'One call per request. If it fails, the request fails, and costs nothing without output.',
}

export const hedgingHint =
  'If the first token is late, a second attempt starts, and the first content wins. A hedged request also pays for the input of the canceled attempt. At most 10% of the requests hedge, unless the operator changes the share.'

export const fallbackChoices = fallbackPolicies.map(policy => [policy, fallbackTitles[policy]] as const)
