import type { ComponentChildren } from 'preact'
import type { ShownStatus } from '../../console/status/schemas.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import { Door } from '../parts/controls.tsx'
import { ProductLinks } from '../parts/navigation.tsx'
import { Badge, Loaded, Loading, type Tone } from '../parts/notice.tsx'
import { Card, Page, Pairs } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { type Readiness, toReadiness } from '../state/api-error.ts'
import { formatCount, humanize } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useGateway, useResource } from '../state/resource.ts'
import type { ModelHealth } from '../state/routes.ts'
import { currentSession } from '../state/session.ts'

const everyMs = 15_000

/** The status of the gateway: whether it accepts requests, and for owners and admins its stores too. */
export function StatusPage() {
  const current = currentSession.value
  const role = current?.two_factor_setup_required === false ? current.user.role : undefined
  const seesStores = role !== undefined && isAllowed(role, 'providers.see')
  const page = (
    <Page title="Status" about={`The gateway now, checked every ${everyMs / 1000} s.`}>
      <Service />
      {seesStores ? <Stores /> : <p class="hint">Owners and admins also see stores and moderation here.</p>}
      <Models />
    </Page>
  )
  if (role !== undefined) return page
  return (
    <Door class="status">
      {page}
      <p class="hint">
        <a href={hrefTo('')}>Back to sign-in</a>
      </p>
      <ProductLinks />
    </Door>
  )
}

const readinessTexts: Readonly<Record<Readiness, readonly [string, Tone]>> = {
  ready: ['Accepts requests', 'good'],
  not_ready: ['Starting or stopping', 'warn'],
  unreachable: ['Unreachable', 'bad'],
}

function Service() {
  const gateway = useGateway()
  const { data, failure } = useResource('GET /readyz', { everyMs, isOpen: true })
  const readiness = failure === null ? data?.status : toReadiness(failure)
  const [words, tone] = readinessTexts[readiness ?? 'unreachable']
  return (
    <Card title="Gateway">
      {readiness === undefined ? (
        <Loading what="the status" />
      ) : (
        <Pairs
          of={[
            ['State', <Badge tone={tone}>{words}</Badge>],
            gateway !== undefined && ['Version', gateway.version],
            gateway !== undefined && ['Providers', gateway.simulated ? 'Simulated' : 'Configured'],
            [
              'For programs',
              <>
                <a href="/healthz">GET /healthz</a>, <a href="/readyz">GET /readyz</a>
              </>,
            ],
          ]}
        />
      )}
    </Card>
  )
}

const deciders = { gateway: 'This gateway', redis: 'Redis', postgres: 'Postgres' } as const

function Stores() {
  const status = useResource('GET /api/v1/status', { everyMs })
  return (
    <div class="columns">
      <Card title="Stores">
        <Loaded resource={status} what="the stores">
          {({ database, redis, limits_decided_by: decider }) => (
            <Pairs
              of={[
                [database.kind === 'embedded' ? 'Embedded database' : 'Postgres', <StoreState of={database.state} />],
                ['Redis', redis === null ? 'Not configured' : <StoreState of={redis.state} />],
                ['Limits counted by', deciders[decider]],
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Moderation">
        <Loaded resource={status} what="the moderation">
          {({ moderation: { blocked_hosts: hosts, external } }) => (
            <Pairs
              of={[
                ['In the gateway', <Badge tone="good">On</Badge>],
                ['Blocked hosts', formatCount(hosts)],
                ['External', external === null ? 'No figures' : <External of={external} />],
              ]}
            />
          )}
        </Loaded>
      </Card>
    </div>
  )
}

function StoreState({ of: state }: { readonly of: 'ok' | 'unreachable' }): ComponentChildren {
  return state === 'ok' ? <Badge tone="good">Reachable</Badge> : <Badge tone="bad">Unreachable</Badge>
}

function External({ of: counts }: { readonly of: NonNullable<ShownStatus['moderation']['external']> }) {
  const { calls, blocked, failed, skipped } = counts
  const parts = [`${formatCount(calls)} calls`, `${blocked} blocked`, `${failed} failed`, `${skipped} skipped`]
  return <>{parts.join(', ')} since the start</>
}

const states = ['healthy', 'degraded', 'unhealthy'] as const

/** Health by provider: what every client may read. */
function Models() {
  const health = useResource('GET /api/v1/models/health', { everyMs, isOpen: true })
  return (
    <Card title="Models by health" about="Chat and embedding models. Unhealthy models go last in routing.">
      <Loaded resource={health} what="the models">
        {({ data }) => (
          <Table
            caption="Models by provider and health"
            rows={[...Map.groupBy(data, ({ model }) => model.slice(0, model.indexOf('/')))]}
            rowKey={([provider]) => provider}
            columns={[
              { name: 'Provider', isHeading: true, show: ([provider]) => provider },
              ...states.map(state => ({
                name: humanize(state),
                isNumber: true,
                show: ([, models]: readonly [string, readonly ModelHealth[]]) =>
                  models.filter(model => model.state === state).length,
              })),
            ]}
            empty={['No models', '']}
          />
        )}
      </Loaded>
    </Card>
  )
}
