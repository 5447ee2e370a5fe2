import { useState } from 'preact/hooks'
import type { ShownBilling } from '../../modules/billing/shapes.ts'
import { Badge } from '../parts/badge.tsx'
import { BillingNotices } from '../parts/billing-notices.tsx'
import { Confirm } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { Meter } from '../parts/meter.tsx'
import { Empty, FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { say } from '../parts/said.tsx'
import { Table } from '../parts/table.tsx'
import { useAction } from '../state/action.ts'
import { call } from '../state/api.ts'
import { ago, count, dateOf, dateTime, usd, words } from '../state/format.ts'
import { hrefTo } from '../state/place.ts'
import { type Resource, useResource } from '../state/resource.ts'

export function Billing() {
  const billing = useResource('GET /api/v1/billing')
  return (
    <Page title="Billing" about="Usage is billed in cycles of 30 days, to a hundred-millionth of a dollar a request.">
      <BillingNotices isLinked={false} />
      <Loaded resource={billing} what="billing" lines={6}>
        {state => (
          <>
            <Plan billing={state} onChange={billing.set} />
            <div class="columns">
              <Method billing={state} resource={billing} />
              <SoftCap billing={state} onChange={billing.set} />
            </div>
          </>
        )}
      </Loaded>
      <Invoices />
    </Page>
  )
}

type Changed = { readonly billing: ShownBilling; readonly onChange: (billing: ShownBilling) => void }

function Plan({ billing, onChange }: Changed) {
  const [asks, setAsks] = useState<'upgrade' | 'downgrade' | null>(null)
  const { plan, plan_after_cycle: next, plans, cycle, version } = billing
  const needsMethod = billing.collected_by === 'stripe' && billing.payment_method === null
  return (
    <Card
      title="Plan"
      about={cycle === null ? undefined : `Cycle of ${dateOf(cycle.starts_at)} to ${dateOf(cycle.ends_at)}`}
    >
      <div class="plans">
        {(['evaluation', 'usage'] as const).map(name => {
          const limits = plans[name]
          const isCurrent = name === plan
          return (
            <div key={name} class={`plan ${isCurrent ? 'current' : ''}`}>
              <h3>
                {words(name)} {isCurrent && <Badge tone="good">your plan</Badge>}
              </h3>
              <p class="figure">{name === 'evaluation' ? 'Free' : 'By usage'}</p>
              <ul>
                <li>{count(limits.daily_tokens)} tokens a day</li>
                <li>{usd(limits.daily_cost_usd)} a day at most</li>
                <li>{limits.requests_per_minute} requests a minute</li>
                <li>
                  {limits.concurrent_requests} {limits.concurrent_requests === 1 ? 'seat' : 'seats'}
                </li>
              </ul>
              {!isCurrent && name === 'usage' && billing.collected_by === 'manual' && (
                <p class="hint">
                  This gateway has no payment provider. Ask its operator for an upgrade: <code>accounts plan</code>.
                </p>
              )}
              {!isCurrent && name === 'usage' && billing.collected_by !== 'manual' && (
                <>
                  <button
                    type="button"
                    class="button primary"
                    disabled={needsMethod}
                    onClick={() => setAsks('upgrade')}
                  >
                    Upgrade
                  </button>
                  {needsMethod && <p class="hint">Add a payment method first, below.</p>}
                </>
              )}
              {!isCurrent && name === 'evaluation' && next === 'usage' && (
                <button type="button" class="button" onClick={() => setAsks('downgrade')}>
                  Downgrade
                </button>
              )}
            </div>
          )
        })}
      </div>
      {cycle !== null && (
        <p>
          <strong>{usd(cycle.cost_usd)}</strong> so far in this cycle. It is invoiced {ago(cycle.ends_at)}.
        </p>
      )}
      {next !== plan && (
        <p>
          The plan becomes <strong>{next}</strong> when the cycle ends.
        </p>
      )}
      {asks === 'upgrade' && (
        <Confirm
          title="Upgrade to the plan “usage”?"
          action="Upgrade, charges begin now"
          perform={async () => {
            onChange(await call('POST /api/v1/billing/upgrade', { body: { confirm: true, version } }))
            say('You are on the plan “usage”.')
          }}
          onClose={() => setAsks(null)}
        >
          <p>
            Charges begin at once: each request costs what its tokens cost, at most {usd(plans.usage.daily_cost_usd)} a
            day. You are invoiced every 30 days, and can go back when a cycle ends.
          </p>
        </Confirm>
      )}
      {asks === 'downgrade' && (
        <Confirm
          title="Back to the plan “evaluation”?"
          action="Downgrade at the end of the cycle"
          perform={async () => {
            onChange(await call('POST /api/v1/billing/downgrade', { body: { confirm: true, version } }))
            say('The plan changes when the cycle ends.')
          }}
          onClose={() => setAsks(null)}
        >
          <p>
            Until the cycle ends everything stays as it is; then the smaller limits hold, and nothing costs anything.
          </p>
        </Confirm>
      )}
    </Card>
  )
}

function Method({ billing, resource }: { readonly billing: ShownBilling; readonly resource: Resource<ShownBilling> }) {
  const [stripeId, setStripeId] = useState('')
  const [isRemoving, setRemoving] = useState(false)
  const { payment_method: method } = billing
  const adding = useAction(async () => {
    const body = stripeId.trim() === '' ? {} : { payment_method: stripeId.trim() }
    resource.set(await call('PUT /api/v1/billing/payment-method', { body }))
    setStripeId('')
    say('The payment method is set.')
  })
  const asksForId = billing.collected_by === 'stripe'
  return (
    <Card title="Payment method">
      {method === null ? (
        <Empty title="None">
          {billing.plan === 'evaluation'
            ? 'The plan “evaluation” needs none.'
            : billing.grace_ends_at === null
              ? 'Nothing is refused for want of one.'
              : 'An hour after the last one was removed, requests are refused.'}
        </Empty>
      ) : (
        <p>
          <strong>
            {method.kind === 'manual'
              ? 'By agreement'
              : `${words(method.brand ?? 'card')} ···· ${method.last_four ?? ''}`}
          </strong>
          {method.added_at !== null && <span class="quiet"> since {dateOf(method.added_at)}</span>}
        </p>
      )}
      <form
        onSubmit={event => {
          event.preventDefault()
          void adding.run()
        }}
      >
        {adding.failure !== null && adding.failure.param === null && <FailureNotice failure={adding.failure} />}
        {asksForId && (
          <TextField
            label={method === null ? 'Stripe payment method' : 'Another Stripe payment method'}
            autocomplete="off"
            placeholder="pm_…"
            value={stripeId}
            onText={setStripeId}
            param="payment_method"
            failure={adding.failure}
            hint="The id that Stripe gave when the card was set up. The card’s number itself never comes here."
          />
        )}
        <div class="actions">
          {(method === null || asksForId) && (
            <button
              type="submit"
              class="button primary"
              disabled={adding.isBusy || (asksForId && stripeId.trim() === '')}
            >
              {method === null ? 'Add a payment method' : 'Put it in place'}
            </button>
          )}
          {method !== null && (
            <button type="button" class="button danger-text" onClick={() => setRemoving(true)}>
              Remove
            </button>
          )}
        </div>
      </form>
      {isRemoving && (
        <Confirm
          title="Remove the payment method?"
          action="Remove"
          isDangerous
          perform={async () => {
            await call('DELETE /api/v1/billing/payment-method')
            resource.reload()
            say('The payment method is removed. An hour of grace runs.')
          }}
          onClose={() => setRemoving(false)}
        >
          <p>
            An hour of grace begins. After it requests are refused with 402 until a payment method is back. What was
            used is still invoiced.
          </p>
        </Confirm>
      )}
    </Card>
  )
}

function SoftCap({ billing, onChange }: Changed) {
  const cap = billing.soft_cap
  const [text, setText] = useState(cap === null ? '' : String(cap.monthly_usd))
  const saving = useAction(async (monthly_usd: number | null) => {
    onChange(await call('PUT /api/v1/billing/soft-cap', { body: { monthly_usd } }))
    if (monthly_usd === null) setText('')
    say(monthly_usd === null ? 'There is no soft cap now.' : `The soft cap is ${usd(monthly_usd)} a month.`)
  })
  return (
    <Card
      title="Monthly soft cap"
      about="Nothing is refused. From 80 % on answers carry a warning, and automatic routing leans to cheaper models."
    >
      {cap !== null && <Meter label="This month" used={cap.used_usd} limit={cap.monthly_usd} show={usd} />}
      {saving.failure !== null && saving.failure.param === null && <FailureNotice failure={saving.failure} />}
      <form
        onSubmit={event => {
          event.preventDefault()
          void saving.run(Number(text))
        }}
      >
        <TextField
          label="US dollars a month"
          type="number"
          min="0"
          step="any"
          required
          value={text}
          onText={setText}
          param="monthly_usd"
          failure={saving.failure}
        />
        <div class="actions">
          <button type="submit" class="button" disabled={saving.isBusy || text.trim() === ''}>
            Set the cap
          </button>
          {cap !== null && (
            <button
              type="button"
              class="button danger-text"
              disabled={saving.isBusy}
              onClick={() => void saving.run(null)}
            >
              Take it away
            </button>
          )}
        </div>
      </form>
    </Card>
  )
}

function Invoices() {
  const invoices = useResource('GET /api/v1/billing/invoices')
  return (
    <Card title="Invoices">
      <Loaded resource={invoices} what="invoices">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No invoices yet">The first comes when a cycle of 30 days ends.</Empty>
          ) : (
            <Table
              caption="Invoices, newest first"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                {
                  name: 'Period',
                  isHeading: true,
                  show: one => (
                    <a href={hrefTo(`billing/${one.id}`)}>
                      {dateOf(one.period.starts_at)} – {dateOf(one.period.ends_at)}
                    </a>
                  ),
                },
                { name: 'Status', show: one => <InvoiceStatus status={one.status} /> },
                { name: 'Issued', from: 'middle', show: one => dateTime(one.issued_at) },
                { name: 'Total', isNumber: true, show: one => usd(one.total_usd) },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  )
}

export function InvoiceStatus({ status }: { readonly status: string }) {
  return <Badge tone={status === 'paid' ? 'good' : status === 'open' ? 'warn' : 'plain'}>{words(status)}</Badge>
}
