import type { RandomBytes } from '../core/accounts/api-keys.ts'
import type { Passwords } from '../core/accounts/passwords.ts'
import type { RegistrationConfig, SingleSignOnConfig } from '../core/accounts/single-sign-on.ts'
import type { RepeatTimer } from '../core/jobs/repeating.ts'
import type { Plans } from '../core/limits/plans.ts'
import type { Catalog } from '../core/models/models.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { DailyUsage } from '../core/usage/usage-record.ts'
import type { Database } from '../database/database.ts'
import type { Tokens } from '../http/authentication.ts'
import type { OnceDeps } from '../http/idempotency.ts'
import type { TextSeal } from '../http/text-seal.ts'
import type { Meter } from '../limits/meter.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { IdentityProvider } from './auth/identity-provider.ts'
import type { Payments } from './billing/payment-processor.ts'
import type { KeyDirectory } from './keys/stores/keys.ts'
import type { OpenRouteDeps } from './routes.ts'

/** What the features of the console use of the gateway. Each names its part: `Pick<ConsoleDeps, …>`. */
export type ConsoleDeps = OnceDeps &
  OpenRouteDeps & {
    readonly config: {
      readonly plans: Plans
      readonly registration: RegistrationConfig
      readonly singleSignOn: SingleSignOnConfig | null
      readonly ownerUpgrades: boolean
      readonly privateWebhooks: boolean
      readonly routing: { readonly judgeModel: string | null }
    }
    readonly database: Database
    readonly catalog: Pick<Catalog, 'resolve'>
    readonly clock: Pick<Clock, 'now'>
    readonly timer: RepeatTimer
    readonly log: Pick<Log, 'info' | 'warn' | 'error'>
    readonly randomBytes: RandomBytes
    readonly newId: (prefix: string) => string
    /** Makes every gateway instance read changed keys, users and plans again. */
    readonly announce: () => void
    /** Forgets cached sessions of this process. */
    readonly sessions: { forget(): void }
    readonly tokens: Pick<Tokens, 'sign' | 'nextRefreshToken'>
    readonly passwords: Passwords
    readonly addressDigests: (email: string, address: string) => readonly string[]
    readonly totpSeal: TextSeal
    /** Null = single sign-on is not configured. */
    readonly identityProvider: IdentityProvider | null
    /** Null = no mail server is configured. */
    readonly post: Mailer | null
    readonly keys: Pick<KeyDirectory, 'expect'>
    readonly payments: Payments
    readonly webhooks: {
      readonly seal: Pick<TextSeal, 'seal'>
      readonly newSecret: () => string
      /** Sends due events now instead of at the next poll. */
      readonly wake: () => void
    }
    readonly meter: Pick<Meter, 'quotaStatus'>
    /** Returns the daily usage of an account on a UTC day (days since the epoch), unshipped records included. */
    readonly spent: (accountId: string, day: number) => Promise<DailyUsage>
    /** Forgets the limit counters of an account, whose scopes name tags. */
    readonly forgetCounters: (accountId: string) => Promise<void>
  }
