import { isPrivateHost } from './addresses.ts'
import type { EnvironmentReader } from './environment.ts'

export type MailConfig = {
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
