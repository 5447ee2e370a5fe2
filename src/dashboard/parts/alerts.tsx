import { useState } from 'preact/hooks'
import type { ShownAlert } from '../../console/alerts/schemas.ts'
import { alertWindowMinutes, defaultWindowMinutes } from '../../core/alerts/alerts.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { useRegistration } from '../state/registration.ts'
import { useResource } from '../state/resource.ts'
import { Badge } from './badge.tsx'
import { Button } from './button.tsx'
import { Confirm, FormDialog } from './dialog.tsx'
import { SelectField, TextField } from './field.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { nameOfProject, ProjectField, useProjects } from './project-field.tsx'
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
const inUnits = ({ metric, threshold }: ShownAlert) => `${Number((threshold * factorOf(metric)).toPrecision(12))}`
const shown = (metric: Metric, value: number) => `${Number((value * factorOf(metric)).toPrecision(4))} ${units[metric]}`

/** Alerts by email and webhook: those of a project, or all that the user manages. */
export function Alerts({ projectId }: { readonly projectId?: string }) {
  const alerts = useResource('GET /api/v1/alerts')
  const { names: projects } = useProjects()
  const ofAll = projectId === undefined
  const [edited, setEdited] = useState<ShownAlert | 'new' | null>(null)
  const [deleted, setDeleted] = useState<ShownAlert | null>(null)
  // The same mail server sends both.
  const sendsMail = useRegistration()?.verifies_email !== false
  return (
    <Card
      title="Alerts"
      about={`${sendsMail ? `Owners, and admins of ${ofAll ? 'its' : 'the'} project, get an email, and webhooks an event,` : 'Webhooks get an event'} when a value reaches its threshold.${sendsMail ? '' : ' Email is not configured.'}`}
      actions={<Button onClick={() => setEdited('new')}>Create alert</Button>}
    >
      <Loaded resource={alerts} what="the alerts">
        {({ data }) => {
          const shownRows = ofAll ? data : data.filter(({ project_id }) => project_id === projectId)
          return shownRows.length === 0 ? (
            <Empty title="No alerts">Create an alert on spend, failed requests or latency.</Empty>
          ) : (
            <Table
              caption="Alerts"
              rows={shownRows}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Metric', isHeading: true, show: one => names[one.metric] },
                ...(ofAll && projects.size > 0
                  ? [{ name: 'Project', show: (one: ShownAlert) => nameOfProject(projects, one.project_id) }]
                  : []),
                { name: 'Threshold', isNumber: true, show: one => shown(one.metric, one.threshold) },
                {
                  name: 'Window',
                  from: 'middle',
                  isNumber: true,
                  show: one => (one.metric === 'spend' ? 'UTC day' : `${one.window_minutes} min`),
                },
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
                    <>
                      <Button
                        text="Change"
                        look="small"
                        aria-label={`Change the alert on ${names[one.metric]}`}
                        onClick={() => setEdited(one)}
                      />{' '}
                      <Button
                        text="Delete"
                        look="small danger-text"
                        aria-label={`Delete the alert on ${names[one.metric]}`}
                        onClick={() => setDeleted(one)}
                      />
                    </>
                  ),
                },
              ]}
            />
          )
        }}
      </Loaded>
      {edited !== null && (
        <Edit
          alert={edited === 'new' ? null : edited}
          inProject={projectId}
          sendsMail={sendsMail}
          onChange={alerts.reload}
          onClose={() => setEdited(null)}
        />
      )}
      {deleted !== null && (
        <Confirm
          title="Delete this alert?"
          action="Delete"
          isDangerous
          perform={async () => {
            await callApi('DELETE /api/v1/alerts/:id', { params: { id: deleted.id } })
            alerts.reload()
            showToast('Alert deleted')
          }}
          onClose={() => setDeleted(null)}
        >
          <p>
            {names[deleted.metric]}, {shown(deleted.metric, deleted.threshold)}: no further emails and events.
          </p>
        </Confirm>
      )}
    </Card>
  )
}

type EditProps = {
  readonly alert: ShownAlert | null
  /** The project of a new alert; undefined = the user chooses it. */
  readonly inProject: string | undefined
  readonly sendsMail: boolean
  readonly onChange: () => void
  readonly onClose: () => void
}

/** Creates an alert, or changes threshold, window and project of one. */
function Edit({ alert, inProject, sendsMail, onChange, onClose }: EditProps) {
  const [projectId, setProjectId] = useState(alert?.project_id ?? inProject ?? null)
  const [metric, setMetric] = useState<Metric>(alert?.metric ?? 'spend')
  const [threshold, setThreshold] = useState(alert === null ? '' : inUnits(alert))
  const [minutes, setMinutes] = useState(`${alert?.window_minutes ?? defaultWindowMinutes}`)
  const saving = useAction(async () => {
    const body = {
      threshold: Number(threshold) / factorOf(metric),
      ...(metric === 'spend' ? {} : { window_minutes: Number(minutes) }),
      ...(projectId === (alert?.project_id ?? null) ? {} : { project_id: projectId }),
    }
    if (alert === null) await callApi('POST /api/v1/alerts', { body: { ...body, metric } })
    else await callApi('PATCH /api/v1/alerts/:id', { params: { id: alert.id }, body })
    onChange()
    onClose()
    showToast(alert === null ? 'Alert created' : 'Alert changed')
  })
  return (
    <FormDialog
      title={alert === null ? 'Create alert' : `Change alert: ${names[metric]}`}
      action={alert === null ? 'Create' : 'Save'}
      doing={saving}
      fields={['threshold', 'window_minutes', 'project_id']}
      isReady={Number(threshold) > 0}
      onClose={onClose}
    >
      {alert === null && (
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
      )}
      <TextField
        label={`Threshold in ${units[metric]}`}
        required
        type="number"
        step="any"
        value={threshold}
        onText={setThreshold}
        param="threshold"
        failure={saving.failure}
      />
      {metric !== 'spend' && (
        <TextField
          label={`Window in minutes, ${alertWindowMinutes.shortest} to ${alertWindowMinutes.longest}`}
          required
          type="number"
          value={minutes}
          onText={setMinutes}
          param="window_minutes"
          failure={saving.failure}
        />
      )}
      {inProject === undefined && (
        <ProjectField
          value={projectId}
          onChoice={setProjectId}
          failure={saving.failure}
          hint={`With a project, only its requests count.${sendsMail ? ' Its admins get the email too.' : ''}`}
        />
      )}
    </FormDialog>
  )
}
