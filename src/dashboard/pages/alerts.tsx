import type { ShownAlert } from '../../console/alerts/schemas.ts'
import {
  alertWindowMinutes,
  budgetKinds,
  budgetSpans,
  defaultWindowMinutes,
  metricRules,
} from '../../core/alerts/alerts.ts'
import type { Field } from '../parts/form.tsx'
import { Badge, Notice } from '../parts/notice.tsx'
import { projectColumn, useProjects } from '../parts/project-field.tsx'
import { action, ResourceView, removal } from '../parts/resource.tsx'
import { callApi } from '../state/api.ts'
import { humanize } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'

type Metric = ShownAlert['metric']

/** Thresholds are entered and shown in these units. */
const getUnit = (metric: Metric) => metricRules[metric].unit
const scale = (metric: Metric) => (getUnit(metric) === '%' ? 100 : 1)
const toText = (metric: Metric, value: number) => `${Number((value * scale(metric)).toPrecision(4))} ${getUnit(metric)}`
const isMetric = (text: string): text is Metric => Object.hasOwn(metricRules, text)
const toMetric = (text: string): Metric => (isMetric(text) ? text : 'budget')

const metricChoices = Object.entries(metricRules).map(([metric, { title }]) => [metric, title] as const)
const hints: Readonly<Partial<Record<Metric, string>>> = {
  budget: 'Of the limits in USD per day and month. Usual steps: 50, 80 and 100.',
  model_failures: 'Failed calls of one model as a share of its calls; at least 3 calls.',
  cache_drop: 'Lost part of the cached input of a session (tag session), compared with the four windows before.',
  unpriced: 'Requests of one model whose price, tier or audio the catalog does not know.',
  runaway: 'Requests of conversations without progress, or that spend too fast. The operator sets the bounds.',
}

/** Returns an alert's metric with the budgets that it covers. */
function getTitle({ metric, budget, span }: Pick<ShownAlert, 'metric' | 'budget' | 'span'>): string {
  if (metric !== 'budget') return metricRules[metric].title
  return `Budget: ${budget ?? 'all'}${span === null ? '' : `, per ${span}`}`
}

/** The page of all alerts that the user manages. */
export const AlertsPage = () => <Alerts />

/** Alerts by email and webhook: those of a project, or of a page of all. */
export function Alerts({ projectId }: { readonly projectId?: string }) {
  const alerts = useResource('GET /api/v1/alerts')
  const { names: projects } = useProjects()
  const isOfAll = projectId === undefined
  const delivery = alerts.data?.delivery
  const sendsMail = delivery?.email !== false
  /** Creates an alert, or changes threshold, window and project of one. */
  const save = (isNew: boolean) =>
    action({
      text: () => (isNew ? 'Create alert' : 'Change'),
      label: (alert: ShownAlert | null) => (alert === null ? 'Create alert' : `Change the alert on ${getTitle(alert)}`),
      start: alert => ({
        metric: `${alert?.metric ?? 'budget'}`,
        threshold: alert === null ? '80' : `${Number((alert.threshold * scale(alert.metric)).toPrecision(12))}`,
        window_minutes: `${alert?.window_minutes ?? defaultWindowMinutes}`,
        budget: '',
        span: '',
        project_id: alert?.project_id ?? projectId ?? '',
      }),
      dialog: (alert, { metric }) => ({
        title: alert === null ? 'Create alert' : `Change alert: ${getTitle(alert)}`,
        submit: alert === null ? 'Create' : 'Save',
        fields: [
          ...(alert === null ? creationFields(toMetric(metric)) : []),
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
      perform: async (alert, { metric: name, threshold, window_minutes, budget, span, project_id }) => {
        const metric = toMetric(name)
        const body = {
          threshold: Number(threshold) / scale(metric),
          ...(metricRules[metric].hasWindow ? { window_minutes: Number(window_minutes) } : {}),
          ...(project_id === (alert?.project_id ?? '') ? {} : { project_id: project_id || null }),
        }
        const covered = metric === 'budget' ? { budget: budget || null, span: span || null } : {}
        if (alert === null) await callApi('POST /api/v1/alerts', { body: { ...body, ...covered, metric } })
        else await callApi('PATCH /api/v1/alerts/:id', { params: { id: alert.id }, body })
        return alert === null ? 'Alert created' : 'Alert changed'
      },
    })
  return (
    <ResourceView
      {...(isOfAll ? { page } : {})}
      title="Alerts"
      about={`${sendsMail ? `Owners, and admins of ${isOfAll ? 'its' : 'the'} project, get an email, and webhooks an event,` : 'Webhooks get an event'} when a value reaches its threshold.`}
      what="the alerts"
      resource={alerts}
      rows={({ data }) => (isOfAll ? data : data.filter(({ project_id }) => project_id === projectId))}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Metric', isHeading: true, show: getTitle },
        ...(isOfAll ? projectColumn(projects) : []),
        { name: 'Threshold', isNumber: true, show: ({ metric, threshold }) => toText(metric, threshold) },
        {
          name: 'Window',
          from: 'middle',
          isNumber: true,
          show: ({ metric, window_minutes }) =>
            metricRules[metric].hasWindow ? `${window_minutes} min` : metric === 'spend' ? 'UTC day' : 'period',
        },
        {
          name: 'Value',
          from: 'middle',
          isNumber: true,
          show: ({ metric, value }) => (value === null ? 'none yet' : toText(metric, value)),
        },
        { name: 'Status', show: alert => <Status alert={alert} /> },
      ]}
      empty={['No alerts', 'Create an alert on budgets, failed requests, latency, models or caching.']}
      create={save(true)}
      actions={[sendTest, save(false), remove]}
      before={delivery !== undefined && !delivery.email && delivery.webhooks === 0 && nothingArrives}
    />
  )
}

const subjects: Readonly<Partial<Record<Metric, string>>> = {
  budget: 'budget',
  model_failures: 'model',
  cache_drop: 'session',
  unpriced: 'model',
}

function Status({ alert: { metric, firing, firing_subjects: count } }: { readonly alert: ShownAlert }) {
  if (!firing) return <Badge tone="good">Normal</Badge>
  const subject = subjects[metric]
  return <Badge tone="bad">Firing{subject !== undefined && `: ${getCount(count, subject)}`}</Badge>
}

const getCount = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`

const nothingArrives = (
  <Notice
    tone="warn"
    title="No alert can reach you"
    actions={
      <a class="button small" href={hrefTo('webhooks')}>
        Create webhook
      </a>
    }
  >
    The gateway has no mail server (<code>SMTP_URL</code>), and no enabled webhook receives <code>alert.fired</code> or{' '}
    <code>budget.reached</code>. A webhook can also post to Slack.
  </Notice>
)

const page = {
  title: 'Alerts',
  about: (
    <>
      Thresholds on budgets, failed requests, latency, models and caching. Their receivers are on{' '}
      <a href={hrefTo('webhooks')}>Webhooks</a>.
    </>
  ),
}

const getChoices = (any: string, names: readonly string[]) =>
  [['', any], ...names.map(name => [name, humanize(name)] as const)] as const

const creationFields = (metric: Metric): readonly Field<'metric' | 'budget' | 'span'>[] => [
  { param: 'metric', label: 'Metric', choices: metricChoices },
  ...(metric === 'budget'
    ? [
        { param: 'budget', label: 'Budgets', choices: getChoices('All with a limit', budgetKinds) } as const,
        { param: 'span', label: 'Period', choices: getChoices('Day and month', budgetSpans) } as const,
      ]
    : []),
]

const thresholdFields = (metric: Metric): readonly Field<'threshold' | 'window_minutes'>[] => [
  {
    param: 'threshold',
    label: `Threshold in ${getUnit(metric)}`,
    hint: hints[metric],
    required: true,
    type: 'number',
    step: 'any',
  },
  ...(metricRules[metric].hasWindow
    ? [
        {
          param: 'window_minutes',
          label: `Window in minutes, ${alertWindowMinutes.shortest} to ${alertWindowMinutes.longest}`,
          required: true,
          type: 'number',
        } as const,
      ]
    : []),
]

const sendTest = action<ShownAlert>({
  text: () => 'Send test',
  label: alert => `Send test: ${getTitle(alert)}`,
  perform: async ({ id }) => {
    const { emails, webhooks } = await callApi('POST /api/v1/alerts/:id/test', { params: { id } })
    const parts = [
      emails.sent > 0 && `${getCount(emails.sent, 'email')} sent`,
      emails.failed > 0 && `${getCount(emails.failed, 'email')} failed`,
      webhooks > 0 && `${getCount(webhooks, 'webhook')} called`,
    ].filter(part => part !== false)
    return parts.length === 0 ? 'Nothing sent: no receiver' : parts.join(', ')
  },
})

const remove = removal<ShownAlert>({
  verb: 'Delete',
  name: alert => `the alert on ${getTitle(alert)}`,
  about: ({ metric, threshold }) => `Threshold ${toText(metric, threshold)}: no further emails and events.`,
  remove: ({ id }) => callApi('DELETE /api/v1/alerts/:id', { params: { id } }),
  done: () => 'Alert deleted',
})
