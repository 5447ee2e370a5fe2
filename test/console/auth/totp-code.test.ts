/** Codes of two-factor sign-in, with the vectors of RFC 6238 and RFC 4648. */
import { describe, expect, test } from 'bun:test'
import {
  matchingStep,
  newRecoveryCodes,
  newTotpSecret,
  readTotpCode,
  recoveryDigest,
  toBase32,
  totpCode,
  totpUri,
} from '../../../src/console/auth/totp.ts'

const random = (count: number) => crypto.getRandomValues(new Uint8Array(count))
const secret = toBase32(new TextEncoder().encode('12345678901234567890'))

describe('totpCode', () => {
  // RFC 6238, appendix B, SHA-1: the last six of eight digits.
  test.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('returns the code of RFC 6238 at %i s', (seconds, code) => {
    expect(totpCode(secret, Math.floor(seconds / 30))).toBe(code)
  })
})

describe('toBase32', () => {
  test.each([
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ])('encodes "%s" as RFC 4648 does', (text, expected) => {
    expect(toBase32(new TextEncoder().encode(text))).toBe(expected)
  })
})

describe('matchingStep', () => {
  test('accepts the step before and after, and no other', () => {
    const now = 1_234_567_890_000
    const step = Math.floor(now / 30_000)
    const found = [-2, -1, 0, 1, 2].map(offset => matchingStep(secret, totpCode(secret, step + offset), now))
    expect(found).toEqual([null, step - 1, step, step + 1, null])
  })

  test('accepts the code of another secret for none', () => {
    expect(matchingStep(newTotpSecret(random), totpCode(secret, 41_152_263), 1_234_567_890_000)).toBeNull()
  })
})

test('totpUri: names issuer, user and parameters', () => {
  const uri = new URL(totpUri(secret, 'a&b=c@example.com'))
  expect(decodeURIComponent(uri.pathname)).toEndWith('gateway-ai:a&b=c@example.com')
  expect(Object.fromEntries(uri.searchParams)).toEqual({
    secret,
    issuer: 'gateway-ai',
    algorithm: 'SHA1',
    digits: '6',
    period: '30',
  })
})

test('recovery codes: differ, and keep their digest however they are typed', () => {
  const codes = newRecoveryCodes(random)
  expect(new Set(codes).size).toBe(10)
  for (const code of codes) {
    expect(code).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/)
    const digest = recoveryDigest(code)
    expect(digest).toMatch(/^[0-9a-f]{64}$/)
    expect(recoveryDigest(` ${code.toUpperCase().replaceAll('-', ' ')} `)).toBe(digest)
  }
  expect([recoveryDigest('123456'), readTotpCode('123 456'), readTotpCode('12345')]).toEqual([null, '123456', null])
})
