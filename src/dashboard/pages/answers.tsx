import type { ShownUsage } from '../../console/usage/schemas.ts'
import { mostCountedRejections } from '../../core/usage/usage-groups.ts'
import { Badge } from '../parts/notice.tsx'
import { Card, Tile } from '../parts/page.tsx'
import { getSaved, tellSaved } from '../state/figures.ts'
import { type Filters, failedOnly, hrefToLog, logQuery } from '../state/filters.ts'
import { formatCount, formatUsd, milliseconds, percent, signed, tellPace } from '../state/format.ts'
import { accountCreatedAt, hrefTo, openedAt } from '../state/href.ts'
import { isKeyValid, limitLabels } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { formatModelName, listDays, toModelRows } from '../state/usage-series.ts'

type AnswersProps = {
  readonly usage: ShownUsage
  /** The range by model, and the range of the same length before it. */
  readonly models: ShownUsage | undefined
  readonly before: ShownUsage | undefined
  /** Filters of the requests that the usage covers, for the links. */
  readonly covered: Filters
}

/** The figures of a range, each with its course and its change to the range before. */
export function Answers({ usage, before, covered }: Omit<AnswersProps, 'models'>) {
  const days = listDays(usage)
  const { total } = usage
  const old = before?.total
  const [rate, oldRate] = [successRate(total), old === undefined ? null : successRate(old)]
  const slow = total.latency_p95_ms === null ? {} : { min_latency_ms: String(total.latency_p95_ms) }
  const failed = <a href={hrefToLog(covered, failedOnly)}>{formatCount(total.failed)} failed or blocked</a>
  const points = rate === null || oldRate === null ? undefined : `${signed((rate - oldRate) * 100, 1)} points`
  return (
    <section class="tiles" aria-label="Summary">
      <Spend />
      <Tile
        figure="requests"
        value={total.requests}
        change={tellChange(total.requests, old?.requests, formatCount)}
        note={<a href={hrefToLog(covered)}>All requests</a>}
        course={days.map(day => day.requests)}
      />
      <Tile
        figure="successRate"
        value={rate}
        change={points === undefined ? undefined : [points, `${percent(oldRate ?? 0, 1)} in the range before`]}
        note={total.failed > 0 ? failed : 'None failed or blocked'}
        course={days.map(successRate)}
      />
      <Tile
        figure="latency"
        value={total.latency_p50_ms}
        change={tellChange(total.latency_p50_ms, old?.latency_p50_ms, milliseconds)}
        note={<a href={hrefToLog(covered, slow)}>p95 {milliseconds(total.latency_p95_ms)}</a>}
        course={days.map(day => day.latency_p50_ms)}
      />
      <Tile
        figure="saved"
        value={getSaved(total)}
        change={old && tellChange(getSaved(total), getSaved(old), formatUsd)}
        note={tellSaved(total)}
        course={days.map(getSaved)}
      />
      <Verdicts />
    </section>
  )
}

/** How routing does against the baseline, where shadow evaluation compared some outputs. */
function Verdicts() {
  const found = useResource('GET /api/v1/insights/shadow').data
  const matched = found?.total.matched_or_better
  if (found === undefined || matched == null) return null
  const { compared, losses } = found.total
  return (
    <Tile
      name="Matched or better"
      about={`Outputs of routing that a judge model found equal to those of the baseline, or better: shadow evaluation, last ${found.days} days.`}
      value={percent(matched.share)}
      note={`${formatCount(compared - losses)} of ${formatCount(compared)}, 95% interval ${percent(matched.low)}–${percent(matched.high)}`}
    />
  )
}

/** Spend of this UTC month, whatever range the page has. */
function Spend() {
  const now = new Date(openedAt.value)
  const toDay = (month: number, day: number) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + month, day)).toISOString().slice(0, 10)
  const today = now.getUTCDate()
  const daysBefore = Number(toDay(0, 0).slice(8))
  const { data: month } = useResource('GET /api/v1/usage', {
    query: { from: toDay(0, 1), to: toDay(0, today), group_by: 'day' },
  })
  const { data: before } = useResource('GET /api/v1/usage', {
    query: { from: toDay(-1, 1), to: toDay(-1, Math.min(today, daysBefore)), group_by: 'month' },
    when: Date.parse(toDay(-1, 1)) >= accountCreatedAt.value,
  })
  const cap = useResource('GET /api/v1/billing', { when: may('billing.see') }).data?.soft_cap ?? null
  const spent = month?.total.cost_usd ?? 0
  const ofOwn = month?.total.own_key_cost_usd ?? 0
  const limit = cap?.period === 'billing_cycle' ? null : (cap?.monthly_usd ?? null)
  const pace = tellPace(spent, limit, 'month', formatUsd)
  return (
    <Tile
      name="Spend this month"
      value={month === undefined ? '–' : formatUsd(spent)}
      change={tellChange(spent, before?.total.cost_usd, formatUsd, 'the same days of last month')}
      note={
        <>
          {pace}
          {limit !== null && <a href={hrefTo('billing')}> Budget {formatUsd(limit)}</a>}
          {ofOwn > 0 && (
            <span title="Catalog cost of calls with own provider keys, which are not billed">
              {' '}
              {formatUsd(ofOwn)} more with own keys
            </span>
          )}
        </>
      }
      course={month === undefined ? [] : listDays(month).map(day => day.cost_usd)}
    />
  )
}

const successRate = ({ completed, failed }: Pick<ShownUsage['total'], 'completed' | 'failed'>) =>
  completed + failed === 0 ? null : completed / (completed + failed)

/** Returns the relative change, and what it compares; undefined = nothing before. */
function tellChange(
  now: number | null,
  before: number | null | undefined,
  show: (value: number) => string,
  what = 'the range before',
): readonly [change: string, about: string] | undefined {
  if (now === null || before == null || before <= 0) return undefined
  return [`${signed((now / before - 1) * 100, 0)}%`, `${show(before)} in ${what}`]
}

/** Failed requests above this share make a model need attention. */
const muchFailed = 0.05
const nearShare = 0.8

/** What a user should look at now: failing models, unknown prices, budgets that are nearly reached, rejected requests. */
export function Attention({ usage, models, covered }: Omit<AnswersProps, 'before'>) {
  const states = useResource('GET /api/v1/models/health').data?.data ?? []
  const keys = useResource('GET /api/v1/keys').data?.data.filter(key => isKeyValid(key)) ?? []
  const projects = useResource('GET /api/v1/projects').data?.data ?? []
  const tags = useResource('GET /api/v1/tags').data?.data ?? []
  const unpriced =
    useResource('GET /api/v1/requests', { query: { ...logQuery(covered), unpriced: 'true', limit: '200' } }).data
      ?.data ?? []
  const budgets = [
    ...keys.map(key => ({ ...key, href: hrefTo(`keys/${key.id}`) })),
    ...projects.map(project => ({ ...project, href: hrefTo(`projects/${project.id}`) })),
    ...tags.map(tag => ({ ...tag, name: `${tag.name}=${tag.value}`, href: hrefTo('tags') })),
  ]
  const items = [
    ...toModelRows(models).flatMap(({ model, failed, requests }) => {
      const isUnhealthy = states.some(known => known.model === model && known.state === 'unhealthy')
      // Automatic requests count here only if no model served them: their share is of all requests.
      const share = failed / (model === 'gateway-ai' ? usage.total.requests : requests)
      if (model === null || (share <= muchFailed && !isUnhealthy)) return []
      const told = isUnhealthy ? 'Unhealthy' : `${percent(share, 1)} failed`
      return [
        {
          tone: 'bad',
          told,
          href: hrefToLog(covered, { model, ...failedOnly }),
          name: formatModelName(model),
        } as const,
      ]
    }),
    ...[...new Set(unpriced.flatMap(({ model }) => model ?? []))].map(
      model =>
        ({
          tone: 'warn',
          told: 'Unpriced',
          href: hrefToLog(covered, { model, unpriced: 'true' }),
          name: formatModelName(model),
        }) as const,
    ),
    ...budgets.flatMap(({ name, href, limits, used }) =>
      (['daily_tokens', 'daily_cost_usd', 'monthly_cost_usd'] as const).flatMap(kind => {
        const limit = limits?.[kind]
        if (limit == null || used[kind] < nearShare * limit) return []
        const isReached = used[kind] >= limit
        const told = isReached ? 'Reached' : `${percent(used[kind] / limit)} used`
        return [{ tone: isReached ? 'bad' : 'warn', told, href, name: `${name}: ${limitLabels[kind]}` } as const]
      }),
    ),
  ]
  return (
    <Card title="Needs attention">
      {items.length === 0 && !usage.rejected && (
        <p class="hint">No failing model, no unknown price, no budget near its limit, no rejected requests.</p>
      )}
      <ul class="attention">
        {items.map(({ tone, told, href, name }) => (
          <li key={`${told} ${name}`}>
            <Badge tone={tone}>{told}</Badge> <a href={href}>{name}</a>
          </li>
        ))}
        {typeof usage.rejected === 'number' && usage.rejected > 0 && (
          <li>
            <Badge tone="warn">Rejected</Badge>{' '}
            <a href={hrefToLog(covered, { status: 'rejected' })}>
              {formatCount(usage.rejected)}
              {usage.rejected === mostCountedRejections && '+'} before a model was called
            </a>
          </li>
        )}
      </ul>
    </Card>
  )
}
