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

/**
 * Reads `REGISTRATION` and `REGISTRATION_DOMAINS`. `hasMail` = email addresses are confirmed; `isReachable` = clients
 * beyond this machine can reach the gateway, and each who registers spends the operator's provider keys; `ownerUpgrades`
 * = within the limits of `usage` too.
 */
export function readRegistration(
  read: EnvironmentReader,
  {
    hasMail,
    isReachable,
    ownerUpgrades,
  }: { readonly hasMail: boolean; readonly isReachable: boolean; readonly ownerUpgrades: boolean },
  problems: string[],
  warnings: string[],
): RegistrationConfig {
  const domains = readDomains(read, 'REGISTRATION_DOMAINS', problems)
  // A registration sets a password.
  const isSingleSignOnOnly = read.text('OIDC_ONLY')?.toLowerCase() === 'true'
  const usual = isReachable || isSingleSignOnOnly ? 'closed' : 'open'
  const mode = read.oneOf('REGISTRATION', registrationModes, usual)
  if (mode === 'open' && isReachable && domains === null)
    warnings.push(
      `REGISTRATION=open: anyone who reaches this gateway can create an account, which spends your provider keys within the plan \`${ownerUpgrades ? 'usage` (OWNER_UPGRADES=allow)' : 'evaluation`'}`,
    )
  if (domains === null) return { mode, domains }
  if (mode !== 'open')
    problems.push(
      `REGISTRATION_DOMAINS: has no effect with REGISTRATION=${mode}${isReachable ? ', the default of a server' : ''}; set REGISTRATION=open or unset it`,
    )
  if (!hasMail)
    warnings.push(
      'REGISTRATION_DOMAINS is set without SMTP_URL: addresses are not confirmed, so anyone can register one of these domains',
    )
  return { mode, domains }
}
