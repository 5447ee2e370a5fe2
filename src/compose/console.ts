/** Opens what the console API needs: keys, sessions and their secrets, billing, email, webhooks, and their workers. */
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import type { StoredKey } from '../config/stored-keys.ts'
import { startRetention } from '../console/account/retention.ts'
import { startAlertWorker } from '../console/alerts/worker.ts'
import { createAddressDigests, loadOrCreateSessionSecret } from '../console/auth/session-secret.ts'
import { createSessionDirectory } from '../console/auth/stores/sessions.ts'
import { manualPayments } from '../console/billing/payment-processor.ts'
import { startBillingWorker, startNoticeWorker } from '../console/billing/worker.ts'
import { createKeyDirectory } from '../console/keys/stores/keys.ts'
import { followStoredSettings } from '../console/provider-keys/follow.ts'
import { createProviderKeySeal, type ProviderKeySeal, resealProviderKeys } from '../console/provider-keys/store.ts'
import { resealSecrets } from '../console/webhooks/stores/webhooks.ts'
import { startWebhooks } from '../console/webhooks/worker.ts'
import { createLimitKeys } from '../core/limits/redis.ts'
import type { Catalog } from '../core/models/models.ts'
import type { SwitchesByModel } from '../core/models/switches.ts'
import type { Database } from '../database/database.ts'
import { createBudgetTracker } from '../database/repositories/budget-tracker.ts'
import { createIdempotencyStore } from '../database/repositories/idempotency.ts'
import { createReasoningSeal } from '../dialects/reasoning-seal.ts'
import { callerAddress, createTokens } from '../http/authentication.ts'
import { derivedSecrets } from '../http/idempotency.ts'
import { createTextSeal, type TextSeal } from '../http/text-seal.ts'
import { forgetScript } from '../limits/redis-upkeep-scripts.ts'
import { createMailer, type Mailer } from '../mail/mailer.ts'
import { createMail } from '../mail/queue.ts'
import type { OwnKeys } from '../providers/keys/own-keys.ts'
import { createResolver } from '../web/hop.ts'
import { createHttpPost } from '../web/http-post.ts'
import type { Process } from './process.ts'
import type { Usage } from './usage.ts'

type IdentityParts = Pick<Process, 'clock' | 'log'> & {
  readonly database: Database
  readonly usage: Pick<Usage, 'redis' | 'channel'>
  /** Whether Postgres is available: keys are then loaded before the first request, otherwise at the first poll. */
  readonly isPostgresThere: boolean
  readonly useStoredKeys: (keys: readonly StoredKey[]) => void
  readonly ownKeys: Pick<OwnKeys, 'replace'>
  readonly useSwitches: (switches: SwitchesByModel) => void
}

/** Opens the directories of keys and sessions. `undo` receives the functions that close them. */
export async function openIdentity(config: Config, parts: IdentityParts, undo: AsyncDisposableStack) {
  const { database, clock, log, usage } = parts
  const { plans, maximumShortfall, jwtSecretPrevious: previousSecret, isTrustedProxy } = config
  const secret = config.jwtSecret ?? loadOrCreateSessionSecret(join(config.dataDirectory, 'session-secret'))
  const providerKeySeal = createProviderKeySeal(secret, previousSecret)
  const storedSettings = followStoredSettings({
    ...{ database, log, seal: providerKeySeal, whose: config.storedKeys },
    onChange({ operatorKeys, ownKeys, switches }) {
      parts.useStoredKeys(operatorKeys)
      parts.useSwitches(switches)
      parts.ownKeys.replace(ownKeys, providerKeySeal.open)
    },
  })
  undo.defer(() => storedSettings.close())
  const keys = createKeyDirectory({
    database,
    clock,
    plans,
    maximumShortfall,
    random: Math.random,
    before: storedSettings.loaded,
  })
  undo.defer(() => keys.close())
  if (parts.isPostgresThere) await keys.look()
  const sessions = createSessionDirectory({ database, clock })
  const look = () => {
    sessions.forget()
    void keys.look()
    void storedSettings.look()
  }
  const channel = usage.channel(look)
  undo.defer(() => channel?.close())
  const idempotency = createIdempotencyStore({ database, redis: usage.redis, log })
  undo.defer(() => idempotency.close())
  const stableSecret = previousSecret ?? secret
  const getCacheSecret = derivedSecrets(stableSecret, 'prompt cache')
  return {
    /** Seals the signing secrets of webhooks. */
    secretSeal: createTextSeal({ secret, previousSecret, purpose: 'gateway-ai webhook secrets', prefix: 'gww1.' }),
    keys,
    providerKeySeal,
    /** Reads now what owners have changed. */
    storedSettings,
    sessions,
    idempotency,
    /** Reports a change of keys, users or plans, so that every gateway instance reads them immediately. */
    announce() {
      look()
      channel?.publish()
    },
    /** Derives the secret under which a user's requests with an `Idempotency-Key` are stored. */
    getSecret: derivedSecrets(stableSecret, 'idempotency'),
    /** Returns the name under which a provider caches an account's conversation: the same on every gateway instance. */
    getPromptCacheKey: (accountId: string, name: string) => getCacheSecret(JSON.stringify([accountId, name])),
    /** Secret of the digests of conversations, the same on every gateway instance. */
    conversationSecret: derivedSecrets(stableSecret, 'conversations')(''),
    /** Seals reasoning that clients send back with the next turn. */
    reasoningSeal: createReasoningSeal(secret, previousSecret),
    /** Seals the secrets of two-factor sign-in. */
    totpSeal: createTextSeal({ secret, previousSecret, purpose: 'gateway-ai two-factor', prefix: 'gwt1.' }),
    tokens: createTokens({ secret, previousSecret, clock }),
    addressDigests: createAddressDigests(secret, previousSecret),
    /** Returns the network address of a client; behind a trusted proxy the address that the proxy reports. */
    getAddress: (request: Request, server: Bun.Server<unknown> | null) =>
      callerAddress(
        server?.requestIP(request)?.address ?? null,
        request.headers.get('x-forwarded-for'),
        isTrustedProxy,
      ),
  }
}

type ConsoleParts = Pick<Process, 'clock' | 'network' | 'log' | 'newId' | 'timer' | 'pages'> & {
  readonly database: Database
  readonly redis: Usage['redis']
  readonly secretSeal: TextSeal
  readonly providerKeySeal: ProviderKeySeal
  readonly catalog: Catalog
  readonly health: Parameters<typeof startAlertWorker>[0]['health']
}

/**
 * Opens payments, email, soft caps, webhooks and single sign-on, with the workers that close billing cycles, send
 * notices, evaluate alerts, deliver events and delete old data. `undo` receives the functions that close them.
 */
export async function openConsole(config: Config, parts: ConsoleParts, undo: AsyncDisposableStack) {
  const { database, clock, network, redis, secretSeal, providerKeySeal, pages } = parts
  const payments = await openPayments(config, parts)
  const post = await openMailer(config, parts, undo)
  const billingWorker = startBillingWorker({ ...parts, payments, manual: manualPayments })
  undo.defer(() => billingWorker.close())
  const noticeWorker = post === null ? null : startNoticeWorker({ ...parts, post })
  undo.defer(() => noticeWorker?.close())
  const limitKeys = createLimitKeys(config.redisUrls)
  /** In Redis, whose scopes name tags for two days more. An open request settles as after the loss of its account. */
  const forgetCounters = async (accountId: string) => {
    await redis?.evaluate(forgetScript, [limitKeys.account(accountId)], [])
  }
  const { resolve = createResolver(config.serviceDeadlines.nameResolutionMs), dial } = pages
  const webhooks = startWebhooks({
    ...parts,
    seal: secretSeal,
    post: createHttpPost({
      resolve,
      privateAllowed: config.privateWebhooks,
      ...(dial === undefined ? {} : { dial }),
    }),
  })
  undo.defer(() => webhooks.worker.close())
  const reseal =
    config.jwtSecretPrevious === null
      ? null
      : async () => {
          await resealSecrets(database, secretSeal.reseal)
          await resealProviderKeys(database, providerKeySeal.reseal)
        }
  const retention = startRetention({ ...parts, forgetCounters, reseal })
  undo.defer(() => retention.close())
  const alertWorker = startAlertWorker({ ...parts, post, plans: config.plans })
  undo.defer(() => alertWorker.close())
  return {
    payments,
    post,
    billingWorker,
    noticeWorker,
    webhooks,
    alertWorker,
    forgetCounters,
    identityProvider: await openSingleSignOn(config, { clock, network }),
    budget: createBudgetTracker(database, clock),
  }
}

/** Opens manual invoicing, or Stripe, whose library is loaded only if Stripe is configured. */
async function openPayments(
  { stripe, serviceDeadlines }: Config,
  { network, clock }: Pick<Process, 'network' | 'clock'>,
) {
  if (stripe === null) return manualPayments
  const { stripePayments } = await import('../console/billing/payments/stripe.ts')
  return stripePayments({ ...stripe, timeoutMs: serviceDeadlines.paymentMs }, { fetch: network.fetch, now: clock.now })
}

/** Opens the mailer if a mail server is configured; its library is loaded only then. */
async function openMailer(
  { mail, serviceDeadlines }: Config,
  { clock, log }: Pick<Process, 'clock' | 'log'>,
  undo: AsyncDisposableStack,
): Promise<Mailer | null> {
  if (mail === null) return null
  const { smtpTransport } = await import('../mail/queue.ts')
  const { smtpUrl: url, from, requireTls, publicUrl } = mail
  const transport = smtpTransport({ url, from, requireTls, openingMs: serviceDeadlines.mailOpeningMs })
  const queue = createMail({ transport, clock, log })
  undo.defer(() => queue.close())
  return createMailer(queue, publicUrl)
}

/** Opens the client of the identity provider; its library is loaded only if single sign-on is configured. */
async function openSingleSignOn({ singleSignOn, serviceDeadlines }: Config, deps: Pick<Process, 'clock' | 'network'>) {
  if (singleSignOn === null) return null
  const { createIdentityProvider } = await import('../console/auth/identity-provider.ts')
  return createIdentityProvider(singleSignOn, { ...deps, timeoutMs: serviceDeadlines.identityProviderMs })
}
