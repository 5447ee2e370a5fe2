import { useState } from 'preact/hooks'
import type { ShownDelivery } from '../../console/webhooks/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { humanize, listTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { Badge } from './badge.tsx'
import { Button } from './button.tsx'
import { Snippet } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Empty, FailureNotice, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { Table } from './table.tsx'
import { showToast } from './toast.tsx'

/** Delivery log of one webhook. */
export function Deliveries({ id }: { readonly id: string }) {
  const log = useResource('GET /api/v1/webhooks/:id/deliveries', { params: { id }, everyMs: 5_000 })
  const [shown, setShown] = useState<string | null>(null)
  const detail = log.data?.data.find(one => one.id === shown)
  return (
    <Card title="Deliveries" about="The newest 50. Settled deliveries are kept for 30 days.">
      <Loaded resource={log} what="the deliveries">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No deliveries">Send a test event to see one here.</Empty>
          ) : (
            <Table
              caption="Deliveries"
              rows={data}
              keyOf={one => one.id}
              columns={[
                { name: 'Time', from: 'middle', show: one => listTime(one.created_at) },
                { name: 'Event', isHeading: true, show: one => one.type },
                { name: 'Status', show: one => <DeliveryStatus delivery={one} /> },
                { name: 'Attempts', from: 'middle', isNumber: true, show: one => one.attempts },
                { name: 'Response time', from: 'wide', isNumber: true, show: one => duration(one) },
                {
                  name: '',
                  show: one => (
                    <Button
                      text="Details"
                      look="small"
                      aria-label={`Details of ${one.type}, ${listTime(one.created_at)}`}
                      onClick={() => setShown(one.id)}
                    />
                  ),
                },
              ]}
            />
          )
        }
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
        keyOf={([name]) => name}
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
