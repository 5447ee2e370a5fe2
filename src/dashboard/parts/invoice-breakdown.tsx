/** An invoice by key, tag, member or API form. The lines add up to the invoice. */

import { useState } from 'preact/hooks'
import type { ShownBreakdown } from '../../console/billing/schemas.ts'
import { saveCsv } from '../state/export.ts'
import { dialectNames, formatCount, usdExact } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { Button } from './button.tsx'
import { CommitField, SelectField } from './field.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { Table } from './table.tsx'

const titles = { key: 'Key', tag: 'Tag', member: 'Member', dialect: 'Dialect' } as const
type Dimension = keyof typeof titles
const isDimension = (name: string): name is Dimension => Object.hasOwn(titles, name)

export function InvoiceBreakdown({ id }: { readonly id: string }) {
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
          <SelectField label="By" value={by} onChoice={name => isDimension(name) && setBy(name)}>
            {Object.entries(titles).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </SelectField>
          {by === 'tag' && <CommitField label="Tag name" placeholder="team" value={tag} onCommit={setTag} />}
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
  const columns = ['kind', 'id', 'name', 'requests', 'input_tokens', 'output_tokens'] as const
  const save = () =>
    saveCsv(fileName, [
      [...columns, 'cost_usd'],
      ...lines.map(line => [
        ...columns.map(column => line[column]),
        // Text that begins with a minus would be protected as a formula.
        line.cost_usd < 0 ? line.cost_usd : line.cost_usd.toFixed(8),
      ]),
    ])
  return (
    <>
      <Table
        caption={`Invoice by ${title}`}
        rows={lines}
        rowKey={({ kind, id }) => `${kind} ${id}`}
        columns={[
          { name: title, isHeading: true, show: line => <span class="break">{nameOf(by, line)}</span> },
          { name: 'Requests', isNumber: true, show: line => formatCount(line.requests) },
          { name: 'Input', from: 'middle', isNumber: true, show: line => formatCount(line.input_tokens) },
          { name: 'Output', from: 'middle', isNumber: true, show: line => formatCount(line.output_tokens) },
          { name: 'Amount', isNumber: true, show: line => amount(line.cost_usd) },
        ]}
      />
      <div class="actions">
        <Button text="Export CSV" look="small" onClick={save} />
      </div>
    </>
  )
}

const amount = (usd: number) => (usd < 0 ? `−${usdExact(-usd)}` : usdExact(usd))

const kindWords = {
  others: 'All others',
  untagged: 'Without this tag',
  correction: 'Usage that arrived late',
} as const

function nameOf(by: ShownBreakdown['by'], { kind, id, name }: Line): string {
  if (kind !== 'usage') return kindWords[kind]
  if (by === 'dialect' && id !== null && isDialect(id)) return dialectNames[id]
  return name ?? id ?? 'Unknown'
}

const isDialect = (id: string): id is keyof typeof dialectNames => Object.hasOwn(dialectNames, id)
