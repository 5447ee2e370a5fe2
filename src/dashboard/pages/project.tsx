import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import type { ShownProject } from '../../console/projects/schemas.ts'
import { Alerts } from '../parts/alerts.tsx'
import { Button } from '../parts/button.tsx'
import { Confirm, FormDialog } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { LimitFields } from '../parts/key-rules.tsx'
import { Empty, Loaded, Notice } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { AddMember, Members, type ProjectMember } from '../parts/project-members.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { UsedLimits } from '../parts/used-limits.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { exactTime, formatCount, formatUsd, relativeTime } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { isKeyValid } from '../state/key-lineage.ts'
import { type LimitTexts, limitParams, limitsOfTexts, textsOfLimits } from '../state/key-rule-texts.ts'
import { type Resource, useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

type Open =
  | { readonly kind: 'change' | 'archive' | 'add' }
  | { readonly kind: 'remove'; readonly member: ProjectMember }

/** The project in the URL: limits with their use, members and keys. */
export function ProjectPage() {
  // Once: the route of the next page must not change this one.
  const [id] = useState(() => hashRoute.peek().path[1] ?? '')
  const project = useResource('GET /api/v1/projects/:id', { params: { id } })
  const keys = useResource('GET /api/v1/keys', { query: { project_id: id } })
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const changed = () => {
    close()
    project.reload()
  }
  const shown = project.data
  const canSetLimits = may('projects.all')
  const isMissing = project.failure?.code === 'not_found'
  const canRemove = shown !== undefined && (canSetLimits || shown.role === 'admin')
  const canManage = canRemove && !isMissing && shown.archived_at === null
  return (
    <Page
      // Constant: a page takes the focus when its title changes, and the name loads later.
      title="Project"
      about={
        <>
          <a href={hrefTo('projects')}>Projects</a> · <a href={hrefTo('requests', { project_id: id })}>Requests</a> ·{' '}
          <a href={hrefTo('', { project_id: id })}>Usage</a>
        </>
      }
      actions={
        canManage && (
          <>
            <Button onClick={() => setOpen({ kind: 'change' })}>Change project</Button>
            {canSetLimits && (
              <Button text="Archive project" look="danger-text" onClick={() => setOpen({ kind: 'archive' })} />
            )}
          </>
        )
      }
    >
      {isMissing ? (
        <div class="card">
          <Empty title="No such project">You are not a member of it, or the ID is wrong.</Empty>
        </div>
      ) : (
        <Loaded resource={project} what="the project">
          {one => (
            <>
              <Limits project={one} />
              <Members
                project={one}
                canManage={canManage}
                canRemove={canRemove}
                onChange={project.reload}
                onAdd={() => setOpen({ kind: 'add' })}
                onRemove={member => setOpen({ kind: 'remove', member })}
              />
              <Keys id={id} keys={keys} />
              {canManage && <Alerts projectId={id} />}
            </>
          )}
        </Loaded>
      )}
      {shown !== undefined && open?.kind === 'change' && (
        <Change project={shown} canSetLimits={canSetLimits} onChanged={changed} onClose={close} />
      )}
      {shown !== undefined && open?.kind === 'add' && <AddMember project={shown} onAdded={changed} onClose={close} />}
      {open?.kind === 'remove' && (
        <Confirm
          title={`Remove ${open.member.email} from the project?`}
          action="Remove"
          isDangerous
          perform={async () => {
            const params = { id, user: open.member.user_id }
            await callApi('DELETE /api/v1/projects/:id/members/:user', { params })
            showToast(`${open.member.email} removed`)
            project.reload()
            keys.reload()
          }}
          onClose={close}
        >
          <p>Their keys in this project are revoked within 1 s.</p>
        </Confirm>
      )}
      {shown !== undefined && open?.kind === 'archive' && (
        <Confirm
          title={`Archive “${shown.name}”?`}
          action="Archive project"
          isDangerous
          perform={async () => {
            await callApi('DELETE /api/v1/projects/:id', { params: { id } })
            showToast(`Project “${shown.name}” archived`)
            project.reload()
          }}
          onClose={close}
        >
          <p>Its limits end, and it accepts no keys. Revoke its valid keys first. This cannot be undone.</p>
        </Confirm>
      )}
    </Page>
  )
}

function Limits({ project: { name, archived_at, limits, used } }: { readonly project: ShownProject }) {
  return (
    <>
      {archived_at !== null && (
        <Notice tone="warn" title={`Archived ${exactTime(archived_at)}`}>
          It accepts no keys and no changes. Its usage stays, and its members can be removed.
        </Notice>
      )}
      <Card title={name} about="Its limits apply to all requests of its keys, beside those of the account.">
        {limits === null ? (
          <Empty title="No limits">The limits of the account and of each key apply.</Empty>
        ) : (
          <UsedLimits limits={limits} used={used} />
        )}
      </Card>
    </>
  )
}

type KeysProps = { readonly id: string; readonly keys: Resource<{ readonly data: readonly ShownKey[] }> }

function Keys({ id, keys }: KeysProps) {
  return (
    <Card title="Keys" actions={<a href={hrefTo('keys', { project_id: id })}>Manage keys</a>}>
      <Loaded resource={keys} what="keys">
        {({ data }) => <KeyTable keys={data.filter(key => isKeyValid(key))} />}
      </Loaded>
    </Card>
  )
}

function KeyTable({ keys }: { readonly keys: readonly ShownKey[] }) {
  if (keys.length === 0) return <Empty title="No active keys">Create an API key and choose this project for it.</Empty>
  return (
    <Table
      caption="Keys of the project"
      rows={keys}
      keyOf={one => one.id}
      columns={[
        {
          name: 'Name',
          isHeading: true,
          show: ({ id, name, prefix }) => (
            <>
              <a href={hrefTo(`keys/${id}`)}>{name}</a> <code class="block quiet">{prefix}</code>
            </>
          ),
        },
        {
          name: 'Last used',
          from: 'middle',
          show: ({ last_used_at: at }) => (at === null ? 'Never' : relativeTime(at)),
        },
        { name: 'Requests', isNumber: true, show: ({ usage }) => formatCount(usage.requests) },
        { name: 'Cost', isNumber: true, show: ({ usage }) => formatUsd(usage.cost_usd) },
      ]}
    />
  )
}

type ChangeProps = {
  readonly project: ShownProject
  readonly canSetLimits: boolean
  readonly onChanged: () => void
  readonly onClose: () => void
}

function Change({ project, canSetLimits, onChanged, onClose }: ChangeProps) {
  const [name, setName] = useState(project.name)
  const [limits, setLimits] = useState<LimitTexts>(textsOfLimits(project.limits))
  const changing = useAction(async () => {
    const body = { name: name.trim(), ...(canSetLimits ? { limits: limitsOfTexts(limits) } : {}) }
    await callApi('PATCH /api/v1/projects/:id', { params: { id: project.id }, body })
    showToast('Project changed')
    onChanged()
  })
  return (
    <FormDialog
      title={`Change “${project.name}”`}
      action="Save"
      isReady={name.trim() !== ''}
      doing={changing}
      fields={['name', ...limitParams]}
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        maxLength={100}
        value={name}
        onText={setName}
        param="name"
        failure={changing.failure}
      />
      {canSetLimits && <LimitFields texts={limits} onTexts={setLimits} failure={changing.failure} />}
    </FormDialog>
  )
}
