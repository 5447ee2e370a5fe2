import { useState } from 'preact/hooks'
import type { ShownAuditEntry } from '../../console/audit/schemas.ts'
import { auditActions } from '../../core/audit/audit.ts'
import { Button } from '../parts/button.tsx'
import { Empty, FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { saveFile } from '../state/export.ts'
import { humanize, listTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'

const actionText = (action: string) => humanize(action.replace('.', ' '))

export function AuditLog() {
  const [cursors, setCursors] = useState<readonly string[]>([])
  const [action, setAction] = useState('')
  const filters: Record<string, string> = action === '' ? {} : { action }
  const cursor = cursors.at(-1)
  const log = useResource('GET /api/v1/audit', {
    query: { ...filters, ...(cursor === undefined ? {} : { cursor }) },
  })
  const saving = useAction(async (format: 'csv' | 'jsonl') => {
    await saveFile('GET /api/v1/audit/export', { ...filters, format }, `audit.${format}`)
    showToast('Export downloaded')
  })
  return (
    <Page
      title="Audit log"
      about="Changes of this account, for 400 days."
      actions={(['csv', 'jsonl'] as const).map(format => (
        <Button key={format} disabled={saving.isBusy} onClick={() => void saving.run(format)}>
          Export {format === 'csv' ? 'CSV' : 'JSON lines'}
        </Button>
      ))}
    >
      {saving.failure !== null && <FailureNotice failure={saving.failure} />}
      <Card
        title="Entries"
        actions={
          <label>
            <span class="unseen">Action</span>
            <select
              value={action}
              onChange={event => {
                setAction(event.currentTarget.value)
                setCursors([])
              }}
            >
              <option value="">All actions</option>
              {auditActions.map(value => (
                <option key={value} value={value}>
                  {actionText(value)}
                </option>
              ))}
            </select>
          </label>
        }
      >
        <Loaded resource={log} what="the audit log" lines={8}>
          {({ data, next_cursor: next }) => (
            <>
              {data.length === 0 ? (
                <Empty title="No entries">Changes of keys, members and settings appear here.</Empty>
              ) : (
                <Entries rows={data} />
              )}
              <div class="actions">
                {cursors.length > 0 && (
                  <Button text="Newer" look="small" onClick={() => setCursors(cursors.slice(0, -1))} />
                )}
                {next !== null && <Button text="Older" look="small" onClick={() => setCursors([...cursors, next])} />}
              </div>
            </>
          )}
        </Loaded>
      </Card>
    </Page>
  )
}

const actorWords = { user: 'Removed member', cli: 'Operator', system: 'Gateway' } as const

function Entries({ rows }: { readonly rows: readonly ShownAuditEntry[] }) {
  return (
    <Table
      caption="Audit log"
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Time', show: ({ at }) => listTime(at) },
        { name: 'Action', isHeading: true, show: ({ action }) => actionText(action) },
        { name: 'Actor', show: ({ actor }) => actor.email ?? actorWords[actor.type] },
        { name: 'Details', show: ({ details }) => <span class="quiet">{detailText(details)}</span> },
        { name: 'Target', from: 'middle', show: ({ target }) => <code>{target ?? ''}</code> },
        { name: 'Address', from: 'wide', show: ({ address }) => address ?? '' },
      ]}
    />
  )
}

function detailText(details: ShownAuditEntry['details']): string {
  return Object.entries(details)
    .map(([name, value]) => `${humanize(name)}: ${value ?? 'none'}`)
    .join(', ')
}
