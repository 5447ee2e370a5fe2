import { useState } from 'preact/hooks'
import type { ShownDelivery, ShownWebhook } from '../../console/webhooks/schemas.ts'
import { webhookEventTypes } from '../../core/webhooks/events.ts'
import { Snippet } from '../parts/controls.tsx'
import type { ShownResult } from '../parts/dialog.tsx'
import { Badge } from '../parts/notice.tsx'
import { Pairs } from '../parts/page.tsx'
import { projectColumn, useProjects } from '../parts/project-field.tsx'
import { action, ResourceView, removal } from '../parts/resource.tsx'
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
  text: (_: null) => 'Create webhook',
  start: () => ({ url: '', format: 'standard', events: webhookEventTypes.join(), project_id: '' }),
  dialog: () => ({
    title: 'Create webhook',
    submit: 'Create',
    fields: [
      { param: 'url', label: 'URL', required: true },
      { param: 'format', label: 'Format', choices: formatChoices },
      { param: 'events', label: 'Events', checks: webhookEventTypes, required: true },
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
  removal<ShownWebhook>({
    verb: 'Delete',
    name: ({ url }) => url,
    about: () => 'It receives no further events. Its delivery log is deleted too.',
    remove: ({ id }) => callApi('DELETE /api/v1/webhooks/:id', { params: { id } }),
    done: () => 'Webhook deleted',
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
  return (
    <ResourceView
      title="Deliveries"
      about="The newest 50. Settled deliveries are kept for 30 days."
      what="the deliveries"
      resource={useResource('GET /api/v1/webhooks/:id/deliveries', { params: { id }, everyMs: 5_000 })}
      rows={({ data }) => data}
      rowKey={delivery => delivery.id}
      columns={[
        { name: 'Time', from: 'middle', show: ({ created_at }) => listTime(created_at) },
        { name: 'Event', isHeading: true, show: ({ type }) => type },
        { name: 'Status', show: delivery => <DeliveryStatus delivery={delivery} /> },
        { name: 'Attempts', from: 'middle', isNumber: true, show: ({ attempts }) => attempts },
        { name: 'Response time', from: 'wide', isNumber: true, show: delivery => duration(delivery) },
      ]}
      empty={['No deliveries', 'Send a test event to see one here.']}
      actions={[showFacts, sendAgain(id)]}
    />
  )
}

const toName = ({ type, created_at: at }: ShownDelivery) => `${type}, ${listTime(at)}`

const showFacts = action<ShownDelivery>({
  text: () => 'Details',
  label: delivery => `Details of ${toName(delivery)}`,
  perform: async delivery => ({ title: 'Delivery', about: <Facts of={delivery} /> }),
})

const sendAgain = (webhookId: string) =>
  action<ShownDelivery>({
    text: () => 'Send again',
    label: delivery => `Send again: ${toName(delivery)}`,
    isFor: ({ status }) => status !== 'pending',
    perform: async ({ id: delivery }) => {
      const params = { id: webhookId, delivery }
      await callApi('POST /api/v1/webhooks/:id/deliveries/:delivery/redeliver', { params, body: {} })
      return 'Delivery queued'
    },
  })

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

function Facts({ of: delivery }: { readonly of: ShownDelivery }) {
  const { last_attempt_at: last, next_attempt_at: next, response_status: status, error } = delivery
  return (
    <>
      <p>
        <DeliveryStatus delivery={delivery} />
      </p>
      <Pairs
        of={[
          ['Event', delivery.type],
          ['Created', listTime(delivery.created_at)],
          ['Attempts', delivery.attempts],
          ['Last attempt', last === null ? 'none' : listTime(last)],
          ['Next attempt', next === null ? 'none' : listTime(next)],
          ['Response status', status ?? 'none'],
          ['Response time', duration(delivery)],
          ['Error', error === null ? 'none' : (reasons[error] ?? humanize(error))],
        ]}
      />
      <p class="hint">
        <code>webhook-id</code> of every attempt:
      </p>
      <Snippet text={delivery.id} what="ID" />
      <p class="hint">Body of the request:</p>
      <Snippet text={delivery.body} what="body" />
    </>
  )
}
