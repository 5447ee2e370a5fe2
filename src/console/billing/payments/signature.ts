import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Tolerance in seconds between signing and arrival, in both directions: Stripe's own library accepts signatures from
 * the future.
 */
const toleranceSeconds = 300
const maximumSignatures = 16
const digestHex = /^[0-9a-f]{64}$/

/**
 * Returns true if a `Stripe-Signature` header (`t=…,v1=…,v1=…`) was made with one of `secrets` for these exact body
 * bytes and is current. Compares every secret with every signature in constant time.
 */
export function isSigned(
  body: Uint8Array,
  header: string | null,
  secrets: readonly string[],
  /** Epoch milliseconds. */
  now: number,
): boolean {
  const fields = (header ?? '').split(',').map(field => field.trim().split('='))
  const times = fields.filter(([name]) => name === 't').map(([, value]) => value ?? '')
  const signatures = fields
    .filter(([name, value]) => name === 'v1' && digestHex.test(value ?? ''))
    .map(([, value]) => Buffer.from(value ?? '', 'hex'))
  const [time] = times
  if (time === undefined || times.length !== 1 || !/^\d{1,12}$/.test(time)) return false
  if (Math.abs(Math.floor(now / 1000) - Number(time)) > toleranceSeconds) return false
  if (signatures.length === 0 || signatures.length > maximumSignatures) return false
  let holds = false
  for (const secret of secrets) {
    if (secret === '') continue
    const expected = createHmac('sha256', secret).update(`${time}.`).update(body).digest()
    for (const signature of signatures) holds = timingSafeEqual(expected, signature) || holds
  }
  return holds
}
