import { useState } from 'preact/hooks'
import type { ShownAlert } from '../../routes/alerts/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { useRegistration } from '../state/registration.ts'
import { useResource } from '../state/resource.ts'
import { Badge } from './badge.tsx'
import { FormDialog } from './dialog.tsx'
import { SelectField, TextField } from './field.tsx'
import { Empty, FailureNotice, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { Table } from './table.tsx'
import { showToast } from './toast.tsx'

type Metric = ShownAlert['metric']

const names: Readonly<Record<Metric, string>> = {
  spend: 'Spend per UTC day',
  error_rate: 'Failed requests',
  latency: 'Latency, p95',
}
/** Thresholds are entered and shown in these units. */
const units: Readonly<Record<Metric, string>> = { spend: 'USD', error_rate: '%', latency: 'ms' }
const factorOf = (metric: Metric) => (metric === 'error_rate' ? 100 : 1)
const shown = (metric: Metric, value: number) => `${Number((value * factorOf(metric)).toPrecision(4))} ${units[metric]}`

/** Alerts of the account, by email to owners and by webhook. */
export function Alerts() {
  const alerts = useResource('GET /api/v1/alerts')
  const [isAdding, setAdding] = useState(false)
  // The same mail server sends both.
  const sendsMail = useRegistration()?.verifies_email !== false
  const removing = useAction(async (id: string) => {
    await callApi('DELETE /api/v1/alerts/:id', { params: { id } })
    alerts.reload()
    showToast('Alert deleted')
  })
  return (
    <Card
      title="Alerts"
      about={`${sendsMail ? 'Owners get an email, and webhooks an event,' : 'Webhooks get an event'} when a value reaches its threshold.${sendsMail ? '' : ' Email is not configured.'}`}
      actions={
        <button type="button" class="button" onClick={() => setAdding(true)}>
          Create alert
        </button>
      }
    >
      {removing.failure !== null && <FailureNotice failure={removing.failure} />}
      <Loaded resource={alerts} what="the alerts">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No alerts">Create an alert on spend, failed requests or latency.</Empty>
          ) : (
            <Table
              caption="Alerts"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Metric', isHeading: true, show: one => names[one.metric] },
                { name: 'Threshold', isNumber: true, show: one => shown(one.metric, one.threshold) },
                {
                  name: 'Value',
                  isNumber: true,
                  show: one => (one.value === null ? 'too few requests' : shown(one.metric, one.value)),
                },
                {
                  name: 'Status',
                  show: one => (one.firing ? <Badge tone="bad">Firing</Badge> : <Badge tone="good">Normal</Badge>),
                },
                {
                  name: '',
                  show: one => (
                    <button
                      type="button"
                      class="button small danger-text"
                      aria-label={`Delete the alert on ${names[one.metric]}`}
                      onClick={() => void removing.run(one.id)}
                    >
                      Delete
                    </button>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      {isAdding && <Create onCreated={alerts.reload} onClose={() => setAdding(false)} />}
    </Card>
  )
}

function Create({ onCreated, onClose }: { readonly onCreated: () => void; readonly onClose: () => void }) {
  const [metric, setMetric] = useState<Metric>('spend')
  const [threshold, setThreshold] = useState('')
  const creating = useAction(async () => {
    await callApi('POST /api/v1/alerts', { body: { metric, threshold: Number(threshold) / factorOf(metric) } })
    onCreated()
    onClose()
    showToast('Alert created')
  })
  return (
    <FormDialog
      title="Create alert"
      action="Create"
      doing={creating}
      fields={['threshold']}
      isReady={Number(threshold) > 0}
      onClose={onClose}
    >
      <SelectField
        label="Metric"
        value={metric}
        onChoice={value => setMetric(value === 'latency' || value === 'error_rate' ? value : 'spend')}
      >
        {Object.entries(names).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </SelectField>
      <TextField
        label={`Threshold in ${units[metric]}`}
        required
        value={threshold}
        onText={setThreshold}
        param="threshold"
        failure={creating.failure}
      />
    </FormDialog>
  )
}
