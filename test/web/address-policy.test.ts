/** Rules for the hosts of pages, with real sockets and a real DNS server, never the check in isolation. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { checkUrl, isPublicAddress } from '../../src/core/validation/public-address.ts'
import { insideV4, insideV6, payloads } from './payloads.ts'
import { getPath, page, publicAddresses, type Rig, redirectTo, startRig } from './rig.ts'

setDefaultTimeout(240_000)

const all = payloads()
const [publicV4, publicV6] = publicAddresses

let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    page(socket, request) {
      const path = getPath(request)
      const [, kind, index] = /^\/(302|chain)\/(\d+)/.exec(path) ?? []
      if (kind === '302') socket.end(redirectTo(all[Number(index)] ?? ''))
      else if (kind === 'chain') socket.end(redirectTo(`/302/${index}`, 307))
      else socket.end(page('<p>An honest page.</p>'))
    },
    answer(name, query) {
      const inside = /^(v4|v6|both|cname|mixed|flip)-(\d+)\./.exec(name)
      if (inside === null) return { a: [publicV4], aaaa: [publicV6] }
      const [, kind, number] = inside
      const v4 = insideV4[Number(number) % insideV4.length] ?? ''
      const v6 = insideV6[Number(number) % insideV6.length] ?? ''
      switch (kind) {
        case 'v4':
          return { a: [v4] }
        case 'v6':
          return { aaaa: [v6] }
        case 'both':
          return { a: [publicV4], aaaa: [v6] }
        case 'mixed':
          return { a: [publicV4, v4], aaaa: [publicV6] }
        case 'cname':
          return { cname: 'redis.default.svc', a: [v4], aaaa: [v6] }
        default:
          return query % 3 === 0 ? { a: [publicV4] } : { a: [query % 3 === 1 ? v4 : publicV4] }
      }
    },
  })
})
afterAll(() => rig.stop())

/** Reads all URLs, fifty concurrently, and returns those that returned a page. */
async function readAll(urls: readonly string[]): Promise<string[]> {
  const answered: string[] = []
  const waiting = [...urls]
  const work = async () => {
    for (let url = waiting.pop(); url !== undefined; url = waiting.pop())
      if (!('code' in (await rig.read(url)))) answered.push(url)
  }
  await Promise.all(Array.from({ length: 50 }, work))
  return answered
}

const dialledInside = () => rig.dialled.filter(({ address }) => address !== publicV4 && address !== publicV6)

describe('page fetcher on internal addresses', () => {
  test(`fetches none of ${all.length} URLs and touches no canary [S1, S2, S3]`, async () => {
    expect(all.length).toBeGreaterThanOrEqual(1_500)
    const before = rig.dialled.length
    expect(await readAll(all)).toEqual([])
    // Not even a name was dialed: their spelling already disqualifies them.
    expect(rig.dialled.length).toBe(before)
    expect(rig.canaryHits()).toBe(0)
  })

  test('follows no redirect or chain of redirects there [S5]', async () => {
    const absolute = all.flatMap((url, index) => (/^\s*[a-z]+:/i.test(url) && !url.includes('\n') ? [index] : []))
    expect(absolute.length).toBeGreaterThan(1_400)
    const before = rig.dialled.length
    // A redirect passes the same check as the first URL, for which the test above reads all.
    const straight = absolute.filter((_, at) => at % 10 === 0)
    const chained = absolute.filter((_, at) => at % 10 === 5)
    const read = (kind: string, indexes: readonly number[]) =>
      readAll(indexes.map(index => `http://r${index}.${kind}.example.com/${kind}/${index}`))
    expect(await read('302', straight)).toEqual([])
    expect(await read('chain', chained)).toEqual([])
    // The public pages themselves must have been requested for this to prove anything.
    expect(rig.dialled.length - before).toBeGreaterThanOrEqual(straight.length + 2 * chained.length)
    expect(dialledInside()).toEqual([])
    expect(rig.canaryHits()).toBe(0)
  })

  for (const kind of ['v4', 'v6', 'both', 'mixed', 'cname'])
    test(`rejects a name that resolves there (${kind}) [S3]`, async () => {
      const urls = Array.from({ length: 300 }, (_, index) => `http://${kind}-${index}.example.com/`)
      const asked = rig.asked.length
      expect(await readAll(urls)).toEqual([])
      expect(rig.asked.length - asked).toBeGreaterThanOrEqual(urls.length)
      expect(dialledInside()).toEqual([])
    })

  test('dials a name with changing addresses only at the checked one [S4]', async () => {
    const before = rig.dialled.length
    const urls = Array.from({ length: 500 }, (_, index) => `http://flip-${index}.example.com/`)
    const answered = await readAll(urls)
    expect(answered.length).toBeGreaterThan(50)
    expect(rig.dialled.length - before).toBeGreaterThanOrEqual(answered.length)
    expect(dialledInside()).toEqual([])
    expect(rig.canaryHits()).toBe(0)
  })

  test('detects a connection to the canary, so the tests above are effective', async () => {
    const blind = await startRig({ page: socket => socket.end(page('x')), answer: () => ({ a: ['8.8.4.4'] }) })
    // Public to the check, but not one of this network's pages: dialing leads to the canary.
    expect(await blind.read('http://elsewhere.example.com/')).toMatchObject({ text: 'INTERNAL' })
    expect(blind.canaryHits()).toBe(1)
    blind.stop()
  })

  test('isPublicAddress: checks IPv4 inside IPv6 as IPv4 [S2]', () => {
    for (const address of [...insideV4, ...insideV6, 'fe80::1%eth0', 'nonsense', ''])
      expect([address, isPublicAddress(address)]).toEqual([address, false])
    for (const address of [publicV4, publicV6, '8.8.8.8', '::ffff:8.8.8.8', '2a00:1450:4001:81b::200e'])
      expect([address, isPublicAddress(address)]).toEqual([address, true])
  })

  test('checkUrl: rejects a redirect from https to http [S5]', () => {
    expect(checkUrl('http://example.com/', new URL('https://example.com/'))).toBeNull()
    expect(checkUrl('/there', new URL('https://example.com/here'))?.url.href).toBe('https://example.com/there')
  })
})

describe('page fetcher errors', () => {
  test('do not distinguish an internal from a nonexistent name [S10]', async () => {
    const inner = await startRig({
      page: socket => socket.end(page('x')),
      answer: name => (name.startsWith('there') ? { a: ['10.0.0.5'] } : null),
    })
    const url = (name: string) => `http://${name}.corp.example.com/`
    expect(await inner.read(url('there'))).toEqual({ url: url('there'), code: 'unreachable' })
    expect(await inner.read(url('nowhere'))).toEqual({ url: url('nowhere'), code: 'unreachable' })
    inner.stop()
  })

  test('take a multiple of 100 ms [S10]', async () => {
    let now = 1_000
    const slept: number[] = []
    const clock = {
      now: () => now,
      monotonic: () => now++ * 7.3,
      sleep: async (milliseconds: number) => void slept.push(milliseconds),
    }
    const timed = await startRig({ clock, page: socket => socket.end('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n') })
    for (let run = 0; run < 5; run++) {
      const started = now * 7.3
      expect(await timed.read(`http://five${run}.example.com/`)).toMatchObject({ code: 'unreachable' })
      const tookMs = (now - 1) * 7.3 - started + (slept.at(-1) ?? 0)
      expect(Math.abs(tookMs / 100 - Math.round(tookMs / 100))).toBeLessThan(1e-6)
    }
    timed.stop()
  })
})

describe('page fetcher limits', () => {
  test('allow 30 pages per minute per account and ten per host, including redirects [S9]', async () => {
    let now = 0
    const clock = { now: () => now, monotonic: () => 0, sleep: async () => {} }
    const limited = await startRig({
      clock,
      page: (socket, request) => socket.end(getPath(request) === '/away' ? redirectTo('/') : page('<p>Here.</p>')),
    })
    const read = async (url: string, accountId: string) =>
      'code' in (await limited.reader.read(url, { accountId, signal: new AbortController().signal }))
    const item = async (count: number, url: (index: number) => string, account: (index: number) => string) => {
      let refused = 0
      for (let index = 0; index < count; index++) if (await read(url(index), account(index))) refused += 1
      return refused
    }
    expect(
      await item(
        32,
        index => `http://h${index}.example.com/`,
        () => 'busy',
      ),
    ).toBe(2)
    expect(
      await item(
        12,
        () => 'http://popular.example.com/',
        index => `a${index}`,
      ),
    ).toBe(2)
    // A redirect counts as a page of the host too.
    expect(
      await item(
        6,
        () => 'http://moved.example.com/away',
        index => `b${index}`,
      ),
    ).toBe(1)
    now += 60_001
    expect(
      await item(
        1,
        () => 'http://popular.example.com/',
        () => 'busy',
      ),
    ).toBe(0)
    limited.stop()
  })

  test('exclude hosts on the blocklist, also in redirects [S11]', async () => {
    const listed = await startRig({
      isListed: url => new URL(url).hostname === 'evil.example.net',
      page: (socket, request) =>
        socket.end(getPath(request) === '/to' ? redirectTo('http://evil.example.net/') : page('<p>x')),
    })
    expect(await listed.read('http://evil.example.net/')).toMatchObject({ code: 'refused' })
    expect(await listed.read('http://fine.example.com/to')).toMatchObject({ code: 'refused' })
    expect(listed.dialled.length).toBe(1)
    listed.stop()
  })
})
