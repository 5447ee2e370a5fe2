import { expect, test } from 'bun:test'
import { forwardableAddress } from '../../../src/core/validation/public-address.ts'
import { payloads } from '../../web/payloads.ts'

const all = payloads().filter(url => !/^data:/i.test(url) && url.length < 2_000)

test('forwardableAddress: rejects every internal address in any notation', () => {
  expect(all.length).toBeGreaterThan(1_000)
  expect(all.filter(url => forwardableAddress(url) !== null)).toEqual([])
})

test.each([
  ['https://example.org/a.png', 'https://example.org/a.png'],
  ['HTTPS://EXAMPLE.org:443/a b.png', 'https://example.org/a%20b.png'],
  ['http://93.184.216.34/a.png', 'http://93.184.216.34/a.png'],
  // If another parser finds 127.0.0.1 in the text, it finds none in the normalized form.
  ['https://example.org\\@127.0.0.1/', 'https://example.org/@127.0.0.1/'],
  ['https://example.org/?u=http://127.0.0.1/', 'https://example.org/?u=http://127.0.0.1/'],
  ['DATA:image/png;base64,AA', 'DATA:image/png;base64,AA'],
])('forwardableAddress: returns the normalized URL of %p when it is public', (url, expected) => {
  expect(forwardableAddress(url)).toBe(expected)
})

test('forwardableAddress: accepts signed URLs up to 8,192 characters', () => {
  const signed = (length: number) => `https://bucket.example.com/a.png?token=${'a'.repeat(length)}`
  expect(forwardableAddress(signed(4_000))).toBe(signed(4_000))
  expect(forwardableAddress(signed(8_200))).toBeNull()
})
