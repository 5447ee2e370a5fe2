/** Claims of identity providers: which address, domain and role they give. */
import { describe, expect, test } from 'bun:test'
import type { Role } from '../../../src/core/accounts/roles.ts'
import {
  isDomainAllowed,
  mappedRole,
  type SingleSignOnConfig,
  verifiedEmail,
} from '../../../src/core/accounts/single-sign-on.ts'

const config: SingleSignOnConfig = {
  issuer: 'https://login.example.com',
  clientId: 'gateway',
  clientSecret: null,
  redirectUri: 'https://gateway.example.com/api/v1/auth/oidc/callback',
  scope: 'openid email',
  label: 'Example',
  accountId: null,
  groupsClaim: 'groups',
  roles: new Map<string, Role>([
    ['staff', 'member'],
    ['/team/leads', 'admin'],
    ['auditors', 'viewer'],
  ]),
  defaultRole: null,
  domains: ['example.com'],
  trustsEmail: false,
  isOnly: false,
  sessionHours: 24,
}

describe('verifiedEmail', () => {
  test.each([
    [{ email: 'Ada@Example.com', email_verified: true }, 'ada@example.com'],
    [{ email: 'ada@example.com', email_verified: 'true' }, 'ada@example.com'],
    [{ email: 'ada@example.com', email_verified: false }, null],
    [{ email: 'ada@example.com', email_verified: 'false' }, null],
    [{ email: 'ada@example.com', email_verified: 1 }, null],
    [{ email: 'ada@example.com' }, null],
    [{ email: ['ada@example.com'], email_verified: true }, null],
    [{ email: 'ada@example.com\u0000', email_verified: true }, null],
    [{ email: 'ＡＤＡ@example.com', email_verified: true }, null],
    [{ email: `${'a'.repeat(250)}@b.example`, email_verified: true }, null],
    [{ email_verified: true }, null],
  ])('returns the normalized address of %j only if it is verified', (claims, expected) => {
    expect(verifiedEmail(config, claims)).toBe(expected)
  })

  test('needs no claim if the operator vouches for the addresses', () => {
    expect(verifiedEmail({ ...config, trustsEmail: true }, { email: 'ada@example.com' })).toBe('ada@example.com')
  })
})

describe('isDomainAllowed', () => {
  const google = { ...config, issuer: 'https://accounts.google.com' }
  test.each([
    [config, 'ada@example.com', {}, true],
    [config, 'ada@sub.example.com', {}, false],
    [config, 'ada@example.com.evil.example', {}, false],
    [config, 'ada@evil.example@example.com', {}, true],
    [{ ...config, domains: null }, 'ada@any.example', {}, true],
    [google, 'ada@example.com', { hd: 'example.com' }, true],
    [google, 'ada@example.com', {}, false],
    [google, 'ada@example.com', { hd: 'evil.example' }, false],
  ])('decides by the domain, and at Google by the organization too (%#)', (rules, email, claims, expected) => {
    expect(isDomainAllowed(rules, email, claims)).toBe(expected)
  })
})

describe('mappedRole', () => {
  test.each<[string, Readonly<Record<string, unknown>>, Role | null]>([
    ['groups', { groups: ['staff', '/team/leads', 'auditors'] }, 'admin'],
    ['groups', { groups: 'staff' }, 'member'],
    ['groups', { groups: ['Staff', 'staff '] }, null],
    ['groups', { groups: [1, null, { staff: true }] }, null],
    ['groups', { groups: { 0: 'staff' } }, null],
    ['groups', {}, null],
    ['realm_access.roles', { realm_access: { roles: ['auditors'] } }, 'viewer'],
    ['https://example.com/groups', { 'https://example.com/groups': ['staff'] }, 'member'],
    ['constructor.name', {}, null],
    ['__proto__', { groups: ['staff'] }, null],
  ])('returns the highest mapped role of the claim %s (%#)', (groupsClaim, claims, expected) => {
    expect(mappedRole({ ...config, groupsClaim }, claims)).toBe(expected)
  })
})
