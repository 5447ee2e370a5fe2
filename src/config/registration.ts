import { type RegistrationConfig, registrationModes } from '../core/accounts/registration.ts'
import type { EnvironmentReader } from './environment.ts'

const domainShape = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/

/** Reads `REGISTRATION` and `REGISTRATION_DOMAINS`. `hasMail` = email addresses are confirmed. */
export function readRegistration(
  read: EnvironmentReader,
  hasMail: boolean,
  problems: string[],
  warnings: string[],
): RegistrationConfig {
  const mode = read.oneOf('REGISTRATION', registrationModes, 'open')
  const domains = read.list('REGISTRATION_DOMAINS')?.map(domain => domain.toLowerCase()) ?? null
  if (domains === null) return { mode, domains }
  if (domains.length === 0) problems.push('REGISTRATION_DOMAINS: is empty; list at least one domain or unset it')
  for (const domain of domains)
    if (!domainShape.test(domain))
      problems.push(
        `REGISTRATION_DOMAINS: "${domain}" is not a domain; write it as in example.com, without @ or wildcard`,
      )
  if (mode !== 'open') problems.push(`REGISTRATION_DOMAINS: has no effect with REGISTRATION=${mode}; unset one of them`)
  if (!hasMail)
    warnings.push(
      'REGISTRATION_DOMAINS is set without SMTP_URL: addresses are not confirmed, so anyone can register one of these domains',
    )
  return { mode, domains }
}
