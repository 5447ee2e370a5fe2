import { useState } from 'preact/hooks'
import { isAllowed } from '../../core/accounts/roles.ts'
import type { ShownKey } from '../../routes/keys/schemas.ts'
import { Badge } from '../parts/badge.tsx'
import { Snippet } from '../parts/copy.tsx'
import { Confirm, Dialog, FormDialog } from '../parts/dialog.tsx'
import { SelectField, Switch, TextField } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { KeyRuleFields, type KeyRuleTexts, rulesOfTexts, textsOfRules } from '../parts/key-rules.tsx'
import { KeyUsageCard } from '../parts/key-usage.tsx'
import { Empty, Loaded, Notice } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { filtersOf } from '../state/filters.ts'
import { compact, dateOf, dateTime, formatCount, formatUsd, relativeTime, usdColumn } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { useResource } from '../state/resource.ts'
import type { NewKey } from '../state/routes.ts'
import { user } from '../state/session.ts'

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'change'; readonly key: ShownKey }
  | { readonly kind: 'shown'; readonly made: NewKey }
  | { readonly kind: 'rotate' | 'revoke'; readonly key: ShownKey }

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
        title={showsEnded ? 'All keys' : 'Active keys'}
        actions={<Switch label="Show revoked and expired" isOn={showsEnded} onSwitch={setShowsEnded} />}
      >
        <Loaded resource={keys} what="keys">
          {({ data }) => (
            <KeyTable keys={showsEnded ? data : data.filter(isAlive)} onOpen={setOpen} hasEnded={data.length > 0} />
          )}
        </Loaded>
      </Card>
      <FilterBar path="keys" filters={filters} />
      <KeyUsageCard filters={filters} />
      {open?.kind === 'create' && <Create onMade={made} onClose={close} />}
      {open?.kind === 'change' && (
        <Change
          target={open.key}
          onChanged={() => {
            close()
            keys.reload()
          }}
          onClose={close}
        />
      )}
      {open?.kind === 'rotate' && <Rotate target={open.key} onMade={made} onClose={close} />}
      {open?.kind === 'shown' && <Shown made={open.made} onClose={close} />}
      {open?.kind === 'revoke' && (
        <Confirm
          title={`Revoke “${open.key.name}”?`}
          action="Revoke"
          isDangerous
          perform={async () => {
            await callApi('DELETE /api/v1/keys/:id', { params: { id: open.key.id } })
            keys.reload()
            showToast(`Key “${open.key.name}” revoked`)
          }}
          onClose={close}
        >
          <p>
            Requests with <code>{open.key.prefix}</code> are rejected within 1 s. This cannot be undone.
          </p>
        </Confirm>
      )}
    </Page>
  )
}

const isAlive = ({ revoked_at, expires_at }: ShownKey) =>
  revoked_at === null && (expires_at === null || Date.parse(expires_at) > Date.now())

type KeyTableProps = {
  readonly keys: readonly ShownKey[]
  readonly hasEnded: boolean
  readonly onOpen: (open: Open) => void
}

function KeyTable({ keys, hasEnded, onOpen }: KeyTableProps) {
  if (keys.length === 0)
    return <Empty title={hasEnded ? 'No active keys' : 'No keys yet'}>Programs use API keys to authenticate.</Empty>
  const usd = usdColumn(keys.map(({ usage }) => usage.cost_usd))
  return (
    <Table
      caption="API keys"
      rows={keys}
      keyOf={({ id }) => id}
      classOf={key => (isAlive(key) ? '' : 'faded')}
      columns={[
        {
          name: 'Name',
          isHeading: true,
          show: key => (
            <>
              {key.name} <Standing of={key} />
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
            isAlive(key) && (
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

function Standing({ of: key }: { readonly of: ShownKey }) {
  if (key.revoked_at !== null) return <Badge tone="bad">revoked</Badge>
  if (key.expires_at === null) return null
  return isAlive(key) ? (
    <span title={dateTime(key.expires_at)}>
      <Badge tone="warn">expires {relativeTime(key.expires_at)}</Badge>
    </span>
  ) : (
    <Badge>expired</Badge>
  )
}

const lifetimes = { '': 'Never', '7': 'In 7 days', '30': 'In 30 days', '90': 'In 90 days', '365': 'In a year' } as const
const dayMs = 86_400_000

type MadeProps = { readonly onMade: (key: NewKey) => void; readonly onClose: () => void }

function Create({ onMade, onClose }: MadeProps) {
  const [name, setName] = useState('')
  const [days, setDays] = useState('')
  const [rules, setRules] = useState<KeyRuleTexts>(textsOfRules(null))
  const making = useAction(async () => {
    const expires_at = days === '' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString()
    onMade(await callApi('POST /api/v1/keys', { body: { name: name.trim(), expires_at, ...rulesOfTexts(rules) } }))
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
      <SelectField label="Expires" value={days} onChoice={setDays}>
        {Object.entries(lifetimes).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </SelectField>
      <KeyRuleFields texts={rules} onTexts={setRules} failure={making.failure} />
    </FormDialog>
  )
}

type ChangeProps = { readonly target: ShownKey; readonly onChanged: () => void; readonly onClose: () => void }

function Change({ target, onChanged, onClose }: ChangeProps) {
  const [rules, setRules] = useState<KeyRuleTexts>(textsOfRules(target))
  const changing = useAction(async () => {
    await callApi('PATCH /api/v1/keys/:id', { params: { id: target.id }, body: rulesOfTexts(rules) })
    onChanged()
  })
  return (
    <FormDialog title={`Change “${target.name}”`} action="Save" doing={changing} fields={[]} onClose={onClose}>
      <KeyRuleFields texts={rules} onTexts={setRules} failure={changing.failure} />
    </FormDialog>
  )
}

/** Shows the limits and models of a key, and how much is used on this UTC day and in its month. */
function Used({ of: { limits, used, models } }: { readonly of: ShownKey }) {
  const { daily_tokens: tokens = null, daily_cost_usd: day = null, monthly_cost_usd: month = null } = limits ?? {}
  const { requests_per_minute: minute = null, concurrent_requests: concurrent = null } = limits ?? {}
  const parts = [
    ...(minute === null ? [] : [`${formatCount(minute)} ${minute === 1 ? 'request' : 'requests'} per minute`]),
    ...(concurrent === null
      ? []
      : [`${formatCount(concurrent)} concurrent ${concurrent === 1 ? 'request' : 'requests'}`]),
    ...(tokens === null ? [] : [`${compact(used.daily_tokens)} of ${compact(tokens)} tokens today`]),
    ...(day === null ? [] : [`${formatUsd(used.daily_cost_usd)} of ${formatUsd(day)} today`]),
    ...(month === null ? [] : [`${formatUsd(used.monthly_cost_usd)} of ${formatUsd(month)} this month`]),
    ...(models === null ? [] : [`Only ${models.join(', ')}`]),
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

const overlaps = { '0': 'Not at all', '3600': 'For an hour', '86400': 'For a day', '604800': 'For seven days' } as const

function Rotate({ target, onMade, onClose }: MadeProps & { readonly target: ShownKey }) {
  const [overlap, setOverlap] = useState('86400')
  const rotating = useAction(async () => {
    const body = { overlap_seconds: Number(overlap) }
    onMade(await callApi('POST /api/v1/keys/:id/rotate', { params: { id: target.id }, body }))
  })
  return (
    <FormDialog title={`Rotate “${target.name}”`} action="Rotate" doing={rotating} onClose={onClose}>
      <p>A new key replaces it and continues its usage history.</p>
      <SelectField
        label="Old key stays valid"
        value={overlap}
        onChoice={setOverlap}
        hint="Long enough to replace it everywhere."
      >
        {Object.entries(overlaps).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </SelectField>
    </FormDialog>
  )
}

function Shown({ made, onClose }: { readonly made: NewKey; readonly onClose: () => void }) {
  return (
    <Dialog title={`Key “${made.name}” created`} onClose={onClose}>
      <Notice tone="warn" title="Copy the key now">
        It is shown only once: the gateway stores only its hash.
      </Notice>
      <Snippet text={made.key} what="key" />
      <div class="actions end">
        <button type="button" class="button primary" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
