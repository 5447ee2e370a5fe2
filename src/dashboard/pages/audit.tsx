import { useState } from 'preact/hooks'
import type { ShownAuditEntry } from '../../console/audit/schemas.ts'
import { auditActions } from '../../core/audit/audit.ts'
import { Button } from '../parts/controls.tsx'
import { Options } from '../parts/field.tsx'
import { Exports } from '../parts/page.tsx'
import { ResourceView } from '../parts/resource.tsx'
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
  const next = log.data?.next_cursor ?? null
  return (
    <ResourceView
      page={{
        title: 'Audit log',
        hint: 'Changes of this account, for 400 days.',
        actions: <Exports of="audit" query={filters} formats={{ csv: 'CSV', jsonl: 'JSON lines' }} />,
      }}
      title="Entries"
      controls={
        <label>
          <span class="unseen">Action</span>
          <select
            value={action}
            onChange={event => {
              setAction(event.currentTarget.value)
              setCursors([])
            }}
          >
            <Options of={[['', 'All actions'], ...auditActions.map(value => [value, actionText(value)] as const)]} />
          </select>
        </label>
      }
      caption="Audit log"
      what="the audit log"
      resource={log}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Time', show: ({ at }) => listTime(at) },
        { name: 'Action', isHeading: true, show: entry => actionText(entry.action) },
        { name: 'Actor', show: ({ actor }) => actor.email ?? actorWords[actor.type] },
        { name: 'Details', show: ({ details }) => <span class="quiet">{detailText(details)}</span> },
        { name: 'Target', from: 'middle', show: ({ target }) => <code>{target ?? ''}</code> },
        { name: 'Address', from: 'wide', show: ({ address }) => address ?? '' },
      ]}
      empty={['No entries', 'Changes of keys, members and settings appear here.']}
      foot={
        <div class="actions">
          {cursors.length > 0 && <Button text="Newer" look="small" onClick={() => setCursors(cursors.slice(0, -1))} />}
          {next !== null && <Button text="Older" look="small" onClick={() => setCursors([...cursors, next])} />}
        </div>
      }
    />
  )
}

const actorWords = { user: 'Removed member', cli: 'Operator', system: 'Gateway' } as const

function detailText(details: ShownAuditEntry['details']): string {
  return Object.entries(details)
    .map(([name, value]) => `${humanize(name)}: ${value ?? 'none'}`)
    .join(', ')
}
