/**
 * Single sign-on by OpenID Connect: the configuration, and the rules that turn claims of an identity provider into an
 * email address and a role. All rules deny if a claim is missing or has another type.
 */
import { Value } from '@sinclair/typebox/value'
import { emailSchema, normalizeEmail } from './passwords.ts'
import { type Role, roles } from './roles.ts'

export type SingleSignOnConfig = {
  readonly issuer: string
  readonly clientId: string
  /** Null = a public client, which only PKCE protects. */
  readonly clientSecret: string | null
  /** The only redirect URI that the gateway sends. */
  readonly redirectUri: string
  /** Scopes, separated by spaces. */
  readonly scope: string
  /** Name of the identity provider on the sign-in page. */
  readonly label: string
  /** The account that users join; null = the only account of this gateway. */
  readonly accountId: string | null
  readonly groupsClaim: string
  /** Role per group; empty = roles are managed in the gateway. */
  readonly roles: ReadonlyMap<string, Role>
  /** Role of users without a mapped group; null = they are rejected unless they belong to the account already. */
  readonly defaultRole: Role | null
  /** Email domains that may sign in; null = any. */
  readonly domains: readonly string[] | null
  /** The operator vouches for the provider's email addresses: `email_verified` is not required. */
  readonly trustsEmail: boolean
  /** Password sign-in is disabled. */
  readonly isOnly: boolean
  readonly sessionHours: number
}

/** Reasons for which a single sign-on fails, as the sign-in page receives them. */
export type SingleSignOnFailure =
  | 'denied'
  | 'expired'
  | 'rejected'
  | 'unavailable'
  | 'misconfigured'
  | 'email_unverified'
  | 'domain_not_allowed'
  | 'no_role'
  | 'other_account'
  | 'removed'

/** A failed single sign-on. `detail` is for the operator's log and contains only identifiers. */
export class SingleSignOnError extends Error {
  readonly failure: SingleSignOnFailure
  readonly detail: string
  constructor(failure: SingleSignOnFailure, detail = '') {
    super(`${failure} ${detail}`)
    this.name = 'SingleSignOnError'
    this.failure = failure
    this.detail = detail
  }
}

export type Claims = Readonly<Record<string, unknown>>
/** Claims with the two that identify a user. */
export type IdentityClaims = Claims & { readonly iss: string; readonly sub: string }

/**
 * Returns the email address that the provider has verified, normalized; null = none. An unverified address must never
 * identify a user: anyone can enter one at many providers.
 */
export function verifiedEmail({ trustsEmail }: SingleSignOnConfig, claims: Claims): string | null {
  const { email, email_verified: isVerified } = claims
  if (!Value.Check(emailSchema, email)) return null
  // Some providers send the claim as text.
  return trustsEmail || isVerified === true || isVerified === 'true' ? normalizeEmail(email) : null
}

const google = 'https://accounts.google.com'

/**
 * Returns true if the domain of the email address may sign in. Google lets anyone open a personal account under a
 * foreign address, so there the account's own organization (`hd`) must match as well.
 */
export function isDomainAllowed({ domains, issuer }: SingleSignOnConfig, email: string, claims: Claims): boolean {
  if (domains === null) return true
  const domain = email.slice(email.lastIndexOf('@') + 1)
  const isOrganization = issuer !== google || (typeof claims.hd === 'string' && domains.includes(claims.hd))
  return domains.includes(domain) && isOrganization
}

/** Returns the groups in the claims: a list of texts, or one text. */
export function getGroups({ groupsClaim }: SingleSignOnConfig, claims: Claims): readonly string[] {
  const value = claimAt(claims, groupsClaim)
  const listed: readonly unknown[] = Array.isArray(value) ? value : [value]
  return listed.filter(item => typeof item === 'string')
}

/** Returns the highest role that the groups give; null = none of them is mapped. */
export function mappedRole(config: SingleSignOnConfig, claims: Claims): Role | null {
  const given = new Set(getGroups(config, claims).map(group => config.roles.get(group)))
  return roles.findLast(role => given.has(role)) ?? null
}

/** Returns the claim of that name, or of that path (`realm_access.roles`). Names with dots take precedence. */
function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = Object.entries(value).find(([key]) => key === part)?.[1]
  }
  return value
}

/** Whether anyone can register. Owners invite users, and the operator creates accounts, in both modes. */
export const registrationModes = ['open', 'closed'] as const

export type RegistrationConfig = {
  readonly mode: (typeof registrationModes)[number]
  /** Email domains that may register; null = any. */
  readonly domains: readonly string[] | null
}

/** Returns true if the domain of an email address may register. */
export function isDomainOpen({ domains }: RegistrationConfig, email: string): boolean {
  return domains === null || domains.includes(getDomain(email))
}

/** Returns the domain of a normalized email address. */
export function getDomain(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}
