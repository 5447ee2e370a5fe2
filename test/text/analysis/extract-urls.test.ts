import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { extractUrls } from '../../../src/text/analysis/extract-urls.ts'

test('extractUrls: returns URLs in order without trailing punctuation', () => {
  const text =
    'See https://a.example/x?y=1, (HTTP://b.example/z). Not ftp://c.example nor "://". [d](https://d.example/p)'
  expect(extractUrls(text)).toEqual(['https://a.example/x?y=1', 'HTTP://b.example/z', 'https://d.example/p'])
})

test('extractUrls: returns at most 16 URLs of at most 2,048 characters each', () => {
  expect(extractUrls('https://a.example '.repeat(50)).length).toBe(16)
  expect(extractUrls(`https://a.example/${'x'.repeat(3000)}`)).toEqual([])
})

test('extractUrls: returns a URL unchanged when any text surrounds it', () => {
  fc.assert(
    fc.property(fc.webUrl(), fc.stringMatching(/^[a-z ]{0,20}$/), (url, text) => {
      fc.pre(!/[.,;:!?)\]*_…'`|^{}]$/.test(url) && !/['`|^{}]/.test(url) && /^https?:/.test(url))
      expect(extractUrls(`${text} ${url} ${text}`)).toEqual([url])
    }),
  )
})
