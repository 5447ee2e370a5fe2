/** Services of others: mail, Stripe, telemetry and web search. */
import { isPrivateHost } from './addresses.ts'
import type { EnvironmentReader } from './environment.ts'

type MailConfig = {
  readonly smtpUrl: string
  readonly from: string
  /** URL at which browsers reach this gateway; without a trailing slash. */
  readonly publicUrl: string
  /** True if credentials would leave the private network. */
  readonly requireTls: boolean
}

const mailAddress = '[^\\s\\x00-\\x1f@<>,;"()]{1,64}@[^\\s\\x00-\\x1f@<>,;"()]{1,190}'
const sender = new RegExp(`^(?:${mailAddress}|[^<>@,;"\\x00-\\x1f]{1,100} <${mailAddress}>)$`)

/** Reads `PUBLIC_URL`, the origin at which browsers reach this gateway; null = not set. */
export function readPublicUrl(read: EnvironmentReader, problems: string[]): string | null {
  const publicUrl = read.baseUrl('PUBLIC_URL')
  if (publicUrl !== null && URL.canParse(publicUrl) && new URL(publicUrl).origin !== publicUrl)
    problems.push('PUBLIC_URL: must be an origin, such as https://gateway.example.com, without a path')
  return publicUrl
}

/**
 * Reads the email settings. Emails contain links as powerful as passwords, so only the operator configures where they
 * lead.
 */
export function readMail(
  read: EnvironmentReader,
  publicUrl: string | null,
  problems: string[],
  warnings: string[],
): MailConfig | null {
  const smtpUrl = read.url('SMTP_URL', ['smtp:', 'smtps:'])
  const from = read.text('MAIL_FROM')
  if (from !== null && !sender.test(from))
    problems.push('MAIL_FROM: must be an address, such as gateway@example.com or "Gateway <gateway@example.com>"')
  if (smtpUrl === null) {
    if (from !== null) warnings.push('MAIL_FROM is set without SMTP_URL: no email is sent; set both or neither')
    return null
  }
  const { protocol, hostname, username } = new URL(smtpUrl)
  if (hostname === '') problems.push('SMTP_URL: contains no host')
  if (from === null) problems.push('MAIL_FROM: required with SMTP_URL; it is the sender address of emails')
  if (publicUrl === null) problems.push('PUBLIC_URL: required with SMTP_URL; links in emails lead to it')
  const requireTls = protocol === 'smtp:' && username !== '' && !isPrivateHost(hostname)
  return { smtpUrl, from: from ?? '', publicUrl: publicUrl ?? '', requireTls }
}

type StripeConfig = {
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
  const webhookSecrets = (secret ?? '').split(',').map(part => part.trim())
  if (secret === null)
    problems.push(
      'STRIPE_WEBHOOK_SECRET: required with STRIPE_SECRET_KEY; it is the endpoint’s signing secret (whsec_…)',
    )
  else if (
    webhookSecrets.length > 2 ||
    webhookSecrets.some(webhookSecret => webhookSecret.length < shortestWebhookSecret)
  )
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

type OtlpConfig = {
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
  /** Share of requests that are traced, 0–1. */
  readonly sampleRatio: number
  readonly metricsEveryMs: number
}

const minute = 60_000

/** Reads OpenTelemetry's standard variables; even without an endpoint, so that invalid ones are reported. */
export function readOtlp(read: EnvironmentReader, problems: string[]): OtlpConfig | null {
  const endpoint = read.baseUrl('OTEL_EXPORTER_OTLP_ENDPOINT')
  const headers: Record<string, string> = {}
  for (const pair of (read.secret('OTEL_EXPORTER_OTLP_HEADERS') ?? '').split(',').filter(part => part.trim() !== '')) {
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*([\x20-\x7e]*?)\s*$/.exec(pair) ?? []
    if (name === undefined || value === undefined)
      problems.push('OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs separated by commas')
    else headers[name] = value.includes('%') ? decodedOr(value) : value
  }
  const ratio = read.text('OTEL_TRACES_SAMPLER_ARG') ?? '0.1'
  if (!/^(0|1|[01]?\.\d+)$/.test(ratio) || Number(ratio) > 1)
    problems.push('OTEL_TRACES_SAMPLER_ARG: must be a share of requests from 0 to 1, such as 0.1')
  const metricsEveryMs = read.integer('OTEL_METRIC_EXPORT_INTERVAL', minute, 1_000, 60 * minute)
  return endpoint === null ? null : { endpoint, headers, sampleRatio: Number(ratio), metricsEveryMs }
}

/** Decodes percent-encoding; returns the text unchanged if it is invalid. */
function decodedOr(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export type SearchSettings =
  | { readonly id: 'searxng'; readonly baseUrl: string }
  | { readonly id: 'brave' | 'tavily'; readonly baseUrl: string | null; readonly apiKey: string }

/** Returns the back ends for web search in calling order. */
export function readSearch(read: EnvironmentReader): readonly SearchSettings[] {
  const settings: SearchSettings[] = []
  const searxng = read.baseUrl('SEARXNG_URL')
  if (searxng !== null) settings.push({ id: 'searxng', baseUrl: searxng })
  for (const [id, name] of [
    ['brave', 'BRAVE'],
    ['tavily', 'TAVILY'],
  ] as const) {
    const apiKey = read.secret(`${name}_API_KEY`)
    const baseUrl = read.baseUrl(`${name}_BASE_URL`)
    if (apiKey !== null) settings.push({ id, baseUrl, apiKey })
  }
  return settings
}
