/**
 * Time-based one-time passwords (RFC 6238, with HMAC-SHA-1, 6 digits and 30 s as all authenticator apps support them),
 * and recovery codes. The RFC's vectors test these few lines; a library would bring more code than it replaces.
 */
import { getDigest, type RandomBytes } from '../../core/accounts/api-keys.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { withAccountRls } from '../../database/statement.ts'

const stepSeconds = 30
const digits = 6
/** Steps before and after the current one, for clocks that differ and for slow typing (RFC 6238, section 5.2). */
const tolerance = 1
const secretBytes = 20
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const recoveryCodeCount = 10
/** 80 bits: a stored digest cannot be reversed by trying all codes. */
const recoveryBytes = 10

/** Returns a new secret in base32. */
export function newTotpSecret(randomBytes: RandomBytes): string {
  return toBase32(randomBytes(secretBytes))
}

/** Returns the code of a time step (RFC 4226, section 5.3). */
export function totpCode(secret: string, step: number): string {
  const counter = new DataView(new ArrayBuffer(8))
  counter.setBigUint64(0, BigInt(step))
  const mac = new Bun.CryptoHasher('sha1', fromBase32(secret)).update(counter.buffer).digest()
  const view = new DataView(mac.buffer, mac.byteOffset, mac.byteLength)
  const value = view.getUint32((mac.at(-1) ?? 0) & 15) & 0x7fff_ffff
  return `${value % 10 ** digits}`.padStart(digits, '0')
}

/** Returns the time step at `nowMs` whose code this is, at most one step away; null = none. */
export function matchingStep(secret: string, code: string, nowMs: number): number | null {
  const current = Math.floor(nowMs / 1000 / stepSeconds)
  for (let step = current - tolerance; step <= current + tolerance; step++)
    if (step >= 0 && totpCode(secret, step) === code) return step
  return null
}

/** Returns the URI that authenticator apps read from a QR code. */
export function totpUri(secret: string, email: string): string {
  const issuer = 'gateway-ai'
  return `otpauth://totp/${issuer}:${encodeURIComponent(email)}?secret=${secret}&issuer=${issuer}&algorithm=SHA1&digits=${digits}&period=${stepSeconds}`
}

/** Returns new recovery codes: four groups of four characters. */
export function newRecoveryCodes(randomBytes: RandomBytes): readonly string[] {
  return Array.from({ length: recoveryCodeCount }, () =>
    (toBase32(randomBytes(recoveryBytes)).toLowerCase().match(/.{4}/g) ?? []).join('-'),
  )
}

/** Returns the stored form of a recovery code, however it was typed; null = not a recovery code. */
export function recoveryDigest(text: string): string | null {
  const code = text.toLowerCase().replace(/[\s-]/g, '')
  return /^[a-z2-7]{16}$/.test(code) ? getDigest(`recovery ${code}`) : null
}

/** Returns the six digits of a code, however they were typed; null = not a code. */
export function readTotpCode(text: string): string | null {
  const code = text.replace(/\s/g, '')
  return /^\d{6}$/.test(code) ? code : null
}

/** Base32 without padding (RFC 4648). */
export function toBase32(bytes: Uint8Array): string {
  let [text, value, bits] = ['', 0, 0]
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet.charAt((value >> bits) & 31)
    }
  }
  return bits === 0 ? text : text + alphabet.charAt((value << (5 - bits)) & 31)
}

function fromBase32(text: string): Uint8Array {
  const bytes: number[] = []
  let [value, bits] = [0, 0]
  for (const letter of text) {
    value = ((value << 5) | alphabet.indexOf(letter)) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((value >> bits) & 255)
  }
  return Uint8Array.from(bytes)
}

/** Secrets and recovery codes of two-factor sign-in. Secrets arrive sealed and leave sealed. */

export type TotpState = {
  /** Sealed. */
  readonly secret: string
  readonly isConfirmed: boolean
  readonly recoveryCodes: number
}

/** Returns the state of a user's two-factor sign-in; null = not set up. */
export async function findTotp(database: Database, userId: string): Promise<TotpState | null> {
  const rows = await database.run(
    ({ sql }) => sql<TotpState[]>`
      select secret, confirmed_at is not null as "isConfirmed",
        (select count(*)::int from totp_recovery_codes as code where code.user_id = totp_secrets.user_id) as "recoveryCodes"
      from totp_secrets where user_id = ${userId}`,
  )
  return rows[0] ?? null
}

type Owner = { readonly accountId: string; readonly userId: string }

/** Stores an unconfirmed secret, replacing an unconfirmed one. Returns false if a confirmed one exists. */
export async function offerTotp(database: Database, { accountId, userId }: Owner, secret: string): Promise<boolean> {
  const rows = await withAccountRls(database, accountId).sql(
    sql => sql`
      insert into totp_secrets (user_id, secret, created_at) values (${userId}, ${secret}, clock_timestamp())
      on conflict (user_id) do update set secret = excluded.secret, created_at = excluded.created_at, last_step = 0
        where totp_secrets.confirmed_at is null
      returning user_id`,
  )
  return rows.length > 0
}

/** Confirms exactly this secret with its first code, and stores the recovery codes. Returns false if it has changed. */
export function confirmTotp(
  database: Database,
  { accountId, userId }: Owner,
  {
    secret,
    step,
    digests,
  }: { readonly secret: string; readonly step: number; readonly digests: readonly (string | null)[] },
): Promise<boolean> {
  return withAccountRls(database, accountId).sql(async sql => {
    const confirmed = await sql`
      update totp_secrets set confirmed_at = clock_timestamp(), last_step = ${step}
      where user_id = ${userId} and secret = ${secret} and confirmed_at is null returning user_id`
    if (confirmed.length === 0) return false
    await sql`delete from totp_recovery_codes where user_id = ${userId}`
    await sql`
      insert into totp_recovery_codes (user_id, digest)
      select ${userId}, json_array_elements_text(${JSON.stringify(digests)}::text::json)`
    await recordAudit(sql, database, { accountId, action: 'two_factor.enabled', target: userId })
    return true
  })
}

/**
 * Uses up the code of a time step, in one statement, and stores the secret as it is sealed now. Returns false if the code
 * or a later one was used.
 */
export async function useTotpStep(
  database: Database,
  userId: string,
  { step, secret }: { readonly step: number; readonly secret: string },
): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`
      update totp_secrets set last_step = ${step}, secret = ${secret}
      where user_id = ${userId} and confirmed_at is not null and last_step < ${step} returning user_id`,
  )
  return rows.length > 0
}

/** Uses up a recovery code. Returns false if there is none of this digest. */
export async function useRecoveryCode(database: Database, userId: string, digest: string): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`delete from totp_recovery_codes where user_id = ${userId} and digest = ${digest} returning digest`,
  )
  return rows.length > 0
}

/** Disables two-factor sign-in of a user. Returns false if it was not set up. */
export function removeTotp(database: Database, { accountId, userId }: Owner): Promise<boolean> {
  return withAccountRls(database, accountId).sql(async sql => {
    await sql`delete from totp_recovery_codes where user_id = ${userId}`
    const removed = await sql`delete from totp_secrets where user_id = ${userId} returning user_id`
    if (removed.length === 0) return false
    await recordAudit(sql, database, { accountId, action: 'two_factor.disabled', target: userId })
    return true
  })
}
