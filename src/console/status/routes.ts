import type { RegistrationConfig } from '../../core/accounts/single-sign-on.ts'
import type { Redis } from '../../database/redis.ts'
import type { ModerationStats } from '../../text/moderation/layers/moderation.ts'
import { type Authenticate, sessionRoute, sessionRoutes } from '../routes.ts'
import { type ShownStatus, statusShape } from './schemas.ts'

type StatusDeps = {
  readonly version: string
  readonly readiness: { readonly isReady: boolean }
  readonly isSimulated: () => boolean
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
  return sessionRoutes('status', identify, [
    sessionRoute({
      route: 'GET /api/v1/status',
      action: 'providers.see',
      summary: 'Get the status of the gateway',
      description: 'This instance, its stores and its moderation. `GET /healthz` and `GET /readyz` are for probes.',
      answer: statusShape,
      handle: () => shownStatus(deps),
    }),
  ])
}

async function shownStatus(deps: StatusDeps): Promise<ShownStatus> {
  const {
    version,
    readiness,
    isSimulated,
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
    simulated: isSimulated(),
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
