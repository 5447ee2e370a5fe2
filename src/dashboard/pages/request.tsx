import type { RequestRecord } from '../../console/usage/schemas.ts'
import { Attempts } from '../parts/attempts.tsx'
import { Badge } from '../parts/badge.tsx'
import { Button } from '../parts/button.tsx'
import { DetailRow } from '../parts/conversation-turn.tsx'
import { Copy } from '../parts/copy.tsx'
import { fallbackTitles } from '../parts/key-routing.tsx'
import { Loaded, Notice, withCode } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { useProjects } from '../parts/project-field.tsx'
import { requestedModelText, ServedBadge, StatusBadge, servedModelOf } from '../parts/request-detail.tsx'
import { Table } from '../parts/table.tsx'
import { dialectNames, exactTime, formatCount, humanize, milliseconds, usdExact } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'

/** One request with its own URL, found by any of its IDs. */
export function RequestPage({ id }: { readonly id: string }) {
  const record = useResource('GET /api/v1/requests/:id', { params: { id } })
  // The notice of an error would show the ID of the lookup, which looks like that of the request.
  const isMissing = record.failure?.code === 'not_found'
  return (
    <Page
      title="Request"
      about="What happened, why, and what to do next. Prompts and outputs are never stored."
      actions={
        <a class="button" href={hrefTo('requests')}>
          All requests
        </a>
      }
    >
      {isMissing ? (
        <Missing id={id} reload={record.reload} />
      ) : (
        <Loaded resource={record} what="the request" lines={8}>
          {found => (
            <>
              <Outcome record={found} />
              <Timeline record={found} />
              <Candidates record={found} />
              <Usage record={found} />
            </>
          )}
        </Loaded>
      )}
    </Page>
  )
}

function Missing({ id, reload }: { readonly id: string; readonly reload: () => void }) {
  return (
    <Card title="No request with this ID">
      <p class="mono wrap">{id}</p>
      <p>Reasons why a request is not here:</p>
      <ul class="stack">
        <li>Its API key was missing, invalid, expired or revoked. The response of the request names the reason.</li>
        <li>It belongs to another account, or to a key that your role cannot see.</li>
        <li>It ended less than a few seconds ago.</li>
        <li>It was rejected more than 30 days ago.</li>
      </ul>
      <Button text="Retry" look="small" onClick={reload} />
    </Card>
  )
}

function Outcome({ record }: { readonly record: RequestRecord }) {
  const { request_id, summary, next_step, decided_by, finish_reason: finish, metadata, tags } = record
  const isModerated = record.layer !== 'provider'
  const { names } = useProjects()
  const isWhole = decided_by === null && next_step === null
  return (
    <Card title="Outcome">
      <p>
        <StatusBadge request={record} /> <ServedBadge request={record} />{' '}
        {record.error_code !== null && <code>{record.error_code}</code>}
      </p>
      <Notice tone={isWhole ? 'good' : decided_by === null ? 'warn' : 'bad'}>
        <strong>{withCode(summary)}</strong>
        {next_step !== null && <div>{withCode(next_step)}</div>}
      </Notice>
      <p class="copied-line">
        <span class="mono wrap">{request_id}</span>
        <Copy text={request_id} what="ID" />
      </p>
      <dl class="pairs">
        <DetailRow name="Received" value={exactTime(record.created_at)} />
        {record.http_status !== null && <DetailRow name="HTTP status" value={String(record.http_status)} />}
        {decided_by !== null && <DetailRow name="Decided by" value={humanize(decided_by)} />}
        {record.limit !== null && <DetailRow name="Limit" value={record.limit} />}
        {isModerated && record.layer !== null && <DetailRow name="Moderation layer" value={record.layer} />}
        {isModerated && record.category !== null && <DetailRow name="Category" value={record.category} />}
        {record.param !== null && <DetailRow name="Field" value={record.param} />}
        {record.param_sent !== null && <DetailRow name="Sent" value={record.param_sent} />}
        {record.param_accepted !== null && <DetailRow name="Accepted" value={withCode(record.param_accepted)} />}
        <DetailRow name="Requested model" value={requestedModelText(record)} />
        <DetailRow name="Served model" value={servedModelOf(record) ?? 'No model'} />
        {finish !== null && <DetailRow name="Finish reason" value={finish} />}
        {record.strategy !== null && <DetailRow name="Strategy" value={record.strategy} />}
        <DetailRow name="Fallback policy" value={fallbackTitles[record.fallback]} />
        {record.dialect !== null && <DetailRow name="Dialect" value={dialectNames[record.dialect]} />}
        <DetailRow name="Key" value={record.key_name ?? record.key_id} />
        {record.project_id !== null && (
          <DetailRow name="Project" value={names.get(record.project_id) ?? record.project_id} />
        )}
        {record.user_email !== null && <DetailRow name="Member" value={record.user_email} />}
        {record.upstream_id !== null && <DetailRow name="Provider response ID" value={record.upstream_id} />}
        {Object.entries({ ...metadata, ...tags }).map(([name, value]) => (
          <DetailRow key={name} name={`${tags?.[name] === undefined ? 'Metadata' : 'Tag'} ${name}`} value={value} />
        ))}
      </dl>
    </Card>
  )
}

function Timeline({ record }: { readonly record: RequestRecord }) {
  return (
    <Card title="Attempts">
      <Attempts request={record} record={record} />
      <dl class="pairs">
        <DetailRow
          name="Time to first token"
          value={record.first_token_ms === null ? 'none' : milliseconds(record.first_token_ms)}
        />
        <DetailRow name="Total latency" value={milliseconds(record.latency_ms)} />
      </dl>
    </Card>
  )
}

function Candidates({ record: { candidates } }: { readonly record: RequestRecord }) {
  if (candidates === null || candidates.length === 0) return null
  const part = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(3))
  return (
    <Card title="Candidates" about="In the order of the ranking, with their scores when the request was routed.">
      <Table
        caption="Candidates"
        rows={candidates}
        rowKey={({ model }) => model}
        columns={[
          { name: 'Model', isHeading: true, show: ({ model }) => model },
          {
            name: 'Score',
            isNumber: true,
            show: ({ score, place }) => part(place === 'requested' ? undefined : score),
          },
          { name: 'Quality', from: 'wide', isNumber: true, show: ({ parts }) => part(parts?.quality) },
          { name: 'Cost', from: 'wide', isNumber: true, show: ({ parts }) => part(parts?.cost) },
          { name: 'Speed', from: 'wide', isNumber: true, show: ({ parts }) => part(parts?.speed) },
          { name: 'Reliability', from: 'wide', isNumber: true, show: ({ parts }) => part(parts?.reliability) },
          {
            name: 'Health',
            from: 'middle',
            show: ({ health }) => <Badge tone={health === 'healthy' ? 'good' : 'warn'}>{humanize(health)}</Badge>,
          },
          { name: 'Reason', show: ({ reasons }) => reasons.join('; ') },
        ]}
      />
    </Card>
  )
}

function Usage({ record }: { readonly record: RequestRecord }) {
  const { cost, cache_share: cached } = record
  if (record.status === 'rejected') return null
  const parts: readonly (readonly [string, number])[] =
    cost === null
      ? []
      : [
          ['Input', cost.input_usd],
          ['Cached input', cost.cached_input_usd],
          ['Cache writes', cost.cache_write_usd],
          ['Output', cost.output_usd],
          ['Of it reasoning', cost.reasoning_usd],
          ['Web search', cost.search_usd],
          ['Page fetches', cost.fetch_usd],
          ['Not billed', cost.unbilled_usd],
        ]
  return (
    <Card title="Tokens and cost">
      <dl class="pairs">
        <DetailRow name="Input tokens" value={formatCount(record.input_tokens)} />
        <DetailRow name="Cached input tokens" value={formatCount(record.cached_input_tokens)} />
        <DetailRow name="Cache write tokens" value={formatCount(record.cache_write_tokens)} />
        <DetailRow name="Output tokens" value={formatCount(record.output_tokens)} />
        <DetailRow name="Reasoning tokens" value={formatCount(record.reasoning_tokens)} />
        {cached !== null && <DetailRow name="Cache share" value={`${Math.round(cached * 100)}%`} />}
      </dl>
      <dl class="pairs sum">
        {parts
          .filter(([, usd]) => usd > 0)
          .map(([name, usd]) => (
            <DetailRow key={name} name={name} value={usdExact(usd)} />
          ))}
        <DetailRow name="Total" value={usdExact(record.cost_usd)} />
      </dl>
    </Card>
  )
}
