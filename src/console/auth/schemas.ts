import { type Static, Type } from '@sinclair/typebox'
import { projectRoles, roles } from '../../core/accounts/roles.ts'
import { registrationModes } from '../../core/accounts/single-sign-on.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, id, list, namedSchema, orNull, text, time } from '../../http/schemas.ts'

const ownSessionShape = namedSchema('OwnSession', {
  id: id('ses'),
  user_agent: orNull(text('Mozilla/5.0')),
  created_at: time,
  last_used_at: time,
  expires_at: time,
  current: Type.Boolean({ description: 'the session of this request' }),
})
export type ShownSession = Static<typeof ownSessionShape>
export const ownSessionsShape = list(ownSessionShape)

export const registrationRulesShape = namedSchema('RegistrationRules', {
  mode: oneOf(registrationModes),
  domains: orNull(Type.Array(text('example.com'), { description: 'email domains that can register; null = any' })),
  verifies_email: Type.Boolean({ description: 'a new address must be confirmed by email' }),
  password_sign_in: Type.Boolean({ description: 'false = only single sign-on' }),
  single_sign_on: orNull(text('Keycloak', 'name of the identity provider; null = not configured')),
  operator_command: text('bun run gateway', 'how a command of the operator begins on the machine of the gateway'),
})
export type RegistrationRules = Static<typeof registrationRulesShape>

export const twoFactorShape = namedSchema('TwoFactor', {
  enabled: Type.Boolean(),
  recovery_codes_left: count,
  setup_required: Type.Boolean({ description: 'the account requires it; until then only sign-in settings are open' }),
})
export type TwoFactorState = Static<typeof twoFactorShape>

export const twoFactorSetupShape = namedSchema('TwoFactorSetup', {
  secret: text('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', 'base32, for authenticator apps without a camera'),
  uri: text('otpauth://totp/gateway-ai:ada%40example.com?secret=…'),
  qr_code: text('data:image/svg+xml,…', 'the URI as a QR code'),
})
export type TwoFactorSetup = Static<typeof twoFactorSetupShape>

export const recoveryCodesShape = namedSchema('RecoveryCodes', {
  recovery_codes: Type.Array(text('mzxw-6ytb-oiaa-bcde'), { description: 'shown once; each works once' }),
})

export const singleSignOnSettingsShape = namedSchema('SingleSignOnSettings', {
  single_sign_on: orNull(
    strictObject({
      label: text('Keycloak', 'name on the sign-in page'),
      issuer: text('https://login.example.com'),
      client_id: text('gateway'),
      redirect_uri: text('https://gateway.example.com/api/v1/auth/oidc/callback'),
      sign_out_uri: text('https://gateway.example.com/', 'URI after sign-out at the provider'),
      scopes: text('openid email profile'),
      groups_claim: text('groups'),
      roles: Type.Array(strictObject({ group: text('engineers'), role: oneOf(roles) }), {
        description: 'role per group; empty = roles are managed on the team page',
      }),
      default_role: orNull(oneOf(roles)),
      domains: orNull(Type.Array(text('example.com'), { description: 'email domains that can sign in; null = any' })),
      trusts_email: Type.Boolean({ description: 'email addresses count without `email_verified`' }),
      only: Type.Boolean({ description: 'password sign-in is disabled' }),
      session_hours: count,
      provider: strictObject({
        reachable: Type.Boolean(),
        failure: orNull(text('unavailable', 'why the last check failed')),
        detail: orNull(text('status 503', 'an identifier, without any text of the provider')),
        since: { ...time, description: 'first check with this outcome' },
        checked_at: time,
        can_sign_out: Type.Boolean({ description: 'the provider has a page that ends its session' }),
      }),
    }),
  ),
})
export type SingleSignOnSettings = Static<typeof singleSignOnSettingsShape>

export const resetAskedShape = strictObject({ accepted: Type.Literal(true) })
/** Response to every request for an email. */
export const accepted: Static<typeof resetAskedShape> = { accepted: true }

/** Here, because the store of invitations serves single sign-on too. */
export const invitationShape = namedSchema('Invitation', {
  id: id('inv'),
  email: text('grace@example.com'),
  role: oneOf(roles),
  project_id: { ...orNull(id('prj')), description: 'project that the user joins as well; null = none' },
  project_role: orNull(oneOf(projectRoles)),
  created_at: time,
  expires_at: time,
})
export type ShownInvitation = Static<typeof invitationShape>
