import { useState } from 'preact/hooks'
import { isAllowed } from '../../core/accounts/roles.ts'
import type { ShownKey } from '../../routes/keys/schemas.ts'
import { FormDialog } from '../parts/dialog.tsx'
import { SelectField, Switch, TextField } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { expiryIn, KeyBadge, KeyDialog, keyParams, lifetimeOptions, type OpenKeyDialog } from '../parts/key-dialogs.tsx'
import { KeyRoutingFields, routingOfTexts, routingTextsOf } from '../parts/key-routing.tsx'
import { KeyRuleFields } from '../parts/key-rules.tsx'
import { KeyUsageCard } from '../parts/key-usage.tsx'
import { NothingVisible } from '../parts/nothing-visible.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { type ProjectChoices, ProjectField, useOwnScope, useProjects } from '../parts/project-field.tsx'
import { Table } from '../parts/table.tsx'
import { UsedLimits } from '../parts/used-limits.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { filtersOf } from '../state/filters.ts'
import { compact, dateOf, formatCount, relativeTime, usdColumn } from '../state/format.ts'
import { hashRoute, hrefTo } from '../state/hash-route.ts'
import { isKeyValid } from '../state/key-lineage.ts'
import { type KeyRuleTexts, rulesOfTexts, textsOfRules } from '../state/key-rule-texts.ts'
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
  const projects = useProjects()
  const ofProject = (key: ShownKey) => filters.project_id === undefined || key.project_id === filters.project_id
  const made = (key: NewKey) => {
    setOpen({ kind: 'shown', made: key })
    keys.reload()
  }
  const scope = useOwnScope()
  return (
    <Page
      title="Keys"
      about={`${scope === null ? 'All keys of the account' : scope === 'your own keys' ? 'Your keys' : 'Your keys and projects'}. All keys share the limits of the account and can have limits of their own.`}
      actions={
        (isAllowed(user.value?.role ?? 'viewer', 'keys.own') || projects.open.length > 0) && (
          <button type="button" class="button primary" onClick={() => setOpen({ kind: 'create' })}>
            Create API key
          </button>
        )
      }
    >
      <NothingVisible />
      <Card
        title={showsEnded ? 'All keys' : 'Active keys'}
        actions={<Switch label="Show revoked and expired" isOn={showsEnded} onSwitch={setShowsEnded} />}
      >
        <Loaded resource={keys} what="keys">
          {({ data }) => (
            <KeyTable
              keys={data.filter(key => ofProject(key) && (showsEnded || isKeyValid(key)))}
              projects={projects}
              onOpen={setOpen}
              hasEnded={data.length > 0}
            />
          )}
        </Loaded>
      </Card>
      <FilterBar path="keys" filters={filters} />
      <KeyUsageCard filters={filters} />
      {open?.kind === 'create' && (
        <Create
          inProject={projects.open.find(({ id }) => id === filters.project_id)?.id ?? null}
          onMade={made}
          onClose={close}
        />
      )}
      {open !== null && open.kind !== 'create' && (
        <KeyDialog open={open} onMade={made} onChanged={keys.reload} onClose={close} />
      )}
    </Page>
  )
}

type KeyTableProps = {
  readonly keys: readonly ShownKey[]
  readonly hasEnded: boolean
  readonly projects: Pick<ProjectChoices, 'names' | 'mayManage'>
  readonly onOpen: (open: Open) => void
}

function KeyTable({ keys, hasEnded, projects: { names, mayManage }, onOpen }: KeyTableProps) {
  if (keys.length === 0)
    return <Empty title={hasEnded ? 'No active keys' : 'No keys yet'}>Programs use API keys to authenticate.</Empty>
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
        ...(names.size === 0
          ? []
          : [
              {
                name: 'Project',
                from: 'middle' as const,
                show: ({ project_id: id }: ShownKey) => (id === null ? '' : (names.get(id) ?? id)),
              },
            ]),
        { name: 'Created', from: 'wide', show: key => dateOf(key.created_at) },
        {
          name: 'Last used',
          from: 'middle',
          show: key => (key.last_used_at === null ? 'Never' : relativeTime(key.last_used_at)),
        },
        { name: 'Requests', from: 'middle', isNumber: true, show: key => formatCount(key.usage.requests) },
        { name: 'Tokens', from: 'wide', isNumber: true, show: key => compact(key.usage.total_tokens) },
        { name: 'Cost', isNumber: true, show: key => usd(key.usage.cost_usd) },
        {
          name: 'Limits',
          from: 'middle',
          show: ({ limits, used, models }) => <UsedLimits limits={limits} used={used} models={models} />,
        },
        {
          name: '',
          show: key =>
            isKeyValid(key) &&
            mayManage(key) && (
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

type CreateProps = {
  /** The project that is chosen at first. */
  readonly inProject: string | null
  readonly onMade: (key: NewKey) => void
  readonly onClose: () => void
}

function Create({ inProject, onMade, onClose }: CreateProps) {
  const [name, setName] = useState('')
  const [days, setDays] = useState('')
  const [rules, setRules] = useState<KeyRuleTexts>(textsOfRules(null))
  const [routing, setRouting] = useState(routingTextsOf(null))
  const [project, setProject] = useState(inProject)
  const making = useAction(async () => {
    const body = {
      name: name.trim(),
      expires_at: expiryIn(days),
      project_id: project,
      ...rulesOfTexts(rules),
      ...routingOfTexts(routing),
    }
    onMade(await callApi('POST /api/v1/keys', { body }))
  })
  return (
    <FormDialog
      title="Create API key"
      action="Create API key"
      isReady={name.trim() !== ''}
      doing={making}
      fields={keyParams}
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
      <ProjectField value={project} onChoice={setProject} failure={making.failure} />
      <SelectField label="Expires" value={days} onChoice={setDays} param="expires_at" failure={making.failure}>
        {lifetimeOptions}
      </SelectField>
      <KeyRuleFields texts={rules} onTexts={setRules} failure={making.failure} />
      <KeyRoutingFields texts={routing} onTexts={setRouting} />
    </FormDialog>
  )
}
