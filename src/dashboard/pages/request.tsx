import { useEffect } from 'preact/hooks'
import type { RequestRecord } from '../../console/usage/schemas.ts'
import { CopiedId } from '../parts/controls.tsx'
import { BarList } from '../parts/daily-chart.tsx'
import { Badge, healthTones, Notice, withCode } from '../parts/notice.tsx'
import { Card, Pairs } from '../parts/page.tsx'
import { useProjects } from '../parts/project-field.tsx'
import {
  Attempts,
  findServedModel,
  requestedModelText,
  StatusBadge,
  tellSubstitution,
  unpricedTexts,
} from '../parts/request-detail.tsx'
import { ObjectPage } from '../parts/resource.tsx'
import { AsTable } from '../parts/table.tsx'
import { type ScoredModel, scoreParts, tellChoice } from '../state/choice.ts'
import { figures, getSaved, showFigure, tellSaved } from '../state/figures.ts'
import { dialectNames, exactTime, formatCount, humanize, percent, usdExact } from '../state/format.ts'
import { fallbackTitles } from '../state/keys.ts'
import { useResource, whileVisible } from '../state/resource.ts'

const lookAgainMs = 3_000

/** One request with its own URL, found by any of its IDs. */
export function RequestPage({ id }: { readonly id: string }) {
  const record = useResource('GET /api/v1/requests/:id', { params: { id } })
  // The notice of an error would show the ID of the lookup, which looks like that of the request.
  const isMissing = record.failure?.code === 'not_found'
  // A request appears seconds after its end.
  useEffect(() => (isMissing ? whileVisible(lookAgainMs, record.reload) : undefined), [isMissing])
  return (
    <ObjectPage
      title="Request"
      all={['requests', 'All requests']}
      resource={record}
      what="the request"
      missing={['No request with this ID', <Missing id={id} />]}
    >
      {found => (
        <>
          <Outcome record={found} />
          <Timeline record={found} />
          <Candidates record={found} />
          <Usage record={found} />
        </>
      )}
    </ObjectPage>
  )
}

function Missing({ id }: { readonly id: string }) {
  return (
    <>
      <p class="mono wrap">{id}</p>
      <p>Reasons why a request is not here:</p>
      <ul class="stack">
        <li>Its API key was missing, invalid, expired or revoked. The response of the request names the reason.</li>
        <li>It belongs to another account, or to a key that your role cannot see.</li>
        <li>It ended less than a few seconds ago. Then it appears here.</li>
        <li>It was rejected more than 30 days ago.</li>
      </ul>
    </>
  )
}

function Outcome({ record }: { readonly record: RequestRecord }) {
  const { request_id, summary, next_step, decided_by, finish_reason: finish, metadata, tags } = record
  const isModerated = record.layer !== 'provider'
  const { names } = useProjects()
  const substitution = tellSubstitution(record)
  const isWhole = decided_by === null && next_step === null
  return (
    <Card title="Outcome">
      <p>
        <StatusBadge request={record} /> {substitution !== null && <Badge tone="warn">{substitution}</Badge>}{' '}
        {record.error_code !== null && <code>{record.error_code}</code>}
      </p>
      <Notice tone={isWhole ? 'good' : decided_by === null ? 'warn' : 'bad'}>
        <strong>{withCode(summary)}</strong>
        {next_step !== null && <div>{withCode(next_step)}</div>}
      </Notice>
      <CopiedId id={request_id} />
      <Pairs
        look="wide"
        of={[
          ['Received', exactTime(record.created_at)],
          record.http_status !== null && ['HTTP status', String(record.http_status)],
          decided_by !== null && ['Decided by', humanize(decided_by)],
          record.limit !== null && ['Limit', record.limit],
          isModerated && record.layer !== null && ['Layer', record.layer],
          isModerated && record.category !== null && ['Category', record.category],
          ...record.rules.map(rule => [`Rule ${rule.rule}`, tellRule(rule)] as const),
          record.constraints !== null && ['Constraints', record.constraints.join(', ')],
          record.receivers !== null && ['Receivers', record.receivers.join(', ') || 'None'],
          record.param !== null && ['Field', record.param],
          record.param_sent !== null && ['Sent', record.param_sent],
          record.param_accepted !== null && ['Accepted', withCode(record.param_accepted)],
          ['Requested model', requestedModelText(record)],
          ['Served model', findServedModel(record) ?? 'No model'],
          finish !== null && ['Finish reason', finish],
          ['Routing', record.routing_mode === 'auto' ? 'Automatic' : 'Manual'],
          record.strategy !== null && ['Strategy', record.strategy],
          record.query_type !== null && ['Query type', humanize(record.query_type)],
          ['Fallback policy', fallbackTitles[record.fallback]],
          record.dialect !== null && ['Dialect', dialectNames[record.dialect]],
          ['Response type', record.streamed ? 'Stream' : 'JSON'],
          ['Key', record.key_name ?? record.key_id],
          record.own_key_cost_usd !== null && [
            'Own provider key',
            `Called; ${usdExact(record.own_key_cost_usd)} at catalog prices, not billed`,
          ],
          record.project_id !== null && ['Project', names.get(record.project_id) ?? record.project_id],
          record.user_email !== null && ['Member', record.user_email],
          record.upstream_id !== null && ['Provider response ID', record.upstream_id],
          ...Object.entries({ ...metadata, ...tags }).map(
            ([name, value]) => [`${tags?.[name] === undefined ? 'Metadata' : 'Tag'} ${name}`, value] as const,
          ),
        ]}
      />
    </Card>
  )
}

function tellRule({ kind, model, owner }: RequestRecord['rules'][number]): string {
  const effect = model === null ? 'left the requested model' : `changed the requested model to ${model}`
  return `${humanize(kind)} of the ${owner}: ${effect}`
}

function Timeline({ record }: { readonly record: RequestRecord }) {
  const { first_token_ms: first, latency_ms: total } = record
  return (
    <Card
      title="Timeline"
      about={`${figures.firstToken.label}: ${first === null ? 'none' : showFigure('firstToken', first)}. ${figures.requestLatency.label}: ${showFigure('requestLatency', total)}.`}
    >
      <Attempts record={record} />
    </Card>
  )
}

/** The candidates with their scores as bars, and why the first one was chosen. */
function Candidates({ record }: { readonly record: RequestRecord }) {
  const { candidates } = record
  if (candidates === null || candidates.length === 0) return null
  const part = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(3))
  const scored = candidates.some(({ parts }) => parts !== null)
  return (
    <Card title="Candidates" about={tellChoice(candidates, findServedModel(record))}>
      {scored && (
        <BarList
          label="Scores of the candidates"
          shares={candidates.map(({ model, score, parts, health, reasons }) => ({
            key: model,
            name: (
              <>
                {model} {health !== 'healthy' && <Badge tone={healthTones[health]}>{humanize(health)}</Badge>}
              </>
            ),
            value: score,
            told: part(score),
            more: reasons.join('; '),
            parts:
              parts === null
                ? []
                : scoreParts
                    .map(([name, tone]) => ({ name: humanize(name), tone, value: parts[name] }))
                    .toSorted((left, right) => Number(left.value < 0) - Number(right.value < 0)),
          }))}
        />
      )}
      <AsTable
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
          ...scoreParts.map(([name]) => ({
            name: humanize(name),
            from: 'wide' as const,
            isNumber: true,
            show: ({ parts }: ScoredModel) => part(parts?.[name]),
          })),
          {
            name: 'Health',
            from: 'middle',
            show: ({ health }) => <Badge tone={healthTones[health]}>{humanize(health)}</Badge>,
          },
          { name: 'Reason', show: ({ reasons }) => reasons.join('; ') },
        ]}
      />
    </Card>
  )
}

function Usage({ record }: { readonly record: RequestRecord }) {
  const { cost, cache_share: cached } = record
  const baseline = cost?.baseline ?? null
  if (record.status === 'rejected') return null
  const parts: readonly (readonly [name: string, usd: number, tone: string | null])[] =
    cost === null
      ? []
      : [
          ['Input', cost.input_usd, 'main'],
          ['Cached input', cost.cached_input_usd, 's1'],
          ['Cache writes', cost.cache_write_usd, 's4'],
          ['Output', cost.output_usd, 's2'],
          // Parts of others, or of no bill.
          ['Of it reasoning', cost.reasoning_usd, null],
          ['Web search', cost.search_usd, 's3'],
          ['Page fetches', cost.fetch_usd, 's5'],
          ['Not billed', cost.unbilled_usd, null],
        ]
  const paid = parts.filter(([, usd]) => usd > 0)
  return (
    <Card title="Tokens and cost">
      {paid.length > 0 && (
        <BarList
          label="Cost by part"
          shares={[
            {
              key: 'cost',
              name: figures.cost.label,
              value: record.cost_usd,
              told: usdExact(record.cost_usd),
              parts: paid.flatMap(([name, value, tone]) => (tone === null ? [] : [{ name, tone, value }])),
            },
          ]}
        />
      )}
      {record.unpriced !== null && <Notice tone="warn">{unpricedTexts[record.unpriced]}</Notice>}
      <div class="columns">
        <Pairs
          look="sum"
          of={[...paid.map(([name, usd]) => [name, usdExact(usd)] as const), ['Total', usdExact(record.cost_usd)]]}
        />
        <Pairs
          of={[
            ['Input tokens', formatCount(record.input_tokens)],
            ['Cached input tokens', formatCount(record.cached_input_tokens)],
            ['Cache write tokens', formatCount(record.cache_write_tokens)],
            ['Output tokens', formatCount(record.output_tokens)],
            ['Reasoning tokens', formatCount(record.reasoning_tokens)],
            ['Token counts', record.estimated ? 'estimated' : 'reported by provider'],
            cached !== null && ['Cache share', percent(cached)],
            getSaved(record) !== null && [
              figures.saved.label,
              <span title={figures.saved.about}>
                {showFigure('saved', getSaved(record))} ({tellSaved(record)})
              </span>,
            ],
            baseline !== null && ['Baseline', `${usdExact(baseline.cost_usd)} at ${baseline.model}`],
          ]}
        />
      </div>
    </Card>
  )
}
