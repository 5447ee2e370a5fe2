import type { ShownBilling } from '../../console/billing/schemas.ts'
import { BillingNotices } from '../parts/account-notices.tsx'
import { InlineForm, useForm } from '../parts/form.tsx'
import { BurnDown, MeterBar } from '../parts/meter.tsx'
import { Badge, Loaded } from '../parts/notice.tsx'
import { Card, Page, showToast } from '../parts/page.tsx'
import { PaymentMethod } from '../parts/payment-method.tsx'
import { action, ResourceView, useActions } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { callApi } from '../state/api.ts'
import { dateTime, formatCount, formatDate, formatUsd, humanize, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { limitLabels } from '../state/keys.ts'
import { useRegistration, useResource } from '../state/resource.ts'
import { user } from '../state/session.ts'

export function Billing() {
  const billing = useResource('GET /api/v1/billing')
  return (
    <Page title="Billing" hint="Usage is billed per request in 30-day cycles.">
      <BillingNotices isLinked={false} />
      <Loaded resource={billing} what="billing" lines={6}>
        {state => (
          <>
            <Plan billing={state} onChange={billing.set} />
            <div class="columns">
              {state.collected_by === 'stripe' && <PaymentMethod billing={state} resource={billing} />}
              <SoftCap billing={state} onChange={billing.set} />
            </div>
          </>
        )}
      </Loaded>
      <Invoices />
    </Page>
  )
}

const limitNames = ['daily_tokens', 'daily_cost_usd', 'requests_per_minute', 'concurrent_requests'] as const

type PlanRow = 'price' | (typeof limitNames)[number]

type Changed = { readonly billing: ShownBilling; readonly onChange: (billing: ShownBilling) => void }

const needsMethod = ({ collected_by, payment_method }: ShownBilling) =>
  collected_by === 'stripe' && payment_method === null

/** Moves the account to another plan, and tells when. */
const move = (to: 'upgrade' | 'downgrade', onChange: Changed['onChange']) =>
  action<ShownBilling>({
    text: () => humanize(to),
    isReady: billing => to === 'downgrade' || !needsMethod(billing),
    dialog: ({ plans, collected_by }) =>
      to === 'upgrade'
        ? {
            title: 'Upgrade to the Usage plan?',
            submit: 'Upgrade and start billing',
            about: (
              <p>
                Billing starts immediately; each request is charged by tokens, up to{' '}
                {formatUsd(plans.usage.daily_cost_usd)} per day. You are invoiced every 30 days and can downgrade at the
                end of a cycle.
                {collected_by === 'manual' && ' The operator of this gateway collects the payment.'}
              </p>
            ),
          }
        : {
            title: 'Downgrade to the Evaluation plan?',
            submit: 'Downgrade',
            about: <p>Nothing changes until the cycle ends. Then lower limits apply and usage is free.</p>,
          },
    perform: async ({ version }) => {
      onChange(await callApi(`POST /api/v1/billing/${to}`, { body: { confirm: true, version } }))
      return to === 'upgrade' ? 'Plan changed to Usage' : 'Downgrade scheduled for the end of the cycle'
    },
  })

function Plan({ billing, onChange }: Changed) {
  const { buttons, dialogs } = useActions<ShownBilling>(() => undefined)
  // Overrides of the operator included.
  const enforced = useResource('GET /api/v1/account').data?.limits
  const rules = useRegistration()
  const { plan, plan_after_cycle: next, plans, cycle, upgraded_by: upgrader } = billing
  const isOverridden = enforced !== undefined && limitNames.some(limit => enforced[limit] !== plans[plan][limit])
  const show = (row: PlanRow, name: typeof plan) => {
    if (row === 'price') return name === 'evaluation' ? 'Free' : 'Pay as you go'
    const [own, limit] = [plans[name][row], (name === plan ? (enforced ?? plans[name]) : plans[name])[row]]
    const format = row === 'daily_cost_usd' ? formatUsd : formatCount
    return (
      <>
        {format(limit)}
        {limit !== own && <span class="block hint">plan: {format(own)}</span>}
      </>
    )
  }
  return (
    <Card
      title="Plan"
      about={cycle === null ? undefined : `Cycle of ${formatDate(cycle.starts_at)} to ${formatDate(cycle.ends_at)}`}
    >
      <Table
        isOrdered
        caption="Plans"
        rows={['price', ...limitNames] satisfies PlanRow[]}
        rowKey={row => row}
        columns={[
          { name: 'Limit', isHeading: true, show: row => (row === 'price' ? 'Price' : limitLabels[row]) },
          ...(['evaluation', 'usage'] as const).map(name => ({
            name: `${humanize(name)}${name === plan ? ' (current)' : ''}`,
            isNumber: true,
            show: (row: PlanRow) => show(row, name),
          })),
        ]}
      />
      {isOverridden && <p class="hint">Enforced for this account: the operator changed limits of the plan.</p>}
      {plan === 'evaluation' && upgrader === 'operator' && (
        <p class="hint">
          The operator of this gateway upgrades accounts:{' '}
          <code>
            {rules?.operator_command} accounts plan {user.value?.email} usage
          </code>
        </p>
      )}
      <div class="actions">
        {plan === 'evaluation' && upgrader === 'owner' && buttons(billing, [move('upgrade', onChange)], 'primary')}
        {plan === 'usage' && next === 'usage' && buttons(billing, [move('downgrade', onChange)], '')}
        {plan === 'evaluation' && needsMethod(billing) && <p class="hint">Add a payment method first, below.</p>}
      </div>
      {cycle !== null && (
        <p>
          <strong>{formatUsd(cycle.cost_usd)}</strong> so far in this cycle. Invoice {relativeTime(cycle.ends_at)}.
        </p>
      )}
      {next !== plan && (
        <p>
          Changes to <strong>{next}</strong> at the end of the cycle.
        </p>
      )}
      {dialogs}
    </Card>
  )
}

function SoftCap({ billing, onChange }: Changed) {
  const cap = billing.soft_cap
  const change = async (monthly_usd: number | null) => {
    onChange(await callApi('PUT /api/v1/billing/soft-cap', { body: { monthly_usd } }))
    return monthly_usd === null ? 'Soft cap removed' : `Soft cap set to ${formatUsd(monthly_usd)}`
  }
  const form = useForm({ monthly_usd: cap === null ? '' : String(cap.monthly_usd) }, async ({ monthly_usd }) =>
    showToast(await change(Number(monthly_usd))),
  )
  const { buttons, failure } = useActions<null>(() => form.set({ monthly_usd: '' }))
  const remove = action<null>({ text: () => 'Remove soft cap', isDangerous: true, perform: () => change(null) })
  return (
    <Card
      title="Monthly soft cap"
      about="Requests are never blocked. From 80%, responses include a warning and automatic routing prefers cheaper models."
    >
      {cap !== null && (
        <MeterBar
          label={cap.period === 'billing_cycle' ? 'This billing cycle' : 'This calendar month (UTC)'}
          used={cap.used_usd}
          limit={cap.monthly_usd}
          show={formatUsd}
          words="used"
          period={cap.period === 'billing_cycle' ? undefined : 'month'}
        />
      )}
      {cap?.period === 'calendar_month' && <BurnDown limit={cap.monthly_usd} of={{}} />}
      <p class="hint">
        {billing.cycle === null
          ? 'Counted per calendar month, from the first at 00:00 UTC.'
          : `Counted per 30-day billing cycle. This one ends on ${formatDate(billing.cycle.ends_at)}.`}{' '}
        Alerts on spend are on the <a href={hrefTo('alerts')}>Alerts</a> page.
      </p>
      {failure}
      <InlineForm
        form={form}
        fields={[
          {
            param: 'monthly_usd',
            label: 'US dollars per month',
            type: 'number',
            min: '0',
            step: 'any',
            required: true,
          },
        ]}
        submit={['Save soft cap', 'Save soft cap']}
        look=""
        tools={cap !== null && buttons(null, [remove], '')}
      />
    </Card>
  )
}

function Invoices() {
  return (
    <ResourceView
      title="Invoices"
      caption="Invoices, newest first"
      what="invoices"
      resource={useResource('GET /api/v1/billing/invoices')}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        {
          name: 'Period',
          isHeading: true,
          show: ({ id, period }) => (
            <a href={hrefTo(`billing/${id}`)}>
              {formatDate(period.starts_at)} – {formatDate(period.ends_at)}
            </a>
          ),
        },
        { name: 'Status', show: ({ status }) => <InvoiceStatusBadge status={status} /> },
        { name: 'Issued', from: 'middle', show: ({ issued_at: at }) => dateTime(at) },
        { name: 'Total', isNumber: true, show: ({ total_usd: usd }) => formatUsd(usd) },
      ]}
      empty={['No invoices yet', 'The first invoice is created when a 30-day cycle ends.']}
    />
  )
}

export function InvoiceStatusBadge({ status }: { readonly status: string }) {
  return <Badge tone={status === 'paid' ? 'good' : status === 'open' ? 'warn' : 'plain'}>{humanize(status)}</Badge>
}
