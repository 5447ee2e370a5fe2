/** Authentication: API keys, sessions, and the secrets of both. */
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { createSessionDirectory } from '../console/auth/stores/sessions.ts'
import { createKeyDirectory } from '../console/keys/stores/keys.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { Database } from '../database/database.ts'
import { createIdempotencyBook } from '../database/repositories/idempotency.ts'
import { createReasoningSeal } from '../dialects/reasoning-seal.ts'
import { callerAddress, createTokens } from '../http/authentication.ts'
import { derivedSecrets } from '../http/idempotency.ts'
import { createTextSeal } from '../http/text-seal.ts'
import { createAddressDigests } from './address-digests.ts'
import type { Usage } from './open-usage.ts'
import { loadOrCreateSessionSecret } from './session-secret.ts'

type Parts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly usage: Pick<Usage, 'redis' | 'channel'>
  /** Whether Postgres is available: keys are then loaded before the first request, otherwise at the first poll. */
  readonly isPostgresThere: boolean
}

/** Opens the directories of keys and sessions. `undo` receives the functions that close them. */
export async function openIdentity(config: Config, parts: Parts, undo: (() => unknown)[]) {
  const { database, clock, log, usage } = parts
  const { plans, maximumShortfall, jwtSecretPrevious: previousSecret, isTrustedProxy } = config
  const keys = createKeyDirectory({ database, clock, plans, maximumShortfall, random: Math.random })
  undo.push(() => keys.close())
  if (parts.isPostgresThere) await keys.look()
  const sessions = createSessionDirectory({ database, clock })
  const look = () => {
    sessions.forget()
    void keys.look()
  }
  const channel = usage.channel(look)
  undo.push(() => channel?.close())
  const idempotency = createIdempotencyBook({ database, redis: usage.redis, log })
  undo.push(() => idempotency.close())
  const secret = config.jwtSecret ?? loadOrCreateSessionSecret(join(config.dataDirectory, 'session-secret'))
  const stableSecret = previousSecret ?? secret
  const cacheSecretOf = derivedSecrets(stableSecret, 'prompt cache')
  return {
    sessionSecret: secret,
    keys,
    sessions,
    idempotency,
    announce() {
      look()
      channel?.publish()
    },
    secretOf: derivedSecrets(stableSecret, 'idempotency'),
    promptCacheKeyOf: (accountId: string, name: string) => cacheSecretOf(JSON.stringify([accountId, name])),
    reasoningSeal: createReasoningSeal(secret, previousSecret),
    totpSeal: createTextSeal({ secret, previousSecret, purpose: 'gateway-ai two-factor', prefix: 'gwt1.' }),
    tokens: createTokens({ secret, previousSecret, clock }),
    addressDigests: createAddressDigests(secret, previousSecret),
    addressOf: (request: Request, server: Bun.Server<unknown> | null) =>
      callerAddress(
        server?.requestIP(request)?.address ?? null,
        request.headers.get('x-forwarded-for'),
        isTrustedProxy,
      ),
  }
}
