import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { extractHosts } from '../../../src/text/hosts/extract-hosts.ts'
import { normalizeHostname } from '../../../src/text/hosts/hostname.ts'
import { cpuMs } from '../../harness/cpu.ts'

/** Returns the host that a browser resolves; null = none. */
const byBrowser = (host: string) => URL.parse(`http://${host}/`)?.hostname ?? null

describe('normalizeHostname', () => {
  test("equals the browser's result for every letter", () => {
    const others: string[] = []
    for (let code = 0x80; code < 0x1_0000; code++) {
      const host = `a${String.fromCharCode(code)}b.example`
      if (!/^[\p{L}\p{N}\p{M}.]+$/u.test(host)) continue
      const asked = byBrowser(host)
      if (asked !== null && normalizeHostname(host) !== asked) others.push(code.toString(16))
    }
    expect(others).toEqual([])
  })

  test("equals the browser's result for any combination of letters", () => {
    const letters = fc.constantFrom(
      ...'aZ1éÉßſςΣσ',
      'e\u0301',
      'ﬁ',
      'ⅷ',
      '字',
      '電',
      'か\u3099',
      '각',
      'й',
      'م',
      'ש',
      '𝐚',
      '𠀀',
    )
    const label = fc.array(letters, { minLength: 1, maxLength: 12 }).map(parts => parts.join(''))
    fc.assert(
      fc.property(label, label, (text, other) => {
        const host = `${text}.${other}.example`
        const asked = byBrowser(host)
        fc.pre(asked?.split('.').every(part => part.length <= 63) === true)
        expect([host, normalizeHostname(host)]).toEqual([host, asked])
      }),
      { numRuns: 500 },
    )
  })

  const han = Array.from({ length: 60 }, (_, at) => String.fromCharCode(0x4e00 + ((7_919 * at) % 20_000)))

  test.each([
    [`${han.join('')}.evil.com`, 'evil.com'],
    [`a.${han.join('')}.evil.com`, 'evil.com'],
    [`evil.${han.join('')}`, null],
    ['价格3.70', null],
    ['bücher.example.\u034f.', 'xn--bcher-kva.example'],
  ])('converts %s to %j, since DNS cannot hold longer names', (host, name) => {
    expect(normalizeHostname(host)).toBe(name)
  })

  test.each([
    ['60 letters that differ', 60],
    ['20 letters that differ', 20],
    ['2 letters', 2],
  ])('costs little for %s even if a text has many', (_what, length) => {
    let text = ''
    for (let at = 0; text.length < 100_000; at++)
      text += `${han
        .map((_, index) => han[(index * (at + 1)) % 60] ?? '')
        .slice(0, length)
        .join('')}.cn `
    const times = Array.from({ length: 5 }, () => {
      const start = cpuMs()
      extractHosts(text, () => true)
      return cpuMs() - start
    })
    expect(Math.min(...times)).toBeLessThan(500)
  })
})
