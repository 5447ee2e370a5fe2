import { useState } from 'preact/hooks'
import { Button } from '../parts/button.tsx'
import { Icon } from '../parts/icon.tsx'
import { InvoiceBreakdown } from '../parts/invoice-breakdown.tsx'
import { FailureNotice, Loaded } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateOf, formatCount, formatUsd, usdExact } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { currentAccount } from '../state/session.ts'
import { InvoiceStatusBadge } from './billing.tsx'

/** An invoice on a separate page, for printing. */
export function InvoicePage() {
  // Constant: each invoice has a page of its own, and the URL may already name the next page.
  const [id] = useState(() => hashRoute.peek().path[1] ?? '')
  const invoice = useResource('GET /api/v1/billing/invoices/:id', { params: { id } })
  const billing = useResource('GET /api/v1/billing')
  const isPayable = invoice.data?.status === 'unpaid' && billing.data?.collected_by === 'stripe'
  // On Stripe's page, because a bank may require the owner to confirm the payment.
  const paying = useAction(async () => {
    location.assign((await callApi('POST /api/v1/billing/invoices/:id/payment-page', { params: { id }, body: {} })).url)
  })
  return (
    <Page
      title="Invoice"
      actions={
        <>
          <a class="button" href={hrefTo('billing')}>
            All invoices
          </a>
          {isPayable && (
            <Button text="Pay invoice" look="primary" disabled={paying.isBusy} onClick={() => void paying.run()} />
          )}
          <Button look={isPayable ? '' : 'primary'} onClick={() => print()}>
            <Icon name="print" size={16} /> Print
          </Button>
        </>
      }
    >
      {paying.failure !== null && <FailureNotice failure={paying.failure} />}
      <Loaded resource={invoice} what="the invoice" lines={8}>
        {found => (
          <>
            <article class="card invoice">
              <dl class="pairs">
                <div>
                  <dt>Invoice</dt>
                  <dd class="mono">{found.id}</dd>
                </div>
                <div>
                  <dt>For</dt>
                  <dd>{currentAccount.value?.name}</dd>
                </div>
                <div>
                  <dt>Period</dt>
                  <dd>
                    {dateOf(found.period.starts_at)} – {dateOf(found.period.ends_at)}
                  </dd>
                </div>
                <div>
                  <dt>Issued</dt>
                  <dd>{dateOf(found.issued_at)}</dd>
                </div>
                <div>
                  <dt>Status</dt>
                  <dd>
                    <InvoiceStatusBadge status={found.status} />
                    {found.paid_at !== null && ` on ${dateOf(found.paid_at)}`}
                  </dd>
                </div>
              </dl>
              <Table
                caption="Invoice lines by model"
                rows={found.lines}
                rowKey={({ model }) => model}
                columns={[
                  { name: 'Model', isHeading: true, show: line => line.model },
                  { name: 'Requests', isNumber: true, show: line => formatCount(line.requests) },
                  { name: 'Input', from: 'middle', isNumber: true, show: line => formatCount(line.input_tokens) },
                  { name: 'Cached', from: 'wide', isNumber: true, show: line => formatCount(line.cached_input_tokens) },
                  { name: 'Output', from: 'middle', isNumber: true, show: line => formatCount(line.output_tokens) },
                  { name: 'Amount', isNumber: true, show: line => usdExact(line.cost_usd) },
                ]}
              />
              <p class="invoice-total">
                Total <strong>{usdExact(found.total_usd)}</strong>
                <span class="hint block">Amount charged: {formatUsd(found.collected_usd)} (rounded to cents)</span>
              </p>
            </article>
            <InvoiceBreakdown id={found.id} />
          </>
        )}
      </Loaded>
    </Page>
  )
}
