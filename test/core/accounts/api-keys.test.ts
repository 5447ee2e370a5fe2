import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { getDigest, mintApiKey, parseApiKey, randomBase62 } from '../../../src/core/accounts/api-keys.ts'

const random = (count: number) => crypto.getRandomValues(new Uint8Array(count))

test('mintApiKey: creates a key with the documented format that parseApiKey accepts [K1]', () => {
  for (let round = 0; round < 200; round++) {
    const { key, id, prefix, digest } = mintApiKey(random)
    expect(key).toMatch(/^gw_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/)
    expect(parseApiKey(key)).toEqual({ id })
    expect(prefix).toBe(`gw_live_${id}…`)
    expect(digest).toBe(createHash('sha256').update(key).digest('hex'))
  }
})

test('parseApiKey: rejects a key with any character changed, removed or added [K1]', () => {
  const { key } = mintApiKey(random)
  fc.assert(
    fc.property(fc.nat(key.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, character) => {
      const changed = key.slice(0, at) + character + key.slice(at + 1)
      expect(parseApiKey(changed)).toEqual(changed === key ? parseApiKey(key) : null)
      expect(parseApiKey(key.slice(0, at))).toBeNull()
    }),
  )
  expect(parseApiKey(`${key}a`)).toBeNull()
  expect(parseApiKey(`${key}\n`)).toBeNull()
  expect(parseApiKey(` ${key}`)).toBeNull()
})

test('parseApiKey: returns null for any other text without throwing', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 100 }), text => parseApiKey(text) === null))
  expect(parseApiKey("gw_live_' or 1=1; --")).toBeNull()
  expect(parseApiKey('gw_live_'.repeat(100_000))).toBeNull()
})

test('mintApiKey: gives each character the same probability for the accepted bytes', () => {
  const counts = new Map<string, number>()
  // 0…247 are four times the alphabet; 248…255 must be skipped.
  for (let byte = 0; byte < 256; byte++) {
    let calls = 0
    const letter = randomBase62(1, () => Uint8Array.of(calls++ === 0 ? byte : 0))
    if (calls === 1) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  }
  expect(counts.size).toBe(62)
  expect(new Set(counts.values())).toEqual(new Set([4]))
})

test('digestOf: returns a lower-case SHA-256', () => {
  expect(getDigest('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})
