import { useState } from 'preact/hooks'
import { isAllowed } from '../../core/accounts/roles.ts'
import type { ShownKey } from '../../routes/keys/schemas.ts'
import { FormDialog } from '../parts/dialog.tsx'
import { SelectField, Switch, TextField } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { expiryIn, KeyBadge, KeyDialog, lifetimeOptions, type OpenKeyDialog } from '../parts/key-dialogs.tsx'
import { KeyRoutingFields, routingOfTexts, routingTextsOf } from '../parts/key-routing.tsx'
import { KeyRuleFields, type KeyRuleTexts, rulesOfTexts, textsOfRules } from '../parts/key-rules.tsx'
import { KeyUsageCard } from '../parts/key-usage.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { filtersOf } from '../state/filters.ts'
import { compact, dateOf, formatCount, formatUsd, relativeTime, usdColumn } from '../state/format.ts'
import { hashRoute, hrefTo } from '../state/hash-route.ts'
import { isKeyValid } from '../state/key-lineage.ts'
import { useResource } from '../state/resource.ts'
import type { NewKey } from '../state/routes.ts'
import { user } from '../state/session.ts'

type Open = { readonly kind: 'create' } | OpenKeyDialog

const everyMs = 5_000

export function Keys() {
  const keys = useResource('GET /api/v1/keys', { everyMs })
  const [open, setOpen] = useState<Open | null>(null)
  const [showsEnded, setShowsEnded] = useState(false)
  const close = () => setOpen(null)
  const filters = filtersOf(hashRoute.value.query)
  const made = (key: NewKey) => {
    setOpen({ kind: 'shown', made: key })
    keys.reload()
  }
  const seesAll = isAllowed(user.value?.role ?? 'member', 'keys.all')
  return (
    <Page
      title="Keys"
      about={`${seesAll ? 'All keys of the account' : 'Your keys'}. All keys share the limits of the account and can have limits of their own.`}
      actions={
        isAllowed(user.value?.role ?? 'viewer', 'keys.own') && (
          <button type="button" class="button primary" onClick={() => setOpen({ kind: 'create' })}>
            Create API key
          </button>
        )
      }
    >
      <Card
        title={showsEnded ? 'All keys' : 'Valid keys'}
        actions={<Switch label="Show ended" isOn={showsEnded} onSwitch={setShowsEnded} />}
      >
        <Loaded resource={keys} what="keys">
          {({ data }) => (
            <KeyTable keys={showsEnded ? data : data.filter(isKeyValid)} onOpen={setOpen} hasEnded={data.length > 0} />
          )}
        </Loaded>
      </Card>
      <FilterBar path="keys" filters={filters} />
      <KeyUsageCard filters={filters} />
      {open?.kind === 'create' && <Create onMade={made} onClose={close} />}
      {open !== null && open.kind !== 'create' && (
        <KeyDialog open={open} onMade={made} onChanged={keys.reload} onClose={close} />
      )}
    </Page>
  )
}

type KeyTableProps = {
  readonly keys: readonly ShownKey[]
  readonly hasEnded: boolean
  readonly onOpen: (open: Open) => void
}

function KeyTable({ keys, hasEnded, onOpen }: KeyTableProps) {
  if (keys.length === 0)
    return <Empty title={hasEnded ? 'No valid keys' : 'No keys yet'}>Programs use API keys to authenticate.</Empty>
  const usd = usdColumn(keys.map(({ usage }) => usage.cost_usd))
  return (
    <Table
      caption="API keys"
      rows={keys}
      keyOf={({ id }) => id}
      classOf={key => (isKeyValid(key) ? '' : 'faded')}
      columns={[
        {
          name: 'Name',
          isHeading: true,
          show: key => (
            <>
              <a href={hrefTo(`keys/${key.id}`)}>{key.name}</a> <KeyBadge of={key} />
              <code class="block quiet">{key.prefix}</code>
            </>
          ),
        },
        { name: 'Created', from: 'wide', show: key => dateOf(key.created_at) },
        {
          name: 'Last used',
          from: 'middle',
          show: key => (key.last_used_at === null ? 'Never' : relativeTime(key.last_used_at)),
        },
        { name: 'Requests', from: 'middle', isNumber: true, show: key => formatCount(key.usage.requests) },
        { name: 'Tokens', from: 'wide', isNumber: true, show: key => compact(key.usage.total_tokens) },
        { name: 'Cost', isNumber: true, show: key => usd(key.usage.cost_usd) },
        { name: 'Limits', from: 'middle', show: key => <Used of={key} /> },
        {
          name: '',
          show: key =>
            isKeyValid(key) && (
              <div class="actions">
                <button
                  type="button"
                  class="button small"
                  aria-label={`Change ${key.name}`}
                  onClick={() => onOpen({ kind: 'change', key })}
                >
                  Change
                </button>
                <button
                  type="button"
                  class="button small"
                  aria-label={`Rotate ${key.name}`}
                  onClick={() => onOpen({ kind: 'rotate', key })}
                >
                  Rotate
                </button>
                <button
                  type="button"
                  class="button small danger-text"
                  aria-label={`Revoke ${key.name}`}
                  onClick={() => onOpen({ kind: 'revoke', key })}
                >
                  Revoke
                </button>
              </div>
            ),
        },
      ]}
    />
  )
}

type MadeProps = { readonly onMade: (key: NewKey) => void; readonly onClose: () => void }

function Create({ onMade, onClose }: MadeProps) {
  const [name, setName] = useState('')
  const [days, setDays] = useState('')
  const [rules, setRules] = useState<KeyRuleTexts>(textsOfRules(null))
  const [routing, setRouting] = useState(routingTextsOf(null))
  const making = useAction(async () => {
    const body = { name: name.trim(), expires_at: expiryIn(days), ...rulesOfTexts(rules), ...routingOfTexts(routing) }
    onMade(await callApi('POST /api/v1/keys', { body }))
  })
  return (
    <FormDialog
      title="Create API key"
      action="Create API key"
      isReady={name.trim() !== ''}
      doing={making}
      fields={['name']}
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        maxLength={64}
        hint="Describe its purpose. Usage is shown by key name."
        value={name}
        onText={setName}
        param="name"
        failure={making.failure}
      />
      <SelectField label="Ends" value={days} onChoice={setDays}>
        {lifetimeOptions}
      </SelectField>
      <KeyRuleFields texts={rules} onTexts={setRules} failure={making.failure} />
      <KeyRoutingFields texts={routing} onTexts={setRouting} />
    </FormDialog>
  )
}

/** Shows how much of a key's limits is used, on this UTC day and in its month. */
function Used({ of: { limits, used } }: { readonly of: ShownKey }) {
  const { daily_tokens: tokens = null, daily_cost_usd: day = null, monthly_cost_usd: month = null } = limits ?? {}
  const parts = [
    ...(tokens === null ? [] : [`${compact(used.daily_tokens)} of ${compact(tokens)} tokens today`]),
    ...(day === null ? [] : [`${formatUsd(used.daily_cost_usd)} of ${formatUsd(day)} today`]),
    ...(month === null ? [] : [`${formatUsd(used.monthly_cost_usd)} of ${formatUsd(month)} this month`]),
  ]
  return (
    <>
      {parts.map(part => (
        <span key={part} class="block">
          {part}
        </span>
      ))}
    </>
  )
}
