import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import { Button } from '../parts/button.tsx'
import { Switch } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { KeyDialog, type OpenKeyDialog } from '../parts/key-dialogs.tsx'
import { CreateKey } from '../parts/key-form.tsx'
import { KeyTable } from '../parts/key-table.tsx'
import { KeyUsageCard } from '../parts/key-usage.tsx'
import { NothingVisible } from '../parts/nothing-visible.tsx'
import { Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { useOwnScope, useProjects } from '../parts/project-field.tsx'
import { filtersOf } from '../state/filters.ts'
import { hashRoute } from '../state/hash-route.ts'
import { isKeyValid } from '../state/key-lineage.ts'
import { useResource } from '../state/resource.ts'
import type { NewKey } from '../state/routes.ts'
import { may } from '../state/session.ts'

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
        (may('keys.own') || projects.open.length > 0) && (
          <Button text="Create API key" look="primary" onClick={() => setOpen({ kind: 'create' })} />
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
        <CreateKey
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
