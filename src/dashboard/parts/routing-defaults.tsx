import type { AccountToday } from '../../console/account/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { continueChoices, continueHint, fallbackChoices, fallbackHints, hedgingHint } from '../state/keys.ts'
import { currentSession, may, renew } from '../state/session.ts'
import { SelectField, Switch } from './field.tsx'
import { FailureNotice } from './notice.tsx'
import { Card, showToast } from './page.tsx'

export type AccountProps = { readonly account: AccountToday; readonly onChange: (account: AccountToday) => void }

/** Changes the account; one at a time, with one error. */
export function useAccountChange(onChange: AccountProps['onChange']) {
  return useAction(async (body: Readonly<Record<string, unknown>>, toast: string) => {
    const changed = await callApi('PATCH /api/v1/account', { body })
    onChange(changed)
    const current = currentSession.peek()
    if (current) currentSession.value = { ...current, account: { ...current.account, name: changed.name } }
    showToast(toast)
    // The owner may have to set it up as well.
    if (body.requires_two_factor !== undefined) await renew()
  })
}

/** Fallback policy, continuation of cut texts, and hedging of all requests of the account. */
export function RoutingDefaults({ account, onChange }: AccountProps) {
  const policy = account.fallback ?? 'any'
  const { run, isBusy, failure } = useAccountChange(onChange)
  const disabled = !may('account.change') || isBusy
  const choices = [['', 'As the request says'] as const, ...continueChoices]
  return (
    <Card title="Routing" about="For all requests of the account.">
      <SelectField
        label="Fallback policy"
        hint={`${fallbackHints[policy]} A key or a request can only be stricter.`}
        value={policy}
        disabled={disabled}
        onChoice={fallback => {
          const title = fallbackChoices.find(([name]) => name === fallback)?.[1] ?? fallback
          void run({ fallback }, `Fallback policy changed: ${title.toLowerCase()}`)
        }}
        choices={fallbackChoices}
      />
      <SelectField
        label="Cut texts"
        hint={`${continueHint} A key or a request can only be stricter.`}
        value={account.continue ?? ''}
        disabled={disabled}
        onChoice={policy => {
          const title = choices.find(([name]) => name === policy)?.[1] ?? policy
          void run({ continue: policy || null }, `Cut texts changed: ${title.toLowerCase()}`)
        }}
        choices={choices}
      />
      <Switch
        label="Hedging"
        hint={`${hedgingHint} A key or a request can set it otherwise.`}
        isOn={account.hedge}
        disabled={disabled}
        onSwitch={hedge => void run({ hedge }, hedge ? 'Hedging enabled' : 'Hedging disabled')}
      />
      {failure !== null && <FailureNotice failure={failure} />}
    </Card>
  )
}
