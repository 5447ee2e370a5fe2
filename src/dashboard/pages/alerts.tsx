import type { ShownAlert } from '../../console/alerts/schemas.ts'
import { alertWindowMinutes, defaultWindowMinutes } from '../../core/alerts/alerts.ts'
import type { Field } from '../parts/form.tsx'
import { Badge } from '../parts/notice.tsx'
import { projectColumn, useProjects } from '../parts/project-field.tsx'
import { action, ResourceView } from '../parts/resource.tsx'
import { callApi } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { useRegistration } from '../state/open-data.ts'
import { useResource } from '../state/resource.ts'

type Metric = ShownAlert['metric']

const names: Readonly<Record<Metric, string>> = {
  spend: 'Spend per UTC day',
  error_rate: 'Failed requests',
  latency: 'Latency, p95',
}
/** Thresholds are entered and shown in these units. */
const units: Readonly<Record<Metric, string>> = { spend: 'USD', error_rate: '%', latency: 'ms' }
const scale = (metric: Metric) => (metric === 'error_rate' ? 100 : 1)
const toText = (metric: Metric, value: number) => `${Number((value * scale(metric)).toPrecision(4))} ${units[metric]}`
const toMetric = (text: string): Metric => (text === 'latency' || text === 'error_rate' ? text : 'spend')

/** The page of all alerts that the user manages. */
export const AlertsPage = () => <Alerts />

/** Alerts by email and webhook: those of a project, or of a page of all. */
export function Alerts({ projectId }: { readonly projectId?: string }) {
  const alerts = useResource('GET /api/v1/alerts')
  const { names: projects } = useProjects()
  const isOfAll = projectId === undefined
  // The same mail server sends both.
  const sendsMail = useRegistration()?.verifies_email !== false
  /** Creates an alert, or changes threshold, window and project of one. */
  const save = (isNew: boolean) =>
    action({
      text: () => (isNew ? 'Create alert' : 'Change'),
      label: (alert: ShownAlert | null) =>
        alert === null ? 'Create alert' : `Change the alert on ${names[alert.metric]}`,
      start: alert => ({
        metric: `${alert?.metric ?? 'spend'}`,
        threshold: alert === null ? '' : `${Number((alert.threshold * scale(alert.metric)).toPrecision(12))}`,
        window_minutes: `${alert?.window_minutes ?? defaultWindowMinutes}`,
        project_id: alert?.project_id ?? projectId ?? '',
      }),
      dialog: (alert, { metric, threshold }) => ({
        title: alert === null ? 'Create alert' : `Change alert: ${names[alert.metric]}`,
        submit: alert === null ? 'Create' : 'Save',
        isReady: Number(threshold) > 0,
        fields: [
          ...(alert === null ? [{ param: 'metric', label: 'Metric', choices: Object.entries(names) } as const] : []),
          ...thresholdFields(toMetric(metric)),
          ...(isOfAll
            ? [
                {
                  param: 'project_id',
                  label: 'Project',
                  choices: 'projects',
                  hint: `With a project, only its requests count.${sendsMail ? ' Its admins get the email too.' : ''}`,
                } as const,
              ]
            : []),
        ],
      }),
      perform: async (alert, { metric, threshold, window_minutes, project_id }) => {
        const body = {
          threshold: Number(threshold) / scale(toMetric(metric)),
          ...(metric === 'spend' ? {} : { window_minutes: Number(window_minutes) }),
          ...(project_id === (alert?.project_id ?? '') ? {} : { project_id: project_id || null }),
        }
        if (alert === null) await callApi('POST /api/v1/alerts', { body: { ...body, metric } })
        else await callApi('PATCH /api/v1/alerts/:id', { params: { id: alert.id }, body })
        return alert === null ? 'Alert created' : 'Alert changed'
      },
    })
  return (
    <ResourceView
      {...(isOfAll ? { page } : {})}
      title="Alerts"
      about={`${sendsMail ? `Owners, and admins of ${isOfAll ? 'its' : 'the'} project, get an email, and webhooks an event,` : 'Webhooks get an event'} when a value reaches its threshold.${sendsMail ? '' : ' Email is not configured.'}`}
      what="the alerts"
      resource={alerts}
      rows={({ data }) => (isOfAll ? data : data.filter(({ project_id }) => project_id === projectId))}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Metric', isHeading: true, show: ({ metric }) => names[metric] },
        ...(isOfAll ? projectColumn(projects) : []),
        { name: 'Threshold', isNumber: true, show: ({ metric, threshold }) => toText(metric, threshold) },
        {
          name: 'Window',
          from: 'middle',
          isNumber: true,
          show: ({ metric, window_minutes }) => (metric === 'spend' ? 'UTC day' : `${window_minutes} min`),
        },
        {
          name: 'Value',
          isNumber: true,
          show: ({ metric, value }) => (value === null ? 'too few requests' : toText(metric, value)),
        },
        {
          name: 'Status',
          show: ({ firing }) => (firing ? <Badge tone="bad">Firing</Badge> : <Badge tone="good">Normal</Badge>),
        },
      ]}
      empty={['No alerts', 'Create an alert on spend, failed requests or latency.']}
      create={save(true)}
      actions={[save(false), remove]}
    />
  )
}

const page = {
  title: 'Alerts',
  about: (
    <>
      Thresholds on spend, failed requests and latency. Their receivers are on <a href={hrefTo('webhooks')}>Webhooks</a>
      .
    </>
  ),
}

const thresholdFields = (metric: Metric): readonly Field<'threshold' | 'window_minutes'>[] => [
  { param: 'threshold', label: `Threshold in ${units[metric]}`, required: true, type: 'number', step: 'any' },
  ...(metric === 'spend'
    ? []
    : [
        {
          param: 'window_minutes',
          label: `Window in minutes, ${alertWindowMinutes.shortest} to ${alertWindowMinutes.longest}`,
          required: true,
          type: 'number',
        } as const,
      ]),
]

const remove = action<ShownAlert>({
  text: () => 'Delete',
  label: ({ metric }) => `Delete the alert on ${names[metric]}`,
  isDangerous: true,
  dialog: ({ metric, threshold }) => ({
    title: 'Delete this alert?',
    submit: 'Delete',
    about: (
      <p>
        {names[metric]}, {toText(metric, threshold)}: no further emails and events.
      </p>
    ),
  }),
  perform: async ({ id }) => {
    await callApi('DELETE /api/v1/alerts/:id', { params: { id } })
    return 'Alert deleted'
  },
})
