import { useState } from 'preact/hooks'
import type { ShownDelivery, ShownWebhook } from '../../console/webhooks/schemas.ts'
import { webhookEventTypes } from '../../core/webhooks/events.ts'
import { Button, Snippet } from '../parts/controls.tsx'
import { Dialog, type ShownResult } from '../parts/dialog.tsx'
import { Badge, FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, showToast } from '../parts/page.tsx'
import { projectColumn, useProjects } from '../parts/project-field.tsx'
import { action, ResourceView } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { humanize, listTime } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'

const toResult = ({ secret }: { readonly secret: string }): ShownResult => ({
  title: 'Signing secret',
  about: <p>Your server verifies requests with this secret. It is not shown again.</p>,
  once: { text: secret, what: 'secret' },
})

const formatChoices = [
  ['standard', 'JSON, signed'],
  ['slack', 'Slack and compatible'],
] as const

const create = action({
  text: () => 'Create webhook',
  start: () => ({ url: '', format: 'standard', events: webhookEventTypes.join(), project_id: '' }),
  dialog: (_: null, { events }) => ({
    title: 'Create webhook',
    submit: 'Create',
    isReady: events !== '',
    fields: [
      { param: 'url', label: 'URL', required: true },
      { param: 'format', label: 'Format', choices: formatChoices },
      { param: 'events', label: 'Events', checks: webhookEventTypes },
      {
        param: 'project_id',
        label: 'Project',
        choices: 'projects',
        hint: 'With a project, it receives only events about its keys and alerts.',
      },
    ],
  }),
  perform: async (_, { url, format, events, project_id }) => {
    const body = { url, format, events: events.split(','), project_id: project_id || null }
    return toResult(await callApi('POST /api/v1/webhooks', { body }))
  },
})

const label =
  (text: string) =>
  ({ url }: ShownWebhook) =>
    `${text}: ${url}`

/** What can be done to a webhook; `onShow` shows its deliveries. */
const webhookActions = (shown: string | null, onShow: (id: string) => void) => [
  action<ShownWebhook>({
    text: ({ id }) => (shown === id ? 'Shown' : 'Deliveries'),
    label: row => label(shown === row.id ? 'Shown' : 'Deliveries')(row),
    perform: async ({ id }) => {
      onShow(id)
      return null
    },
  }),
  action<ShownWebhook>({
    text: () => 'Send test',
    label: label('Send test'),
    isFor: ({ enabled }) => enabled,
    perform: async ({ id }) => {
      await callApi('POST /api/v1/webhooks/:id/test', { params: { id } })
      onShow(id)
      return 'Test event sent'
    },
  }),
  action<ShownWebhook>({
    text: () => 'Rotate',
    label: label('Rotate'),
    dialog: () => ({
      title: 'Rotate the signing secret?',
      submit: 'Rotate',
      about: <p>Requests carry signatures of the old and the new secret for 1 day.</p>,
    }),
    perform: async ({ id }) =>
      toResult(await callApi('POST /api/v1/webhooks/:id/rotate', { params: { id }, body: {} })),
  }),
  action<ShownWebhook>({
    text: ({ enabled }) => (enabled ? 'Disable' : 'Enable'),
    label: row => label(row.enabled ? 'Disable' : 'Enable')(row),
    perform: async ({ id, enabled }) => {
      await callApi('PATCH /api/v1/webhooks/:id', { params: { id }, body: { enabled: !enabled } })
      return enabled ? 'Webhook disabled' : 'Webhook enabled'
    },
  }),
  action<ShownWebhook>({
    text: () => 'Delete',
    label: label('Delete'),
    isDangerous: true,
    dialog: ({ url }) => ({
      title: 'Delete this webhook?',
      submit: 'Delete',
      about: <p>{url} receives no further events. Its delivery log is deleted too.</p>,
    }),
    perform: async ({ id }) => {
      await callApi('DELETE /api/v1/webhooks/:id', { params: { id } })
      return 'Webhook deleted'
    },
  }),
]

export function Webhooks() {
  const webhooks = useResource('GET /api/v1/webhooks')
  const [shown, setShown] = useState<string | null>(null)
  const { names } = useProjects()
  return (
    <ResourceView
      page={{
        title: 'Webhooks',
        about: (
          <>
            Signed HTTP requests to your servers when something happens in this account. Thresholds are on{' '}
            <a href={hrefTo('alerts')}>Alerts</a>.
          </>
        ),
      }}
      title="Endpoints"
      caption="Webhook endpoints"
      what="the webhooks"
      resource={webhooks}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        { name: 'URL', isHeading: true, show: ({ url }) => <span class="break">{url}</span> },
        { name: 'Status', show: webhook => <Status webhook={webhook} /> },
        ...projectColumn(names),
        { name: 'Events', from: 'wide', show: ({ events }) => <span class="quiet">{events.join(', ')}</span> },
      ]}
      empty={['No webhooks', 'Create a webhook to receive events at a URL.']}
      create={create}
      actions={webhookActions(shown, setShown)}
    >
      {shown !== null && webhooks.data?.data.some(({ id }) => id === shown) && <Deliveries key={shown} id={shown} />}
    </ResourceView>
  )
}

function Status({ webhook: { enabled, disabled_by: by, failing_since: since } }: { readonly webhook: ShownWebhook }) {
  if (!enabled) return <Badge tone="bad">{by === 'failures' ? 'Disabled after failures' : 'Disabled'}</Badge>
  return since === null ? <Badge tone="good">Enabled</Badge> : <Badge tone="warn">Failing</Badge>
}

/** Delivery log of one webhook. */
function Deliveries({ id }: { readonly id: string }) {
  const log = useResource('GET /api/v1/webhooks/:id/deliveries', { params: { id }, everyMs: 5_000 })
  const [shown, setShown] = useState<string | null>(null)
  const detail = log.data?.data.find(delivery => delivery.id === shown)
  return (
    <Card title="Deliveries" about="The newest 50. Settled deliveries are kept for 30 days.">
      <Loaded resource={log} what="the deliveries">
        {({ data }) => (
          <Table
            caption="Deliveries"
            rows={data}
            rowKey={delivery => delivery.id}
            empty={['No deliveries', 'Send a test event to see one here.']}
            columns={[
              { name: 'Time', from: 'middle', show: ({ created_at }) => listTime(created_at) },
              { name: 'Event', isHeading: true, show: ({ type }) => type },
              { name: 'Status', show: delivery => <DeliveryStatus delivery={delivery} /> },
              { name: 'Attempts', from: 'middle', isNumber: true, show: ({ attempts }) => attempts },
              { name: 'Response time', from: 'wide', isNumber: true, show: delivery => duration(delivery) },
              {
                name: '',
                show: ({ id, type, created_at: at }) => (
                  <Button
                    text="Details"
                    look="small"
                    aria-label={`Details of ${type}, ${listTime(at)}`}
                    onClick={() => setShown(id)}
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {detail !== undefined && (
        <Detail webhookId={id} delivery={detail} onChange={log.reload} onClose={() => setShown(null)} />
      )}
    </Card>
  )
}
const duration = ({ duration_ms: ms }: ShownDelivery) => (ms === null ? 'none' : `${ms} ms`)

/** Words for codes that do not explain themselves. */
const reasons: Readonly<Record<string, string>> = {
  queue_full: 'too many pending',
  refused: 'address rejected',
}

function DeliveryStatus({ delivery: { status, error, response_status: code } }: { readonly delivery: ShownDelivery }) {
  const tone = status === 'delivered' ? 'good' : status === 'failed' ? 'bad' : 'warn'
  const reason = error === null ? '' : ` · ${error === 'status' ? code : (reasons[error] ?? humanize(error))}`
  return (
    <Badge tone={tone}>
      {humanize(status)}
      {reason}
    </Badge>
  )
}

type DetailProps = {
  readonly webhookId: string
  readonly delivery: ShownDelivery
  readonly onChange: () => void
  readonly onClose: () => void
}

function Detail({ webhookId, delivery, onChange, onClose }: DetailProps) {
  const sending = useAction(async () => {
    const params = { id: webhookId, delivery: delivery.id }
    await callApi('POST /api/v1/webhooks/:id/deliveries/:delivery/redeliver', { params, body: {} })
    onChange()
    onClose()
    showToast('Delivery queued')
  })
  const facts: readonly (readonly [string, string])[] = [
    ['Event', delivery.type],
    ['Created', listTime(delivery.created_at)],
    ['Attempts', `${delivery.attempts}`],
    ['Last attempt', delivery.last_attempt_at === null ? 'none' : listTime(delivery.last_attempt_at)],
    ['Next attempt', delivery.next_attempt_at === null ? 'none' : listTime(delivery.next_attempt_at)],
    ['Response status', delivery.response_status === null ? 'none' : `${delivery.response_status}`],
    ['Response time', duration(delivery)],
    ['Error', delivery.error === null ? 'none' : (reasons[delivery.error] ?? humanize(delivery.error))],
  ]
  return (
    <Dialog title="Delivery" onClose={onClose}>
      <p>
        <DeliveryStatus delivery={delivery} />
      </p>
      <Table
        caption="Facts of the delivery"
        rows={facts}
        rowKey={([name]) => name}
        columns={[
          { name: 'Fact', isHeading: true, show: ([name]) => name },
          { name: 'Value', show: ([, value]) => value },
        ]}
      />
      <p class="hint">
        <code>webhook-id</code> of every attempt:
      </p>
      <Snippet text={delivery.id} what="ID" />
      <p class="hint">Body of the request:</p>
      <Snippet text={delivery.body} what="body" />
      {sending.failure !== null && <FailureNotice failure={sending.failure} />}
      <div class="actions end">
        {delivery.status !== 'pending' && (
          <Button text="Send again" disabled={sending.isBusy} onClick={() => void sending.run()} />
        )}
        <Button text="Close" look="primary" onClick={onClose} />
      </div>
    </Dialog>
  )
}
