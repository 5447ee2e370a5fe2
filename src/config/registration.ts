import { type RegistrationConfig, registrationModes } from '../core/accounts/registration.ts'
import type { EnvironmentReader } from './environment.ts'

const domainShape = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/

/** Reads a list of email domains; null = not set. */
export function readDomains(read: EnvironmentReader, name: string, problems: string[]): readonly string[] | null {
  const domains = read.list(name)?.map(domain => domain.toLowerCase()) ?? null
  if (domains?.length === 0) problems.push(`${name}: is empty; list at least one domain or unset it`)
  for (const domain of domains ?? [])
    if (!domainShape.test(domain))
      problems.push(`${name}: "${domain}" is not a domain; write it as in example.com, without @ or wildcard`)
  return domains
}

/** Reads `REGISTRATION` and `REGISTRATION_DOMAINS`. `hasMail` = email addresses are confirmed. */
export function readRegistration(
  read: EnvironmentReader,
  hasMail: boolean,
  problems: string[],
  warnings: string[],
): RegistrationConfig {
  // Registration sets a password.
  const usual = read.text('OIDC_ONLY')?.toLowerCase() === 'true' ? 'invitation' : 'open'
  const mode = read.oneOf('REGISTRATION', registrationModes, usual)
  const domains = readDomains(read, 'REGISTRATION_DOMAINS', problems)
  if (domains === null) return { mode, domains }
  if (mode !== 'open') problems.push(`REGISTRATION_DOMAINS: has no effect with REGISTRATION=${mode}; unset one of them`)
  if (!hasMail)
    warnings.push(
      'REGISTRATION_DOMAINS is set without SMTP_URL: addresses are not confirmed, so anyone can register one of these domains',
    )
  return { mode, domains }
}
