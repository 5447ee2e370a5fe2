import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  dummyHash,
  hashing,
  isOutdated,
  normalizeEmail,
  normalizePassword,
  validateNewPassword,
} from '../../../src/core/accounts/passwords.ts'
import { findDuplicateKey } from '../../../src/core/validation/untrusted-json.ts'

test('validateNewPassword: accepts 8 to 128 characters after NFKC, counted as code points [P2]', () => {
  expect(validateNewPassword('Å'.repeat(8), 'password')).toBe('Å'.repeat(8))
  expect(validateNewPassword('👍'.repeat(128), 'password')).toHaveLength(256)
  for (const text of ['👍'.repeat(7), '👍'.repeat(129), 'ﬄ'.repeat(43)])
    expect(() => validateNewPassword(text, 'password')).toThrow('8 to 128')
})

test('normalizePassword: returns the text that validateNewPassword returned', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 8, maxLength: 40 }), text => {
      const password = validateNewPassword(text, 'password')
      return normalizePassword(text) === password && normalizePassword(password) === password
    }),
  )
})

test('dummyHash: has the current parameters and lengths and matches no password [P4]', async () => {
  const real = await Bun.password.hash('correct horse', { algorithm: 'argon2id', ...hashing })
  expect(dummyHash()).toHaveLength(real.length)
  expect([isOutdated(real), isOutdated(dummyHash())]).toEqual([false, false])
  expect(isOutdated(real.replace('t=3', 't=2'))).toBe(true)
  for (const password of ['', 'A', 'correct horse', '\0'.repeat(32)])
    expect(await Bun.password.verify(password, dummyHash()).catch(() => false)).toBe(false)
})

test('normalizeEmail: returns one spelling per mailbox', () => {
  expect(normalizeEmail('Ada@Example.TEST')).toBe('ada@example.test')
})

test('findDuplicateKey: finds a repeated key in any spelling, but not the same key in two objects', () => {
  expect(findDuplicateKey('{"role":"member","r\\u006fle":"owner"}')).toBe('role')
  expect(findDuplicateKey('{ "a" : 1 , "b":"a", "c":["a","a"], "d":{"a":1,"b":2}, "e":"\\"a\\":" }')).toBeNull()
  expect(findDuplicateKey('{"a":[{"b":{"c":1,"d":[],"\\u0063":2}}]}')).toBe('c')
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.json()), value => findDuplicateKey(JSON.stringify(value)) === null),
  )
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.jsonValue(), (value, other) => {
      const [key = ''] = Object.keys(value)
      const text = JSON.stringify(value)
      return findDuplicateKey(`${text.slice(0, -1)},${JSON.stringify(key)}:${JSON.stringify(other)}}`) === key
    }),
  )
})
