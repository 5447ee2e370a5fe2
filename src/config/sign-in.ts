/** Single sign-on, and who may register. */

import { type Role, roles } from '../core/accounts/roles.ts'
import { type RegistrationConfig, registrationModes, type SingleSignOnConfig } from '../core/accounts/single-sign-on.ts'
import { baseUrlProblem } from './addresses.ts'
import type { EnvironmentReader } from './environment.ts'

/** Path of the redirect URI, which the operator registers at the identity provider. */
const oidcCallbackPath = '/api/v1/auth/oidc/callback'
const longestSessionHours = 720
/** Issuers of Entra ID that are not one tenant: their users could be of any organization. */
const manyTenants = /^https:\/\/login\.microsoftonline\.com\/(common|organizations|consumers)(\/|$)/

/**
 * Reads single sign-on (`OIDC_…`); null = not configured. `publicUrl` is the origin of the dashboard; null = unknown.
 */
export function readOidc(
  read: EnvironmentReader,
  { publicUrl, isOpen }: { readonly publicUrl: string | null; readonly isOpen: boolean },
  problems: string[],
): SingleSignOnConfig | null {
  const issuer = read.text('OIDC_ISSUER')
  const clientId = read.text('OIDC_CLIENT_ID')
  const defaultRole = read.oneOf('OIDC_DEFAULT_ROLE', ['none', ...roles], 'none')
  const config: SingleSignOnConfig = {
    issuer: issuer ?? '',
    clientId: clientId ?? '',
    clientSecret: read.secret('OIDC_CLIENT_SECRET'),
    redirectUri: `${publicUrl ?? ''}${oidcCallbackPath}`,
    scope: read.text('OIDC_SCOPES') ?? 'openid email profile',
    label: (read.text('OIDC_LABEL') ?? 'single sign-on').slice(0, 40),
    accountId: read.text('OIDC_ACCOUNT'),
    groupsClaim: read.text('OIDC_GROUPS_CLAIM') ?? 'groups',
    roles: readRoles(read, problems),
    defaultRole: defaultRole === 'none' ? null : defaultRole,
    domains: readDomains(read, 'OIDC_DOMAINS', problems),
    trustsEmail: read.oneOf('OIDC_EMAIL', ['verified', 'trusted'], 'verified') === 'trusted',
    isOnly: read.oneOf('OIDC_ONLY', ['true', 'false'], 'false') === 'true',
    sessionHours: read.integer('OIDC_SESSION_HOURS', 24, 1, longestSessionHours),
  }
  if (issuer === null) {
    if (clientId !== null || config.clientSecret !== null || config.isOnly)
      problems.push('OIDC_ISSUER: required with other OIDC_ variables; it is the URL of the identity provider')
    return null
  }
  if (clientId === null) problems.push('OIDC_CLIENT_ID: required with OIDC_ISSUER')
  if (publicUrl === null) problems.push('PUBLIC_URL: required with OIDC_ISSUER; the identity provider returns to it')
  problems.push(...conflicts(config, isOpen))
  return config
}

/** Returns what is wrong with the values. */
function conflicts(config: SingleSignOnConfig, isOpen: boolean): readonly string[] {
  const { issuer, accountId, domains, scope, trustsEmail, isOnly } = config
  const problem = baseUrlProblem(issuer)
  const found: readonly (readonly [boolean, string])[] = [
    [problem !== null, `OIDC_ISSUER: ${problem}`],
    [
      manyTenants.test(issuer),
      'OIDC_ISSUER: must name one tenant, as in https://login.microsoftonline.com/<tenant ID>/v2.0',
    ],
    [isOnly && isOpen, 'OIDC_ONLY: cannot be combined with REGISTRATION=open, which sets passwords'],
    [
      accountId !== null && !/^acc_\w{1,64}$/.test(accountId),
      'OIDC_ACCOUNT: must be the ID of an account (acc_…), as `gateway accounts show <email>` prints it',
    ],
    [
      accountId === null && isOpen,
      'OIDC_ACCOUNT: required while registration is open; set it to the ID of the account that users join, or set REGISTRATION',
    ],
    [
      trustsEmail && domains === null,
      'OIDC_DOMAINS: required with OIDC_EMAIL=trusted; list the domains that the provider manages',
    ],
    [!scope.split(/\s+/).includes('openid'), 'OIDC_SCOPES: must contain openid'],
  ]
  return found.filter(([isWrong]) => isWrong).map(([, text]) => text)
}

/** Reads `group=role` pairs. A group may contain `=`, as distinguished names do. */
function readRoles(read: EnvironmentReader, problems: string[]): ReadonlyMap<string, Role> {
  const map = new Map<string, Role>()
  for (const pair of read.list('OIDC_ROLES') ?? []) {
    const at = pair.lastIndexOf('=')
    const group = pair.slice(0, Math.max(at, 0)).trim()
    const role = roles.find(
      item =>
        item ===
        pair
          .slice(at + 1)
          .trim()
          .toLowerCase(),
    )
    if (group === '' || role === undefined)
      problems.push(`OIDC_ROLES: "${pair}" must be group=role, with one of the roles ${roles.join(', ')}`)
    else map.set(group, role)
  }
  return map
}

const domainShape = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/

/** Reads a list of email domains; null = not set. */
function readDomains(read: EnvironmentReader, name: string, problems: string[]): readonly string[] | null {
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
