import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { extractHosts } from '../../../src/text/hosts/extract-hosts.ts'
import { buildHostSet } from '../../../src/text/hosts/host-set.ts'
import { normalizeHostname } from '../../../src/text/hosts/hostname.ts'
import { cpuMs } from '../../harness/cpu.ts'

function createSet(list: string, pieceBytes = 1_000_000) {
  const builder = buildHostSet()
  const bytes = new TextEncoder().encode(list)
  for (let at = 0; at < bytes.length; at += pieceBytes) builder.read(bytes.subarray(at, at + pieceBytes))
  builder.endList()
  return builder.finish()
}

const hosts = (text: string) => {
  const found: string[] = []
  extractHosts(text, host => {
    found.push(normalizeHostname(host) ?? host)
    return true
  })
  return found
}

describe('extractHosts', () => {
  test.each([
    ['case', 'HTTPS://Evil.COM/x'],
    ['a port', 'http://evil.com:8080/a'],
    ['a trailing dot', 'http://evil.com./a'],
    ['user-info', 'https://google.com@evil.com/a'],
    ['user and password', 'https://a:b@evil.com'],
    ['Markdown', '[here](https://evil.com/path)'],
    ['Markdown without a scheme', '[good](evil.com)'],
    ['a bare name', 'go to evil.com now'],
    ['the end of a sentence', 'go to evil.com.'],
    ['hxxp and [.]', 'hxxp://evil[.]com/x'],
    ['(dot)', 'evil (dot) com'],
    ['[Dot]', 'evil [Dot] com'],
    ['percent-encoding', 'https://%65%76%69%6c%2e%63%6f%6d/a'],
    ['backslashes', 'http:\\\\evil.com\\a'],
    ['one slash', 'https:/evil.com'],
    ['full-width marks', 'http://ｅｖｉｌ。com'],
    ['a zero-width character', 'http://ev\u200bil.com'],
    ['an autolink', '<https://evil.com>'],
    ['a form field', 'url=evil.com&x=1'],
    ['a later form field', 'a=1&url=evil.com'],
    ['an ampersand in user-info', 'https://google.com&@evil.com/'],
    ['any number of slashes', 'http:////evil.com'],
    ['a reference of Markdown', '[1]: //evil.com "title"'],
    ['curly quotation marks', 'go to “evil.com” now'],
    ['quotation marks of other languages', '„evil.com“ «evil.com» 「evil.com」'],
    ['wide brackets', '（evil.com）'],
    ['pictures around', '👉evil.com👈'],
    ['dashes and ellipses around', '…evil.com—'],
    ['Chinese around', '请访问evil.com。谢谢'],
    ['Japanese behind', 'evil.comを見て'],
    ['Korean behind', 'evil.com에 가세요'],
    ['Thai around', 'ดูevil.comนะ'],
    ['Arabic before', 'وevil.com'],
    ['another name before', 'bücher.evil.com查看'],
    ['a one-dot leader', 'evil․com'],
    ['a small full stop', 'evil﹒com'],
    ['circled letters', 'ⓔⓥⓘⓛ.com'],
    ['mathematical letters', '𝐞𝐯𝐢𝐥.com'],
    ['a soft hyphen', 'ev\u00adil.com'],
    ['a mark of direction', 'ev\u202eil.com'],
    ['a variation selector', 'ev\ufe0fil.com'],
    ['a bracket that nothing closes', 'evil[.com'],
    ['{dot}', 'evil {dot} com'],
    ['<dot>', 'evil<dot>com'],
    ['dot alone', 'evil dot com'],
    ['a spelt dot behind it', 'evil.com (dot) x'],
    ['brackets in the scheme', 'hxxps[://]evil[.]com'],
    ['percent-encoding, doubled', 'https://%2565vil%252ecom/'],
    ['percent-encoding, doubled sign by sign', 'https://%25%36%35vil.com/'],
    ['a percent-encoded slash', 'https://evil.com%2Fpath'],
    ['a percent-encoded wide dot', 'https://evil%E3%80%82com/'],
    ['a percent-encoded soft hyphen', 'https://ev%C2%ADil.com'],
    ['slashes as JSON escapes them', 'https:\\/\\/evil.com\\/x'],
    ['letters as JSON escapes them', '{"url":"https://\\u0065vil\\u002ecom"}'],
    ['JSON in JSON', '{\\"u\\":\\"\\\\u0065vil.com\\"}'],
    ['an escape of Markdown', 'evil\\.com'],
    ['a character reference', 'evil&#46;com'],
    ['a hexadecimal character reference', '&#x65;vil&#x2E;com'],
    ['a named character reference', 'ev&shy;il&period;com'],
  ])('finds hosts through %s', (_what, text) => {
    expect(hosts(text)).toContain('evil.com')
  })

  test('returns the same host for Unicode and punycode', () => {
    expect([hosts('https://bücher.example/'), hosts('https://xn--bcher-kva.example/')]).toEqual([
      ['xn--bcher-kva.example'],
      ['xn--bcher-kva.example'],
    ])
  })

  test.each([
    ['💩.la', 'xn--ls8h.la'],
    ['i❤️.ws', 'xn--i-7iq.ws'],
    ['“bu\u0308cher.example”', 'xn--bcher-kva.example'],
    ['http://b%C3%BCcher.example/', 'xn--bcher-kva.example'],
    ['ПРИМЕР。испытание', 'xn--e1afmkfd.xn--80akhbyknj4f'],
    ['ﬁsh.example', 'fish.example'],
  ])('returns the same host as a browser: %j', (text, host) => {
    expect(hosts(text)).toContain(host)
  })

  test.each([
    ['an escaped address in a query', 'https://example.org/?u=https%3A%2F%2Fevil.com%2F', 'example.org'],
    ['an escaped blank in a query', 'https://example.org/?q=a%20evil.com', 'example.org'],
    ['an escaped wide blank in a query', 'https://example.org/?q=a%E3%80%80evil.com', 'example.org'],
    ['a fragment', 'https://example.org/#evil.com', 'example.org'],
    ['a query', 'https://example.org/?u=evil.com', 'example.org'],
    ['an address in a query', 'https://example.org/?u=https://evil.com/', 'example.org'],
    ['a path', 'https://example.org/evil.com', 'example.org'],
    ['labels below another name', 'https://evil.com.example.org/', 'evil.com.example.org'],
  ])('finds no host in %s', (_what, text, host) => {
    expect(new Set(hosts(text))).toEqual(new Set([host]))
  })

  test('finds no host in prose and numbers', () => {
    expect(hosts('One. Two... 3.14 and 10,000.00 e. g. this!')).toEqual([])
  })
})

describe('host set', () => {
  test.each([
    ['a name a line', 'evil.com\r\nworse.example\n'],
    ['a hosts file', '# comment\n127.0.0.1 localhost\n0.0.0.0 evil.com\n::1 worse.example other.example # why\n'],
    ['wildcards and filters', '! title\n*.evil.com\n||worse.example^\n'],
    ['other case and several marks', '|*.EVIL.com^ # why\r\n0.0.0.0\t||Worse.Example^\r\n'],
    ['addresses', 'https://evil.com/path\nworse.example:8080\n'],
  ])('reads %s', (_what, list) => {
    const set = createSet(list)
    expect([set.covers('evil.com') > 0, set.covers('worse.example') > 0, set.covers('localhost') > 0]).toEqual([
      true,
      true,
      false,
    ])
  })

  test('takes a name of hexadecimal digits for a name', () => {
    expect(createSet('face.bad.de\n').covers('face.bad.de')).toBe(11)
  })

  test('covers hosts below a name and no others', () => {
    const set = createSet('evil.com\ndeep.example.org')
    expect(
      ['a.b.evil.com', 'notevil.com', 'evil.com.org', 'example.org', 'x.deep.example.org'].map(host =>
        set.covers(host),
      ),
    ).toEqual([8, 0, 0, 0, 16])
  })

  test('covers a punycode name in any spelling of its labels and counts it once', () => {
    const set = createSet('xn--e1afmkfd.xn--80akhbyknj4f\nxn--bcher-kva.example\n0.0.0.0 XN--LS8H.la\nfaß.example')
    expect(set.size).toBe(4)
    for (const host of [
      'xn--e1afmkfd.xn--80akhbyknj4f',
      'пример.испытание',
      'xn--e1afmkfd.испытание',
      'www.пример.xn--80akhbyknj4f',
      'a.bücher.example',
      '💩.la',
      'faß.example',
      'xn--fa-hia.example',
    ])
      expect([host, set.covers(host) > 0]).toEqual([host, true])
    for (const host of ['испытание', 'bucher.example', 'cher.example', 'la', 'fass.example'])
      expect([host, set.covers(host)]).toEqual([host, 0])
  })

  test('builds the same set for any chunk sizes and holds every name of its list', () => {
    const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/)
    const name = fc.tuple(label, fc.stringMatching(/^[a-z]{2,5}$/)).map(parts => parts.join('.'))
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 40 }),
        (names, size) => {
          const set = createSet(names.map((text, at) => (at % 2 === 0 ? text : `0.0.0.0 ${text}`)).join('\n'), size)
          expect(set.size).toBe(names.length)
          expect(names.every(text => set.covers(normalizeHostname(text) ?? '') === text.length)).toBe(true)
        },
      ),
      { numRuns: 200 },
    )
  })
})

test('extractHosts: takes linear time on adversarial text', () => {
  for (const unit of [
    'a.',
    '.',
    'http://',
    'x@',
    '[.]',
    '%2e',
    'a.b:',
    '(dot)',
    'a.b/',
    '%25',
    '&#',
    '\\\\',
    'é.x ',
    '﷽.',
    '&a.b',
    '代.',
    ' dot ',
  ]) {
    const text = unit.repeat(100_000 / unit.length)
    extractHosts(text, () => true)
    const times = Array.from({ length: 5 }, () => {
      const start = cpuMs()
      extractHosts(text, () => true)
      return cpuMs() - start
    })
    expect([unit, Math.min(...times) < 500]).toEqual([unit, true])
  }
})

test('extractHosts: takes linear time for labels that no name can contain', () => {
  const letters = Array.from({ length: 1_000 }, (_, at) => String.fromCharCode(0x4e00 + 7 * at)).join('')
  for (const unit of [`${letters}.a `, `${'a'.repeat(2_040)}=%a.a `, `${'='.repeat(1_020)}${'a'.repeat(1_020)}é.a `]) {
    const text = unit.repeat(100_000 / unit.length)
    hosts(text)
    const start = cpuMs()
    hosts(text)
    // Quadratic time would be two seconds.
    expect(cpuMs() - start).toBeLessThan(1_000)
  }
  expect(hosts(`https://${letters}.evil.com/`)).toContain('evil.com')
  expect(hosts(`https://${letters.slice(0, 55)}.${letters.slice(60, 115)}.${'a'.repeat(150)}.evil.com/`)).toContain(
    'evil.com',
  )
  expect(hosts('https://bü\ufe0fcher.example/')).toEqual(['xn--bcher-kva.example'])
})
