import { useState } from 'preact/hooks'
import type { ShownWebhook } from '../../console/webhooks/schemas.ts'
import { webhookEventTypes } from '../../core/webhooks/events.ts'
import { Badge } from '../parts/badge.tsx'
import { Button } from '../parts/button.tsx'
import { Deliveries } from '../parts/deliveries.tsx'
import { Confirm, FormDialog, ShownOnce } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { Empty, FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { nameOfProject, ProjectField, useProjects } from '../parts/project-field.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'

export function Webhooks() {
  const webhooks = useResource('GET /api/v1/webhooks')
  const [isAdding, setAdding] = useState(false)
  const [shown, setShown] = useState<string | null>(null)
  return (
    <Page
      title="Webhooks"
      about={
        <>
          Signed HTTP requests to your servers when something happens in this account. Thresholds are on{' '}
          <a href={hrefTo('alerts')}>Alerts</a>.
        </>
      }
      actions={<Button text="Create webhook" look="primary" onClick={() => setAdding(true)} />}
    >
      <Card title="Endpoints">
        <Loaded resource={webhooks} what="the webhooks">
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="No webhooks">Create a webhook to receive events at a URL.</Empty>
            ) : (
              <Endpoints rows={data} shown={shown} onShow={setShown} onChange={webhooks.reload} />
            )
          }
        </Loaded>
      </Card>
      {shown !== null && webhooks.data?.data.some(one => one.id === shown) && <Deliveries key={shown} id={shown} />}
      {isAdding && <Create onCreated={webhooks.reload} onClose={() => setAdding(false)} />}
    </Page>
  )
}

type EndpointsProps = {
  readonly rows: readonly ShownWebhook[]
  readonly shown: string | null
  readonly onShow: (id: string) => void
  readonly onChange: () => void
}

function Endpoints({ rows, shown, onShow, onChange }: EndpointsProps) {
  const [deleted, setDeleted] = useState<ShownWebhook | null>(null)
  const [rotated, setRotated] = useState<ShownWebhook | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const { names: projects } = useProjects()
  const testing = useAction(async (id: string) => {
    await callApi('POST /api/v1/webhooks/:id/test', { params: { id } })
    onShow(id)
    showToast('Test event sent')
  })
  const switching = useAction(async ({ id, enabled }: ShownWebhook) => {
    await callApi('PATCH /api/v1/webhooks/:id', { params: { id }, body: { enabled: !enabled } })
    onChange()
    showToast(enabled ? 'Webhook disabled' : 'Webhook enabled')
  })
  const failure = testing.failure ?? switching.failure
  const button = (text: string, one: ShownWebhook, press: () => void) => (
    <Button text={text} look="small" aria-label={`${text}: ${one.url}`} onClick={press} />
  )
  return (
    <>
      {failure !== null && <FailureNotice failure={failure} />}
      <Table
        caption="Webhook endpoints"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          { name: 'URL', isHeading: true, show: one => <span class="break">{one.url}</span> },
          { name: 'Status', show: one => <Status webhook={one} /> },
          ...(projects.size > 0
            ? [{ name: 'Project', show: (one: ShownWebhook) => nameOfProject(projects, one.project_id) }]
            : []),
          { name: 'Events', from: 'wide', show: one => <span class="quiet">{one.events.join(', ')}</span> },
          {
            name: '',
            show: one => (
              <>
                {button(shown === one.id ? 'Shown' : 'Deliveries', one, () => onShow(one.id))}{' '}
                {one.enabled && <>{button('Send test', one, () => void testing.run(one.id))} </>}
                {button('Rotate', one, () => setRotated(one))}{' '}
                {button(one.enabled ? 'Disable' : 'Enable', one, () => void switching.run(one))}{' '}
                {button('Delete', one, () => setDeleted(one))}
              </>
            ),
          },
        ]}
      />
      {deleted !== null && (
        <Confirm
          title="Delete this webhook?"
          action="Delete"
          isDangerous
          perform={async () => {
            await callApi('DELETE /api/v1/webhooks/:id', { params: { id: deleted.id } })
            onChange()
            showToast('Webhook deleted')
          }}
          onClose={() => setDeleted(null)}
        >
          <p>{deleted.url} receives no further events. Its delivery log is deleted too.</p>
        </Confirm>
      )}
      {rotated !== null && (
        <Confirm
          title="Rotate the signing secret?"
          action="Rotate"
          perform={async () => {
            const { id } = rotated
            setSecret((await callApi('POST /api/v1/webhooks/:id/rotate', { params: { id }, body: {} })).secret)
          }}
          onClose={() => setRotated(null)}
        >
          <p>Requests carry signatures of the old and the new secret for 1 day.</p>
        </Confirm>
      )}
      {secret !== null && <Secret secret={secret} onClose={() => setSecret(null)} />}
    </>
  )
}

function Status({ webhook: { enabled, disabled_by: by, failing_since: since } }: { readonly webhook: ShownWebhook }) {
  if (!enabled) return <Badge tone="bad">{by === 'failures' ? 'Disabled after failures' : 'Disabled'}</Badge>
  return since === null ? <Badge tone="good">Enabled</Badge> : <Badge tone="warn">Failing</Badge>
}

function Create({ onCreated, onClose }: { readonly onCreated: () => void; readonly onClose: () => void }) {
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState<readonly string[]>(webhookEventTypes)
  const [project, setProject] = useState<string | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const creating = useAction(async () => {
    setSecret((await callApi('POST /api/v1/webhooks', { body: { url, events, project_id: project } })).secret)
    onCreated()
  })
  if (secret !== null) return <Secret secret={secret} onClose={onClose} />
  return (
    <FormDialog
      title="Create webhook"
      action="Create"
      doing={creating}
      fields={['url', 'project_id']}
      isReady={events.length > 0}
      onClose={onClose}
    >
      <TextField label="URL" required value={url} onText={setUrl} param="url" failure={creating.failure} />
      <fieldset>
        <legend>Events</legend>
        {webhookEventTypes.map(type => (
          <label key={type} class="block">
            <input
              type="checkbox"
              checked={events.includes(type)}
              onChange={({ currentTarget: { checked } }) =>
                setEvents(checked ? [...events, type] : events.filter(one => one !== type))
              }
            />{' '}
            {type}
          </label>
        ))}
      </fieldset>
      <ProjectField
        value={project}
        onChoice={setProject}
        failure={creating.failure}
        hint="With a project, it receives only events about its keys and alerts."
      />
    </FormDialog>
  )
}

function Secret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <ShownOnce title="Signing secret" text={secret} what="secret" onClose={onClose}>
      <p>Your server verifies requests with this secret. It is not shown again.</p>
    </ShownOnce>
  )
}
