import type { ShownProvider } from '../../console/status/schemas.ts'
import { exactTime, formatCount, humanize, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { Badge } from './badge.tsx'
import { Loaded, type Tone } from './notice.tsx'
import { Card } from './page.tsx'
import { Table } from './table.tsx'

const everyMs = 15_000

const reachability: Readonly<Record<ShownProvider['reachable'], readonly [string, Tone]>> = {
  yes: ['Reachable', 'good'],
  no: ['Unreachable', 'bad'],
  unknown: ['Not called yet', 'plain'],
}

/** Configured providers, for owners and admins. */
export function Providers() {
  const isSeen = may('providers.see')
  const providers = useResource('GET /api/v1/providers', { everyMs, when: isSeen })
  if (!isSeen) return null
  return (
    <Card title="Providers" about="As this gateway process saw them since its start.">
      <Loaded resource={providers} what="providers">
        {({ data }) => (
          <Table
            caption="Configured providers"
            rows={data}
            rowKey={({ id }) => id}
            columns={[
              {
                name: 'Provider',
                isHeading: true,
                by: one => one.id,
                show: one => (
                  <>
                    {one.id} {one.simulated && <Badge>simulated</Badge>}
                  </>
                ),
              },
              { name: 'Models', from: 'middle', isNumber: true, by: one => one.models, show: one => one.models },
              {
                name: 'State',
                by: one => one.reachable,
                show: one => {
                  const [words, tone] = reachability[one.reachable]
                  return <Badge tone={tone}>{words}</Badge>
                },
              },
              { name: 'Last error', show: one => <LastError of={one.last_error} /> },
              { name: 'Keys', from: 'middle', show: one => keysOf(one.pool) },
              { name: 'Remaining limits', from: 'wide', show: one => <Limits of={one.pool} /> },
            ]}
          />
        )}
      </Loaded>
    </Card>
  )
}

function LastError({ of: error }: { readonly of: ShownProvider['last_error'] }) {
  if (error === null) return <span class="quiet">None</span>
  return (
    <>
      {humanize(error.code)}{' '}
      <span class="quiet" title={exactTime(error.at)}>
        {relativeTime(error.at)}
      </span>
    </>
  )
}

function keysOf(pool: ShownProvider['pool']): string {
  if (pool === null) return '–'
  return pool.rejected_keys === 0 ? formatCount(pool.keys) : `${pool.keys}, of which ${pool.rejected_keys} rejected`
}

type Quota = NonNullable<ShownProvider['pool']>['limits'][number]['requests']

function Limits({ of: pool }: { readonly of: ShownProvider['pool'] }) {
  if (pool === null || pool.limits.length === 0) return <span class="quiet">Not reported</span>
  const shown = (quota: Quota, unit: string) =>
    quota === null ? [] : [`${formatCount(quota.remaining)} of ${formatCount(quota.limit)} ${unit}`]
  return (
    <ul>
      {pool.limits.map(({ model, requests, tokens }) => (
        <li key={model}>
          {model}: {[...shown(requests, 'requests'), ...shown(tokens, 'tokens')].join(', ')}
        </li>
      ))}
    </ul>
  )
}
