import type { ShownKeyPage } from '../../console/keys/schemas.ts'
import { formatConstraints } from '../../core/policy/constraints-text.ts'
import { CopiedId } from '../parts/controls.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { KeyBadge, keyActions, lastUsedColumn } from '../parts/key-actions.tsx'
import { BurnDown, UsedLimits } from '../parts/meter.tsx'
import { Notice } from '../parts/notice.tsx'
import { Card, Pairs } from '../parts/page.tsx'
import { useProjects } from '../parts/project-field.tsx'
import { KeySnippets } from '../parts/request-code.tsx'
import { ObjectPage } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { UsageChart } from '../parts/usage.tsx'
import { hrefToLog } from '../state/filters.ts'
import { exactTime, formatTags, humanize, relativeTime } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { continueTitles, fallbackTitles, isKeyValid } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'

const everyMs = 10_000

/** A key: rules, use of its limits, usage, rotation and code. */
export function KeyPage({ id }: { readonly id: string }) {
  const key = useResource('GET /api/v1/keys/:id', { params: { id }, everyMs })
  const { mayManage } = useProjects()
  return (
    <ObjectPage
      title="API key"
      hint="Limits, usage and rotation of one key. All times are UTC."
      all={['keys', 'All keys']}
      resource={key}
      what="the key"
      missing={['No such key', 'It belongs to another user or account, or the ID is wrong.']}
      actions={found => (mayManage(found) ? keyActions : [])}
    >
      {found => (
        <>
          <State of={found} />
          <Rules of={found} />
          <KeyLimits of={found} />
          <KeyUsageChart of={found} />
          <Lineage of={found} />
          {isKeyValid(found) && <KeySnippets of={found} />}
        </>
      )}
    </ObjectPage>
  )
}

type KeyProps = { readonly of: ShownKeyPage }

/** Says why a key does not work, or will not for long, and which one to use. */
function State({ of: key }: KeyProps) {
  const { revoked_at, expires_at, replaced_by } = key
  const isValid = isKeyValid(key)
  if (revoked_at === null && (expires_at === null || (isValid && replaced_by === null))) return null
  const [title, advice] =
    revoked_at !== null
      ? [`Revoked ${exactTime(revoked_at)}`, 'Create a new key.']
      : isValid
        ? [`Replaced. This key works until ${exactTime(expires_at ?? '')}`, '']
        : [`Expired ${exactTime(expires_at ?? '')}`, 'A later expiry makes it valid again.']
  return (
    <Notice tone={isValid ? 'warn' : 'bad'} title={title}>
      {replaced_by === null ? (
        `Requests with this key are rejected. ${advice}`
      ) : (
        <a href={hrefTo(`keys/${replaced_by}`)}>Open the key that replaces it</a>
      )}
    </Notice>
  )
}

function Rules({ of: key }: KeyProps) {
  const account = useResource('GET /api/v1/account')
  const { names } = useProjects()
  const asAccount = (value: string | undefined) => `As the account${value === undefined ? '' : `: ${value}`}`
  const accountFallback = account.data && fallbackTitles[account.data.fallback ?? 'any']
  const accountContinue =
    account.data && (account.data.continue === null ? 'As the request says' : continueTitles[account.data.continue])
  const onOff = (isOn: boolean) => (isOn ? 'On' : 'Off')
  return (
    <Card title={key.name} about={<code>{key.prefix}</code>}>
      <CopiedId id={key.id}>
        <KeyBadge of={key} />
      </CopiedId>
      <Pairs
        look="wide"
        of={[
          key.project_id !== null && [
            'Project',
            <a href={hrefTo(`projects/${key.project_id}`)}>{names.get(key.project_id) ?? key.project_id}</a>,
          ],
          ['Created', exactTime(key.created_at)],
          [
            'Last used',
            key.last_used_at === null ? 'Never' : `${exactTime(key.last_used_at)} (${relativeTime(key.last_used_at)})`,
          ],
          ['Expires', key.expires_at === null ? 'Never' : exactTime(key.expires_at)],
          ['Models', key.models === null ? 'All' : key.models.join(', ')],
          ['Default strategy', key.strategy === null ? 'Balanced (default)' : humanize(key.strategy)],
          ['Fallback policy', key.fallback === null ? asAccount(accountFallback) : fallbackTitles[key.fallback]],
          ['Cut texts', key.continue === null ? asAccount(accountContinue) : continueTitles[key.continue]],
          ['Hedging', key.hedge === null ? asAccount(account.data && onOff(account.data.hedge)) : onOff(key.hedge)],
          ['Web access', onOff(key.web)],
          ['Constraints', formatConstraints(key.constraints) || 'None of its own'],
          ['Tags', formatTags(key.tags ?? {}) || 'None'],
        ]}
      />
    </Card>
  )
}

function Lineage({ of: { id, lineage, replaces } }: KeyProps) {
  if (lineage.length < 2) return null
  return (
    <Card
      title="Rotation"
      about="Each key replaces the one before it. They share usage and limits."
      actions={replaces !== null && <a href={hrefTo(`keys/${replaces}`)}>Open the key that it replaced</a>}
    >
      <Table
        caption="Rotation, newest key first"
        rows={lineage.toReversed()}
        rowKey={key => key.id}
        rowClass={key => (isKeyValid(key) ? '' : 'faded')}
        columns={[
          {
            name: 'Key',
            isHeading: true,
            show: key =>
              key.id === id ? (
                <>
                  <code>{key.prefix}</code> (this key)
                </>
              ) : (
                <a href={hrefTo(`keys/${key.id}`)}>
                  <code>{key.prefix}</code>
                </a>
              ),
          },
          { name: 'Created', from: 'middle', show: key => exactTime(key.created_at) },
          {
            name: 'Expires',
            show: key =>
              key.revoked_at !== null
                ? `Revoked ${exactTime(key.revoked_at)}`
                : key.expires_at === null
                  ? 'Never'
                  : `${exactTime(key.expires_at)}${isKeyValid(key) ? '' : ' (expired)'}`,
          },
          lastUsedColumn,
        ]}
      />
    </Card>
  )
}

/** The limits of a key with their use. */
function KeyLimits({ of: { id, lineage, limits, used, requests_last_minute } }: { readonly of: ShownKeyPage }) {
  return (
    <Card
      title={limits === null ? 'No limits of its own' : 'Limits'}
      about="All keys share the limits of the account. Keys of one rotation share those of the key."
    >
      {limits !== null && <UsedLimits limits={limits} used={used} minute={requests_last_minute} />}
      <BurnDown limit={limits?.monthly_cost_usd} of={{ key: lineage[0]?.id ?? id }} />
    </Card>
  )
}

/** Usage of a key with the keys of its rotation, over the range in the URL. */
function KeyUsageChart({ of: { id, lineage } }: { readonly of: ShownKeyPage }) {
  const { range = '' } = hashRoute.value.query
  // The filter of the first key includes those that replaced it.
  const filters = { range, key: lineage[0]?.id ?? id }
  return (
    <>
      <FilterBar path={`keys/${id}`} filters={{ range }} isRangeOnly>
        <a href={hrefToLog(filters)}>
          {lineage.length > 1 ? 'Requests of all keys of the rotation' : 'Requests with this key'}
        </a>
        {lineage.length > 1 && filters.key !== id && (
          <a href={hrefToLog({ ...filters, key: id })}>Requests with this key</a>
        )}
      </FilterBar>
      <UsageChart filters={filters} empty="Send one with the code below, or choose a longer range." />
    </>
  )
}
