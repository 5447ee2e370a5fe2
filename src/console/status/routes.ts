import { Elysia } from 'elysia'
import type { RegistrationConfig } from '../../core/accounts/single-sign-on.ts'
import type { Catalog } from '../../core/models/models.ts'
import type { Redis } from '../../database/redis.ts'
import { session, withRouteDocs } from '../../http/route-docs.ts'
import { type Authenticate, authorize, reply } from '../../http/session-routes.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import type { ModerationStats } from '../../text/moderation/layers/moderation.ts'
import { providerListShape, type ShownProvider, type ShownStatus, statusShape } from './schemas.ts'

type StatusDeps = {
  readonly version: string
  readonly readiness: { readonly isReady: boolean }
  /** Null = the providers are real. */
  readonly simulator: object | null
  /** Sends one query; rejects if the database does not answer in time. */
  readonly pingDatabase: () => Promise<unknown>
  readonly isEmbedded: boolean
  /** Null = not configured. */
  readonly redis: Pick<Redis, 'isReady'> | null
  /** Whether Redis decides limits: 1, or 0; null = not configured. */
  readonly sharedLimits: () => number | null
  readonly moderation: { figures(): ModerationStats }
  readonly config: { readonly registration: Pick<RegistrationConfig, 'mode'> }
}

/** `GET /api/v1/status`: this instance and its stores. Calls no provider. */
export function status(deps: StatusDeps, identify: Authenticate) {
  return new Elysia({ name: 'status' }).get(
    '/api/v1/status',
    async ({ request }) => {
      await authorize(identify, request, 'providers.see')
      return reply(await shownStatus(deps))
    },
    withRouteDocs(session('providers.see'), {
      summary: 'Get the status of the gateway',
      description: 'This instance, its stores and its moderation. `GET /healthz` and `GET /readyz` are for probes.',
      answer: statusShape,
    }),
  )
}

async function shownStatus(deps: StatusDeps): Promise<ShownStatus> {
  const {
    version,
    readiness,
    simulator,
    pingDatabase,
    isEmbedded,
    redis,
    sharedLimits,
    moderation: contentChecks,
    config,
  } = deps
  // With open registration anyone becomes an owner, who is not the operator: the figures are those of all accounts.
  const showsFigures = config.registration.mode !== 'open'
  const isReached = await pingDatabase().then(
    () => true,
    () => false,
  )
  const { blockedHosts, moderation } = contentChecks.figures()
  const shared = sharedLimits()
  return {
    version,
    ready: readiness.isReady,
    simulated: simulator !== null,
    database: { kind: isEmbedded ? 'embedded' : 'postgres', state: isReached ? 'ok' : 'unreachable' },
    redis: redis && { state: redis.isReady() ? 'ok' : 'unreachable' },
    limits_decided_by: shared === null ? 'gateway' : shared > 0 ? 'redis' : 'postgres',
    moderation: {
      blocked_hosts: blockedHosts,
      external:
        showsFigures && moderation !== null
          ? {
              calls: moderation.asked,
              blocked: moderation.blocked,
              failed: moderation.failed,
              skipped: moderation.passedOver,
            }
          : null,
    },
  }
}

type ProvidersDeps = {
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly catalog: Pick<Catalog, 'list'>
  readonly health: Pick<HealthTracker, 'getActivity'>
  readonly config: { readonly registration: Pick<RegistrationConfig, 'mode'> }
}

/** `GET /api/v1/providers`: the configured providers as this process sees them. Calls no provider. */
export function providers(deps: ProvidersDeps, identify: Authenticate) {
  // With open registration anyone becomes an owner, who is not the operator.
  const showsPools = deps.config.registration.mode !== 'open'
  return new Elysia({ name: 'providers' }).get(
    '/api/v1/providers',
    async ({ request }) => {
      await authorize(identify, request, 'providers.see')
      return reply({ data: [...deps.endpoints.values()].map(endpoint => shown(deps, endpoint, showsPools)) })
    },
    withRouteDocs(session('providers.see'), {
      summary: 'List configured providers',
      description:
        'Reachability, last error, keys and reported limits, as this process saw them since its start. Pools are shown unless registration is open.',
      answer: providerListShape,
    }),
  )
}

function shown(
  { catalog, health }: ProvidersDeps,
  { id, simulated, keys }: ConfiguredProvider,
  showsPools: boolean,
): ShownProvider {
  const { lastSuccessAt, lastFailure } = health.getActivity(id)
  const isFailureLast = lastFailure !== null && lastFailure.at >= (lastSuccessAt ?? 0)
  const hasAnswered = !isFailureLast || (lastFailure.kind !== 'connection_failed' && lastFailure.kind !== 'timeout')
  const pool = showsPools ? (keys?.status() ?? null) : null
  return {
    id,
    simulated,
    models: catalog.list.filter(({ provider }) => provider === id).length,
    reachable: lastSuccessAt === null && lastFailure === null ? 'unknown' : hasAnswered ? 'yes' : 'no',
    last_success_at: lastSuccessAt === null ? null : new Date(lastSuccessAt).toISOString(),
    last_error: lastFailure && { code: lastFailure.kind, at: new Date(lastFailure.at).toISOString() },
    pool: pool && { keys: pool.keys, rejected_keys: pool.rejectedKeys, limits: [...pool.limits] },
  }
}
