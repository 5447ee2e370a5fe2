/** The three back ends in their real formats over real sockets, and the order in which they are called. */
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { webLimits } from '../../src/core/chat/web-sources.ts'
import { noPolicy } from '../../src/core/policy/constraints.ts'
import { systemClock } from '../../src/database/clock.ts'
import {
  brave,
  braveBaseUrl,
  createSearch,
  type SearchBackEnd,
  searxng,
  tavily,
  tavilyBaseUrl,
} from '../../src/web/search.ts'
import { patient } from '../harness/patience.ts'
import { jsonAnswer, startUpstream, type Upstream, type UpstreamAnswer } from '../harness/upstream.ts'

setDefaultTimeout(240_000)

type SearchClock = Parameters<typeof createSearch>[0]['clock']

const upstreams: Upstream[] = []
afterAll(() => {
  for (const upstream of upstreams) upstream.stop()
})

function serving(answer: () => UpstreamAnswer | Promise<UpstreamAnswer>): Upstream {
  const upstream = startUpstream(answer)
  upstreams.push(upstream)
  return upstream
}

function searching(
  backEnds: readonly SearchBackEnd[],
  isListed = (_: string) => false,
  clock: SearchClock = systemClock,
) {
  const warnings: Readonly<Record<string, string>>[] = []
  const log = { warn: (_: string, fields: Readonly<Record<string, string>>) => void warnings.push(fields) }
  const { find } = createSearch({
    ...{ backEnds, fetch, clock, log, isListed },
    policy: noPolicy,
    budgetMs: patient.searchMs,
  })
  return { warnings, find: (query: string) => find(query, new AbortController().signal, undefined) }
}

/** Bodies of the three back ends, reduced to their common parts. */
const bodies = {
  searxng: {
    query: 'tides',
    number_of_results: 0,
    results: [
      {
        url: 'https://a.example/tides',
        title: 'Tides',
        content: 'High &amp; low water',
        engine: 'brave',
        parsed_url: ['https', 'a.example', '/tides', '', '', ''],
        template: 'default.html',
        engines: ['brave'],
        positions: [1],
        score: 1,
        category: 'general',
        publishedDate: null,
      },
      { url: 'https://b.example/', title: 'Bay', content: '', engine: 'brave', category: 'general' },
      { template: 'key-value.html', kvmap: {} },
    ],
    answers: [],
    corrections: [],
    infoboxes: [],
    suggestions: [],
    unresponsive_engines: [['google', 'timeout']],
  },
  brave: {
    type: 'search',
    query: { original: 'tides', more_results_available: true },
    mixed: { type: 'mixed', main: [{ type: 'web', index: 0, all: false }] },
    web: {
      type: 'search',
      results: [
        {
          title: 'Tides',
          url: 'https://a.example/tides',
          is_source_local: false,
          description: '<strong>High</strong> &#x27;and&#39; low',
          profile: { name: 'A', url: 'https://a.example' },
          language: 'en',
          family_friendly: true,
          type: 'search_result',
          subtype: 'generic',
          page_age: '2026-05-01T00:00:00',
          meta_url: { hostname: 'a.example' },
        },
      ],
      family_friendly: true,
    },
  },
  tavily: {
    query: 'tides',
    answer: null,
    images: [],
    results: [
      { title: 'Tides', url: 'https://a.example/tides', content: 'High and low', score: 0.98, raw_content: null },
    ],
    response_time: '0.71',
    request_id: 'x',
  },
}

describe('search back ends', () => {
  test('request JSON from SearXNG at /search and drop results without text', async () => {
    const upstream = serving(() => jsonAnswer(bodies.searxng))
    for (const address of [upstream.url, `${upstream.url}/`, `${upstream.url}/search`])
      expect(await searching([searxng(address)]).find('tides & bays?')).toEqual([
        { url: 'https://a.example/tides', title: 'Tides', text: 'High & low water' },
      ])
    for (const { method, path } of upstream.ledger())
      expect([method, path]).toEqual(['GET', '/search?q=tides+%26+bays%3F&format=json&safesearch=1'])
  })

  test("send Brave's token and remove its emphasis", async () => {
    const upstream = serving(() => jsonAnswer(bodies.brave))
    for (const baseUrl of [upstream.url, `${upstream.url}/res/v1`, `${upstream.url}/res/v1/`])
      expect(await searching([brave({ apiKey: 'BSA-key', baseUrl })]).find('tides')).toEqual([
        { url: 'https://a.example/tides', title: 'Tides', text: "High 'and' low" },
      ])
    for (const { method, path, headers } of upstream.ledger()) {
      expect([method, path]).toEqual([
        'GET',
        `/res/v1/web/search?q=tides&count=${webLimits.results}&text_decorations=false&result_filter=web`,
      ])
      expect([headers['x-subscription-token'], headers.accept]).toEqual(['BSA-key', 'application/json'])
    }
    expect(brave({ apiKey: 'k', baseUrl: braveBaseUrl }).toRequest('q', 6).url).toStartWith(
      'https://api.search.brave.com/res/v1/web/search?q=q&',
    )
  })

  test('call Tavily by POST with a bearer key', async () => {
    const upstream = serving(() => jsonAnswer(bodies.tavily))
    expect(await searching([tavily({ apiKey: 'tvly-key', baseUrl: upstream.url })]).find('tides')).toEqual([
      { url: 'https://a.example/tides', title: 'Tides', text: 'High and low' },
    ])
    const [asked] = upstream.ledger()
    expect([asked?.method, asked?.path, asked?.headers.authorization]).toEqual(['POST', '/search', 'Bearer tvly-key'])
    expect(JSON.parse(asked?.body ?? '')).toEqual({
      query: 'tides',
      max_results: webLimits.results,
      search_depth: 'basic',
      include_answer: false,
    })
    expect(tavily({ apiKey: 'k', baseUrl: tavilyBaseUrl }).toRequest('q', 6).url).toBe('https://api.tavily.com/search')
  })

  test('read only the beginning of very long results', async () => {
    const results = [{ url: 'https://a.example/', title: 'T', content: 'word '.repeat(150_000) }]
    const found = await searching([searxng(serving(() => jsonAnswer({ results })).url)]).find('x')
    if ('code' in found) throw new Error(found.code)
    expect(found[0]?.text.length).toBe(8_000)
  })

  test('accept an empty result', async () => {
    const empty = { type: 'search', query: { original: 'x' } }
    expect(await searching([brave({ apiKey: 'k', baseUrl: serving(() => jsonAnswer(empty)).url })]).find('x')).toEqual(
      [],
    )
    const none = { results: [], unresponsive_engines: [] }
    expect(await searching([searxng(serving(() => jsonAnswer(none)).url)]).find('x')).toEqual([])
  })
})

test('search: returns each page once in any notation, without blocked hosts and other schemes, at most six', async () => {
  const urls = [
    'https://www.a.example/x/',
    'http://a.example/x#part',
    'https://a.example/x?utm_source=mail',
    'https://a.example/x?page=2',
    'https://evil.example/',
    'javascript:alert(1)',
    'not an address',
    `https://long.example/${'x'.repeat(500)}`,
    'https://c.example/a b\nIgnore this',
    ...[1, 2, 3, 4, 5, 6, 7].map(number => `https://b.example/${number}`),
  ]
  const results = urls.map(url => ({ url, title: url, content: 'text' }))
  const upstream = serving(() => jsonAnswer({ results }))
  const { find } = searching([searxng(upstream.url)], url => new URL(url).hostname === 'evil.example')
  const found = await find('x')
  expect('code' in found ? found : found.map(({ url }) => url)).toEqual([
    'https://www.a.example/x/',
    'https://a.example/x?page=2',
    'https://c.example/a%20bIgnore%20this',
    ...[1, 2, 3].map(number => `https://b.example/${number}`),
  ])
})

describe('search fallback', () => {
  const good = () => jsonAnswer(bodies.tavily)
  const failures: Record<string, () => UpstreamAnswer> = {
    'an error': () => jsonAnswer({ error: 'no' }, 500),
    'a wrong key': () => jsonAnswer({ error: 'no' }, 401),
    'too many requests': () => jsonAnswer({ error: 'slow down' }, 429),
    'a redirect': () => ({ status: 302, headers: { location: 'http://127.0.0.1:1/' } }),
    'no JSON': () => ({ headers: { 'content-type': 'text/html' }, pieces: ['<html>'] }),
    'other JSON': () => jsonAnswer({ detail: 'format not allowed' }),
    'nothing found by engines that all failed': () =>
      jsonAnswer({ results: [], unresponsive_engines: [['google', 'CAPTCHA']] }),
    'too much': () => jsonAnswer({ results: [], padding: 'x'.repeat(2 << 20) }),
    'a cut answer': () => ({ pieces: ['{"results":['], cutAt: 5 }),
  }
  for (const [name, answer] of Object.entries(failures))
    test(`uses the next back end after ${name}`, async () => {
      const [first, second] = [serving(answer), serving(good)]
      const { find, warnings } = searching([searxng(first.url), tavily({ apiKey: 'k', baseUrl: second.url })])
      expect(await find('tides')).toMatchObject([{ url: 'https://a.example/tides' }])
      expect([first.ledger().length, second.ledger().length]).toEqual([1, 1])
      expect(warnings).toMatchObject([{ back_end: 'searxng' }])
      expect(JSON.stringify(warnings)).not.toContain('tides')
    })

  test('uses only the first back end that answers', async () => {
    const [first, second] = [serving(() => jsonAnswer(bodies.searxng)), serving(good)]
    await searching([searxng(first.url), tavily({ apiKey: 'k', baseUrl: second.url })]).find('tides')
    expect([first.ledger().length, second.ledger().length]).toEqual([1, 0])
  })

  test('leaves time for the next back end, and ends with the budget when all are silent', async () => {
    let now = 0
    let giveUp = () => {}
    let allowedMs = 0
    const clock: SearchClock = {
      monotonic: () => now,
      after(milliseconds, action) {
        allowedMs = milliseconds
        giveUp = action
        return () => {}
      },
    }
    const silent = () => {
      now += allowedMs
      giveUp()
      return new Promise<UpstreamAnswer>(() => {})
    }
    const none = () => false
    const [first, second] = [serving(silent), serving(good)]
    const two = [searxng(first.url), tavily({ apiKey: 'k', baseUrl: second.url })]
    expect(await searching(two, none, clock).find('tides')).toMatchObject([{ url: 'https://a.example/tides' }])
    const { find, warnings } = searching(
      [searxng(serving(silent).url), tavily({ apiKey: 'k', baseUrl: serving(silent).url })],
      none,
      clock,
    )
    expect(await find('tides')).toEqual({ url: null, code: 'too_slow' })
    expect(warnings.length).toBe(2)
    await first.until(ledger => ledger.every(({ outcome }) => outcome === 'aborted'))
  })

  test('reports a missing back end, and stops when the client disconnects', async () => {
    expect(await searching([searxng('http://127.0.0.1:1')]).find('tides')).toEqual({ url: null, code: 'unreachable' })
    const abort = new AbortController()
    const log = { warn() {} }
    const upstream = serving(() => new Promise<UpstreamAnswer>(() => abort.abort()))
    const { find } = createSearch({
      backEnds: [searxng(upstream.url)],
      policy: noPolicy,
      fetch,
      clock: systemClock,
      log,
      isListed: () => false,
      budgetMs: patient.searchMs,
    })
    await expect(find('tides', abort.signal, undefined)).rejects.toThrow()
  })
})
