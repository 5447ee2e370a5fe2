import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ShownStatus } from '../../console/status/schemas.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import { Badge } from '../parts/badge.tsx'
import { DetailRow } from '../parts/conversation-turn.tsx'
import { Logo } from '../parts/logo.tsx'
import { Empty, FailureNotice, Loaded, Loading, type Tone } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { ProductLinks } from '../parts/product-links.tsx'
import { Providers } from '../parts/providers.tsx'
import { Table } from '../parts/table.tsx'
import { callOpen } from '../state/api.ts'
import { asFailure, type RequestError } from '../state/api-error.ts'
import { formatCount } from '../state/format.ts'
import { useGateway } from '../state/gateway.ts'
import { hrefTo } from '../state/href.ts'
import { type Readiness, readinessOf } from '../state/readiness.ts'
import { useResource } from '../state/resource.ts'
import type { ModelHealth } from '../state/routes.ts'
import { currentSession } from '../state/session.ts'
import { whileVisible } from '../state/while-visible.ts'

const everyMs = 15_000

/** The status of the gateway: whether it accepts requests, and for owners and admins its stores too. */
export function StatusPage() {
  const current = currentSession.value
  const role = current?.two_factor_setup_required === false ? current.user.role : undefined
  const seesStores = role !== undefined && isAllowed(role, 'providers.see')
  const page = (
    <Page title="Status" about={`The gateway now, checked every ${everyMs / 1000} s.`}>
      <Service />
      {seesStores ? <Stores /> : <p class="hint">Owners and admins also see stores, moderation and providers here.</p>}
      {seesStores && <Providers />}
      <Models />
    </Page>
  )
  if (role !== undefined) return page
  return (
    <main class="door status">
      <p class="brand">
        <Logo /> gateway-ai
      </p>
      {page}
      <p class="hint">
        <a href={hrefTo('')}>Back to sign-in</a>
      </p>
      <ProductLinks />
    </main>
  )
}

const readinessTexts: Readonly<Record<Readiness, readonly [string, Tone]>> = {
  ready: ['Accepts requests', 'good'],
  not_ready: ['Starting or stopping', 'warn'],
  unreachable: ['Unreachable', 'bad'],
}

function Service() {
  const gateway = useGateway()
  const { data: readiness } = useOpen(readReadiness)
  const [words, tone] = readinessTexts[readiness ?? 'unreachable']
  return (
    <Card title="Gateway">
      {readiness === null ? (
        <Loading what="the status" />
      ) : (
        <dl class="pairs">
          <DetailRow name="State" value={<Badge tone={tone}>{words}</Badge>} />
          {gateway !== null && <DetailRow name="Version" value={gateway.version} />}
          {gateway !== null && <DetailRow name="Providers" value={gateway.simulated ? 'Simulated' : 'Configured'} />}
          <DetailRow
            name="For programs"
            value={
              <>
                <a href="/healthz">GET /healthz</a>, <a href="/readyz">GET /readyz</a>
              </>
            }
          />
        </dl>
      )}
    </Card>
  )
}

const readReadiness = (): Promise<Readiness> => callOpen('GET /readyz').then(({ status }) => status, readinessOf)

type Open<T> = { readonly data: T | null; readonly failure: RequestError | null }

/** Returns what `read` found last, and its failure since; repeats it while the tab is visible. */
function useOpen<T>(read: () => Promise<T>): Open<T> {
  const [found, setFound] = useState<Open<T>>({ data: null, failure: null })
  useEffect(() => {
    let isShown = true
    const load = () =>
      void read().then(
        data => isShown && setFound({ data, failure: null }),
        thrown => isShown && setFound(({ data }) => ({ data, failure: asFailure(thrown) })),
      )
    load()
    const stop = whileVisible(everyMs, load)
    return () => {
      isShown = false
      stop()
    }
  }, [])
  return found
}

const deciders = { gateway: 'This gateway', redis: 'Redis', postgres: 'Postgres' } as const

function Stores() {
  const status = useResource('GET /api/v1/status', { everyMs })
  return (
    <div class="columns">
      <Card title="Stores">
        <Loaded resource={status} what="the stores">
          {({ database, redis, limits_decided_by: decider }) => (
            <dl class="pairs">
              <DetailRow
                name={database.kind === 'embedded' ? 'Embedded database' : 'Postgres'}
                value={<StoreState of={database.state} />}
              />
              <DetailRow name="Redis" value={redis === null ? 'Not configured' : <StoreState of={redis.state} />} />
              <DetailRow name="Limits counted by" value={deciders[decider]} />
            </dl>
          )}
        </Loaded>
      </Card>
      <Card title="Moderation">
        <Loaded resource={status} what="the moderation">
          {({ moderation: { blocked_hosts: hosts, external } }) => (
            <dl class="pairs">
              <DetailRow name="In the gateway" value={<Badge tone="good">On</Badge>} />
              <DetailRow name="Blocked hosts" value={formatCount(hosts)} />
              <DetailRow name="External" value={external === null ? 'No figures' : <External of={external} />} />
            </dl>
          )}
        </Loaded>
      </Card>
    </div>
  )
}

function StoreState({ of: state }: { readonly of: 'ok' | 'unreachable' }): ComponentChildren {
  return state === 'ok' ? <Badge tone="good">Reachable</Badge> : <Badge tone="bad">Unreachable</Badge>
}

function External({ of: one }: { readonly of: NonNullable<ShownStatus['moderation']['external']> }) {
  const { calls, blocked, failed, skipped } = one
  const parts = [`${formatCount(calls)} calls`, `${blocked} blocked`, `${failed} failed`, `${skipped} skipped`]
  return <>{parts.join(', ')} since the start</>
}

const states = ['healthy', 'degraded', 'unhealthy'] as const

/** Health by provider: what every client may read. */
function Models() {
  const { data: found, failure } = useOpen(() => callOpen('GET /api/v1/models/health'))
  const providers = [...Map.groupBy(found?.data ?? [], ({ model }) => model.slice(0, model.indexOf('/')))]
  const counted = (models: readonly ModelHealth[], state: ModelHealth['state']) =>
    models.filter(one => one.state === state).length
  return (
    <Card title="Models by health" about="Chat and embedding models. Unhealthy models go last in routing.">
      {failure !== null && <FailureNotice failure={failure} />}
      {found === null && failure === null && <Loading what="the models" />}
      {found?.data.length === 0 && <Empty title="No models" />}
      {providers.length > 0 && (
        <Table
          caption="Models by provider and health"
          rows={providers}
          rowKey={([provider]) => provider}
          columns={[
            { name: 'Provider', isHeading: true, show: ([provider]) => provider },
            ...states.map(state => ({
              name: `${state.charAt(0).toUpperCase()}${state.slice(1)}`,
              isNumber: true,
              show: ([, models]: (typeof providers)[number]) => counted(models, state),
            })),
          ]}
        />
      )}
    </Card>
  )
}
