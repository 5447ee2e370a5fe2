import { useState } from 'preact/hooks'
import type { ShownBreakdown } from '../../console/billing/schemas.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { SelectField, TextField } from '../parts/field.tsx'
import { Empty, FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Pairs } from '../parts/page.tsx'
import { ObjectPage } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { callApi } from '../state/api.ts'
import { saveRows } from '../state/export.ts'
import { dialectNames, formatDate, formatUsd, usdExact } from '../state/format.ts'
import { useAction, useResource } from '../state/resource.ts'
import { currentAccount } from '../state/session.ts'
import { InvoiceStatusBadge } from './billing.tsx'

/** An invoice on a separate page, for printing. */
export function InvoicePage({ id }: { readonly id: string }) {
  const invoice = useResource('GET /api/v1/billing/invoices/:id', { params: { id } })
  const billing = useResource('GET /api/v1/billing')
  const isPayable = invoice.data?.status === 'unpaid' && billing.data?.collected_by === 'stripe'
  // On Stripe's page, because a bank may require the owner to confirm the payment.
  const paying = useAction(async () => {
    location.assign((await callApi('POST /api/v1/billing/invoices/:id/payment-page', { params: { id }, body: {} })).url)
  })
  return (
    <ObjectPage
      title="Invoice"
      all={['billing', 'All invoices']}
      resource={invoice}
      what="the invoice"
      missing={['No such invoice', 'It belongs to another account, or the ID is wrong.']}
      controls={
        <>
          {isPayable && (
            <Button text="Pay invoice" look="primary" disabled={paying.isBusy} onClick={() => void paying.run()} />
          )}
          <Button look={isPayable ? '' : 'primary'} onClick={() => print()}>
            <Icon name="print" size={16} /> Print
          </Button>
        </>
      }
    >
      {found => (
        <>
          {paying.failure !== null && <FailureNotice failure={paying.failure} />}
          <article class="card invoice">
            <Pairs
              of={[
                ['Invoice', <span class="mono">{found.id}</span>],
                ['For', currentAccount.value?.name],
                [
                  'Period',
                  <>
                    {formatDate(found.period.starts_at)} – {formatDate(found.period.ends_at)}
                  </>,
                ],
                ['Issued', formatDate(found.issued_at)],
                [
                  'Status',
                  <>
                    <InvoiceStatusBadge status={found.status} />
                    {found.paid_at !== null && ` on ${formatDate(found.paid_at)}`}
                  </>,
                ],
              ]}
            />
            <Table
              isOrdered
              caption="Invoice lines by model"
              rows={found.lines}
              rowKey={({ model }) => model}
              columns={[
                { name: 'Model', isHeading: true, show: line => line.model },
                { figure: 'requests', by: line => line.requests },
                { figure: 'inputTokens', from: 'middle', by: line => line.input_tokens },
                { figure: 'cachedTokens', from: 'wide', by: line => line.cached_input_tokens },
                { figure: 'outputTokens', from: 'middle', by: line => line.output_tokens },
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
    </ObjectPage>
  )
}

const titles = { key: 'Key', tag: 'Tag', member: 'Member', dialect: 'Dialect' } as const
type Dimension = keyof typeof titles
const isDimension = (name: string): name is Dimension => Object.hasOwn(titles, name)

function InvoiceBreakdown({ id }: { readonly id: string }) {
  const [by, setBy] = useState<Dimension>('key')
  const [tag, setTag] = useState('')
  const query = { by, ...(by === 'tag' ? { tag } : {}) }
  const isReady = by !== 'tag' || tag !== ''
  const breakdown = useResource('GET /api/v1/billing/invoices/:id/breakdown', {
    params: { id },
    query,
    when: isReady,
  })
  return (
    <Card
      title="Breakdown"
      class="breakdown"
      about="The lines add up to the total of the invoice."
      actions={
        <>
          <SelectField
            label="By"
            value={by}
            onChoice={name => isDimension(name) && setBy(name)}
            choices={Object.entries(titles)}
          />
          {by === 'tag' && <TextField isWhole label="Tag name" placeholder="team" value={tag} onText={setTag} />}
        </>
      }
    >
      {isReady ? (
        <Loaded resource={breakdown} what="the breakdown" lines={6}>
          {found => <Lines found={found} title={titles[by]} />}
        </Loaded>
      ) : (
        <Empty title="No tag name">Enter a tag name, such as team, to see the cost of each of its values.</Empty>
      )}
    </Card>
  )
}

type Line = ShownBreakdown['lines'][number]
type LinesProps = { readonly found: ShownBreakdown; readonly title: string }

function Lines({ found: { invoice_id, by, tag, lines }, title }: LinesProps) {
  if (lines.length === 0) return <Empty title="No usage">The invoice has no lines.</Empty>
  const fileName = `invoice-${invoice_id}-by-${tag ?? by}.csv`
  return (
    <>
      <Table
        isOrdered
        caption={`Invoice by ${title}`}
        rows={lines}
        rowKey={({ kind, id }) => `${kind} ${id}`}
        columns={[
          { name: title, isHeading: true, show: line => <span class="break">{formatLineName(by, line)}</span> },
          { figure: 'requests', by: line => line.requests },
          { figure: 'inputTokens', from: 'middle', by: line => line.input_tokens },
          { figure: 'outputTokens', from: 'middle', by: line => line.output_tokens },
          { name: 'Amount', isNumber: true, show: line => usdExact(line.cost_usd) },
        ]}
      />
      <div class="actions">
        <Button text="Export CSV" look="small" onClick={() => saveRows(fileName, lines, csvFields)} />
      </div>
    </>
  )
}

const kindWords = {
  others: 'All others',
  untagged: 'Without this tag',
  correction: 'Usage that arrived late',
} as const

function formatLineName(by: ShownBreakdown['by'], { kind, id, name }: Line): string {
  if (kind !== 'usage') return kindWords[kind]
  if (by === 'dialect' && id !== null && isDialect(id)) return dialectNames[id]
  return name ?? id ?? 'Unknown'
}

const isDialect = (id: string): id is keyof typeof dialectNames => Object.hasOwn(dialectNames, id)

const csvFields = ['kind', 'id', 'name', 'requests', 'input_tokens', 'output_tokens', 'cost_usd'] as const
