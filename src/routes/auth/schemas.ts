import { type Static, Type } from '@sinclair/typebox'
import { registrationModes } from '../../core/accounts/registration.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { count, id, list, namedSchema, orNull, strictObject, text, time } from '../../http/schemas.ts'

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

export const resetAskedShape = strictObject({ accepted: Type.Literal(true) })
