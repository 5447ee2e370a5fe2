/** Form fields and words for strategy, fallback policy and hedging, of a key and of the account. */

import type { ShownKey } from '../../console/keys/schemas.ts'
import { type Strategy, strategies } from '../../core/chat/chat.ts'
import { type FallbackPolicy, fallbackPolicies } from '../../core/validation/fallback-policy.ts'
import { humanize } from '../state/format.ts'
import { SelectField } from './field.tsx'

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

export const fallbackOptions = fallbackPolicies.map(policy => (
  <option key={policy} value={policy}>
    {fallbackTitles[policy]}
  </option>
))

/** The chosen values; an empty one is not set. */
export type KeyRoutingTexts = {
  readonly strategy: Strategy | ''
  readonly fallback: FallbackPolicy | ''
  readonly hedge: 'on' | 'off' | ''
}

/** Returns the choices of a key; null = a new key. */
export function routingTextsOf(key: Pick<ShownKey, 'strategy' | 'fallback' | 'hedge'> | null): KeyRoutingTexts {
  const hedge = key?.hedge ?? null
  return {
    strategy: key?.strategy ?? '',
    fallback: key?.fallback ?? '',
    hedge: hedge === null ? '' : hedge ? 'on' : 'off',
  }
}

/** Returns the fields for a request. */
export function routingOfTexts({ strategy, fallback, hedge }: KeyRoutingTexts) {
  return {
    strategy: strategy === '' ? null : strategy,
    fallback: fallback === '' ? null : fallback,
    hedge: hedge === '' ? null : hedge === 'on',
  }
}

type KeyRoutingProps = { readonly texts: KeyRoutingTexts; readonly onTexts: (texts: KeyRoutingTexts) => void }

const oneOfOr = <T extends string>(values: readonly T[], value: string): T | '' =>
  values.find(one => one === value) ?? ''

export function KeyRoutingFields({ texts, onTexts }: KeyRoutingProps) {
  const { strategy, fallback, hedge } = texts
  return (
    <>
      <SelectField
        label="Default strategy"
        hint="For requests that name neither a strategy nor a model."
        value={strategy}
        onChoice={value => onTexts({ ...texts, strategy: oneOfOr(strategies, value) })}
      >
        <option value="">Balanced (default)</option>
        {strategies.map(one => (
          <option key={one} value={one}>
            {humanize(one)}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Fallback policy"
        hint={`${fallback === '' ? '' : `${fallbackHints[fallback]} `}The strictest policy of account, key and request applies.`}
        value={fallback}
        onChoice={value => onTexts({ ...texts, fallback: oneOfOr(fallbackPolicies, value) })}
      >
        <option value="">As the account</option>
        {fallbackOptions}
      </SelectField>
      <SelectField
        label="Hedging"
        hint={hedgingHint}
        value={hedge}
        onChoice={value => onTexts({ ...texts, hedge: oneOfOr(['on', 'off'] as const, value) })}
      >
        <option value="">As the account</option>
        <option value="on">On</option>
        <option value="off">Off</option>
      </SelectField>
    </>
  )
}
