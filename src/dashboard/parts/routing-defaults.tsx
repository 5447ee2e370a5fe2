import type { AccountToday } from '../../console/account/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { SelectField, Switch } from './field.tsx'
import { fallbackChoices, fallbackHints, fallbackTitles, hedgingHint } from './key-routing.tsx'
import { FailureNotice } from './notice.tsx'
import { Card } from './page.tsx'
import { showToast } from './toast.tsx'

type RoutingDefaultsProps = {
  readonly account: AccountToday
  readonly mayChange: boolean
  readonly onChange: (account: AccountToday) => void
}

/** Fallback policy and hedging of all requests of the account. */
export function RoutingDefaults({ account, mayChange, onChange }: RoutingDefaultsProps) {
  const policy = account.fallback ?? 'any'
  const narrowing = useAction(async (fallback: string) => {
    const changed = await callApi('PATCH /api/v1/account', { body: { fallback } })
    onChange(changed)
    showToast(`Fallback policy changed: ${fallbackTitles[changed.fallback ?? 'any'].toLowerCase()}`)
  })
  const hedging = useAction(async (hedge: boolean) => {
    onChange(await callApi('PATCH /api/v1/account', { body: { hedge } }))
    showToast(hedge ? 'Hedging enabled' : 'Hedging disabled')
  })
  return (
    <Card title="Routing" about="For all requests of the account.">
      <SelectField
        label="Fallback policy"
        hint={`${fallbackHints[policy]} A key or a request can only be stricter.`}
        value={policy}
        disabled={!mayChange || narrowing.isBusy}
        onChoice={value => void narrowing.run(value)}
        choices={fallbackChoices}
      />
      {narrowing.failure !== null && <FailureNotice failure={narrowing.failure} />}
      <Switch
        label="Hedging"
        hint={`${hedgingHint} A key or a request can set it otherwise.`}
        isOn={account.hedge}
        disabled={!mayChange || hedging.isBusy}
        onSwitch={isOn => void hedging.run(isOn)}
      />
      {hedging.failure !== null && <FailureNotice failure={hedging.failure} />}
    </Card>
  )
}
