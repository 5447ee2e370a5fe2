import type { EnvironmentReader } from './environment.ts'

export type StripeConfig = {
  readonly secretKey: string
  /** One secret, or two during a rotation. */
  readonly webhookSecrets: readonly string[]
  /** Null = Stripe's own URL. */
  readonly apiBase: string | null
  /** Origin to which Stripe's pages return. */
  readonly publicUrl: string
}

const shortestWebhookSecret = 24

/**
 * Reads the payment settings. `publicUrl` is the origin of the dashboard; null = unknown, so Stripe's pages could not
 * return to it.
 *
 * Without a webhook secret anyone could mark an invoice as paid, so payments are then not available.
 */
export function readStripe(read: EnvironmentReader, publicUrl: string | null, problems: string[]): StripeConfig | null {
  const secretKey = read.secret('STRIPE_SECRET_KEY')
  const secret = read.secret('STRIPE_WEBHOOK_SECRET')
  const apiBase = read.baseUrl('STRIPE_API_BASE')
  if (apiBase !== null && URL.canParse(apiBase) && new URL(apiBase).pathname !== '/')
    problems.push('STRIPE_API_BASE: must be an origin, such as https://api.stripe.com, without a path')
  if (secretKey === null && secret === null) return null
  if (secretKey === null) problems.push('STRIPE_SECRET_KEY: required with STRIPE_WEBHOOK_SECRET')
  const webhookSecrets = (secret ?? '').split(',').map(one => one.trim())
  if (secret === null)
    problems.push(
      'STRIPE_WEBHOOK_SECRET: required with STRIPE_SECRET_KEY; it is the endpoint’s signing secret (whsec_…)',
    )
  else if (webhookSecrets.length > 2 || webhookSecrets.some(one => one.length < shortestWebhookSecret))
    problems.push(
      `STRIPE_WEBHOOK_SECRET: must be one secret of at least ${shortestWebhookSecret} characters, or two separated by a comma during a rotation`,
    )
  if (publicUrl === null) problems.push('PUBLIC_URL: required with STRIPE_SECRET_KEY; Stripe’s pages return to it')
  return { secretKey: secretKey ?? '', webhookSecrets, apiBase, publicUrl: publicUrl ?? '' }
}

/** Reads `OWNER_UPGRADES`: whether an owner's consent to charges is enough for plan `usage` where no card secures it. */
export function readOwnerUpgrades(read: EnvironmentReader, hasStripe: boolean, problems: string[]): boolean {
  const isAllowed = read.oneOf('OWNER_UPGRADES', ['allow', 'refuse'], 'refuse') === 'allow'
  if (isAllowed && hasStripe)
    problems.push('OWNER_UPGRADES: has no effect with STRIPE_SECRET_KEY, where owners upgrade with a card; unset it')
  return isAllowed
}
