import { Elysia } from 'elysia'
import type { RegistrationConfig } from '../../core/accounts/registration.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import type { Catalog } from '../../core/models/models.ts'
import { session, withRouteDocs } from '../../http/route-docs.ts'
import { type Authenticate, forbidden, refuseWithoutTwoFactor, reply } from '../../http/session-routes.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import { providerListShape, type ShownProvider } from './schemas.ts'

type ProvidersDeps = {
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly catalogue: Pick<Catalog, 'list'>
  readonly health: Pick<HealthTracker, 'activityOf'>
  readonly config: { readonly registration: Pick<RegistrationConfig, 'mode'> }
}

/** `GET /api/v1/providers`: the configured providers as this process sees them. Calls no provider. */
export function providers(deps: ProvidersDeps, identify: Authenticate) {
  // With open registration anyone becomes an owner, who is not the operator.
  const showsPools = deps.config.registration.mode !== 'open'
  return new Elysia({ name: 'providers' }).get(
    '/api/v1/providers',
    async ({ request }) => {
      const principal = await identify.principal(request.headers)
      if (!isAllowed(principal.role, 'providers.see')) throw forbidden()
      refuseWithoutTwoFactor(principal)
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
  { catalogue, health }: ProvidersDeps,
  { id, simulated, keys }: ConfiguredProvider,
  showsPools: boolean,
): ShownProvider {
  const { lastSuccessAt, lastFailure } = health.activityOf(id)
  const isFailureLast = lastFailure !== null && lastFailure.at >= (lastSuccessAt ?? 0)
  const hasAnswered = !isFailureLast || (lastFailure.kind !== 'connection_failed' && lastFailure.kind !== 'timeout')
  const pool = showsPools ? (keys?.status() ?? null) : null
  return {
    id,
    simulated,
    models: catalogue.list.filter(({ provider }) => provider === id).length,
    reachable: lastSuccessAt === null && lastFailure === null ? 'unknown' : hasAnswered ? 'yes' : 'no',
    last_success_at: lastSuccessAt === null ? null : new Date(lastSuccessAt).toISOString(),
    last_error: lastFailure && { code: lastFailure.kind, at: new Date(lastFailure.at).toISOString() },
    pool: pool && { keys: pool.keys, rejected_keys: pool.rejectedKeys, limits: [...pool.limits] },
  }
}
