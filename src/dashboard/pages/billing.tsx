import type { ShownBilling } from '../../console/billing/schemas.ts'
import { BillingNotices } from '../parts/account-notices.tsx'
import { InlineForm, useForm } from '../parts/form.tsx'
import { BurnDown, MeterBar } from '../parts/meter.tsx'
import { Badge, Loaded } from '../parts/notice.tsx'
import { Card, Page, showToast } from '../parts/page.tsx'
import { PaymentMethod } from '../parts/payment-method.tsx'
import { action, ResourceView, useActions } from '../parts/resource.tsx'
import { callApi } from '../state/api.ts'
import { dateTime, formatCount, formatDate, formatUsd, humanize, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
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
  const { plan, plan_after_cycle: next, plans, cycle } = billing
  return (
    <Card
      title="Plan"
      about={cycle === null ? undefined : `Cycle of ${formatDate(cycle.starts_at)} to ${formatDate(cycle.ends_at)}`}
    >
      <div class="plans">
        {(['evaluation', 'usage'] as const).map(name => {
          const isCurrent = name === plan
          const limits = isCurrent ? (enforced ?? plans[name]) : plans[name]
          const isOverridden = limitNames.some(limit => limits[limit] !== plans[name][limit])
          return (
            <div key={name} class={`plan ${isCurrent ? 'current' : ''}`}>
              <h3>
                {humanize(name)} {isCurrent && <Badge tone="good">Current plan</Badge>}
              </h3>
              <p class="figure">{name === 'evaluation' ? 'Free' : 'Pay as you go'}</p>
              <ul>
                <li>{formatCount(limits.daily_tokens)} tokens per day</li>
                <li>up to {formatUsd(limits.daily_cost_usd)} per day</li>
                <li>{limits.requests_per_minute} requests per minute</li>
                <li>
                  {limits.concurrent_requests} concurrent {limits.concurrent_requests === 1 ? 'request' : 'requests'}
                </li>
              </ul>
              {isOverridden && (
                <p class="hint">
                  Enforced for this account. The operator changed limits; the plan itself has{' '}
                  {formatCount(plans[name].daily_tokens)} tokens and {formatUsd(plans[name].daily_cost_usd)} per day,{' '}
                  {plans[name].requests_per_minute} requests per minute and {plans[name].concurrent_requests}{' '}
                  concurrent.
                </p>
              )}
              {!isCurrent && name === 'usage' && billing.upgraded_by === 'operator' && (
                <p class="hint">
                  The operator of this gateway upgrades accounts:{' '}
                  <code>
                    {rules?.operator_command} accounts plan {user.value?.email} usage
                  </code>
                </p>
              )}
              {!isCurrent && name === 'usage' && billing.upgraded_by === 'owner' && (
                <>
                  {buttons(billing, [move('upgrade', onChange)], 'primary')}
                  {needsMethod(billing) && <p class="hint">Add a payment method first, below.</p>}
                </>
              )}
              {!isCurrent &&
                name === 'evaluation' &&
                next === 'usage' &&
                buttons(billing, [move('downgrade', onChange)], '')}
            </div>
          )
        })}
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
