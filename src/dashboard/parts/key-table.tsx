import type { ShownKey } from '../../console/keys/schemas.ts'
import { compact, dateOf, formatCount, relativeTime, usdColumn } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { isKeyValid } from '../state/key-lineage.ts'
import { KeyBadge, type OpenKeyDialog } from './key-dialogs.tsx'
import { Empty } from './notice.tsx'
import type { ProjectChoices } from './project-field.tsx'
import { Table } from './table.tsx'
import { UsedLimits } from './used-limits.tsx'

type KeyTableProps = {
  readonly keys: readonly ShownKey[]
  readonly hasEnded: boolean
  readonly projects: Pick<ProjectChoices, 'names' | 'mayManage'>
  readonly onOpen: (open: OpenKeyDialog) => void
}

export function KeyTable({ keys, hasEnded, projects: { names, mayManage }, onOpen }: KeyTableProps) {
  if (keys.length === 0)
    return <Empty title={hasEnded ? 'No active keys' : 'No keys yet'}>Programs use API keys to authenticate.</Empty>
  const usd = usdColumn(keys.map(({ usage }) => usage.cost_usd))
  return (
    <Table
      caption="API keys"
      rows={keys}
      keyOf={({ id }) => id}
      classOf={key => (isKeyValid(key) ? '' : 'faded')}
      columns={[
        {
          name: 'Name',
          isHeading: true,
          show: key => (
            <>
              <a href={hrefTo(`keys/${key.id}`)}>{key.name}</a> <KeyBadge of={key} />
              <code class="block quiet">{key.prefix}</code>
            </>
          ),
        },
        ...(names.size === 0
          ? []
          : [
              {
                name: 'Project',
                from: 'middle' as const,
                show: ({ project_id: id }: ShownKey) => (id === null ? '' : (names.get(id) ?? id)),
              },
            ]),
        { name: 'Created', from: 'wide', show: key => dateOf(key.created_at) },
        {
          name: 'Last used',
          from: 'middle',
          show: key => (key.last_used_at === null ? 'Never' : relativeTime(key.last_used_at)),
        },
        { name: 'Requests', from: 'middle', isNumber: true, show: key => formatCount(key.usage.requests) },
        { name: 'Tokens', from: 'wide', isNumber: true, show: key => compact(key.usage.total_tokens) },
        { name: 'Cost', isNumber: true, show: key => usd(key.usage.cost_usd) },
        {
          name: 'Limits',
          from: 'middle',
          show: ({ limits, used, models }) => <UsedLimits limits={limits} used={used} models={models} />,
        },
        {
          name: '',
          show: key => isKeyValid(key) && mayManage(key) && <KeyActions target={key} onOpen={onOpen} />,
        },
      ]}
    />
  )
}

const actions = [
  { kind: 'change', text: 'Change', tone: '' },
  { kind: 'rotate', text: 'Rotate', tone: '' },
  { kind: 'revoke', text: 'Revoke', tone: ' danger-text' },
] as const

type KeyActionsProps = { readonly target: ShownKey; readonly onOpen: (open: OpenKeyDialog) => void }

function KeyActions({ target: key, onOpen }: KeyActionsProps) {
  return (
    <div class="actions">
      {actions.map(({ kind, text, tone }) => (
        <button
          key={kind}
          type="button"
          class={`button small${tone}`}
          aria-label={`${text} ${key.name}`}
          onClick={() => onOpen({ kind, key })}
        >
          {text}
        </button>
      ))}
    </div>
  )
}
