import { describe, expect, test } from 'bun:test'
import {
  createExternalModeration,
  type ModerationDeps,
} from '../../../../src/text/moderation/layers/external-moderation.ts'
import type { ModerationSettings } from '../../../../src/text/moderation/layers/settings.ts'

const endpoint: ModerationSettings = { url: 'https://moderation.test/v1', apiKey: 'key', model: null, timeoutMs: 1_000 }
const never = new AbortController().signal

/** Creates a client whose clock and endpoint the test controls. */
function world(answer: (init: RequestInit) => Promise<Response>, settings = endpoint) {
  const lines: string[] = []
  const bodies: string[] = []
  let now = 0
  const timers: (() => void)[] = []
  const pass = (milliseconds: number) => {
    now += milliseconds
  }
  const deps: ModerationDeps = {
    fetch: (_url, init) => {
      bodies.push(String(init.body))
      return answer(init)
    },
    monotonic: () => now,
    findModelBreach: () => null,
    after: (_ms, action) => {
      timers.push(action)
      return () => {}
    },
    log: {
      warn: (event, fields) => void lines.push(`${event} ${fields?.detail ?? ''}`),
      info: event => void lines.push(event),
    },
    complete: async (_model, _system, user) =>
      user.includes('knife') ? 'Sure: {"flagged": true, "category": "violence"}' : '{"flagged": false}',
  }
  return { moderation: createExternalModeration(deps, settings), lines, bodies, timers, pass }
}

const results = (...flags: boolean[]) =>
  Response.json({
    results: flags.map(flagged => ({ flagged, categories: { 'hate/threatening': flagged, violence: false } })),
  })

describe('external moderation endpoint', () => {
  test('receives every text and blocks with its first flagged category', async () => {
    const { moderation, bodies } = world(async () => results(false, true))
    expect(await moderation.send(['one', 'two'], 'req_1', never)).toBe('hate_threatening')
    expect(bodies).toEqual(['{"input":["two","one"]}'])
    expect(moderation.counts).toEqual({ asked: 1, blocked: 1, failed: 0, passedOver: 0 })
  })

  test('receives all of a long text, in calls of at most 64 overlapping parts', async () => {
    const { moderation, bodies } = world(async () => results(false))
    const text = Array.from({ length: 180_000 }, (_, at) => `w${at}`).join(' ')
    await moderation.send([text], 'req_1', never)
    const calls = bodies.map(body => JSON.parse(body).input as string[])
    expect(calls.map(({ length }) => length)).toEqual([64, Math.ceil((text.length - 200) / 15_800) - 64])
    const pieces = calls.flat()
    expect(pieces.map((piece, at) => (at === 0 ? piece : piece.slice(200))).join('')).toBe(text)
  })

  test.each([
    ['refuses the connection', () => Promise.reject(new Error('ECONNREFUSED')), 'no response'],
    ['answers 500', async () => new Response('secret of theirs', { status: 500 }), 'status 500'],
    ['answers no JSON', async () => new Response('<html>'), 'not a moderation response'],
    ['answers other JSON', async () => Response.json({ results: [{ flagged: 'yes' }] }), 'not a moderation response'],
    ['answers no result', async () => Response.json({ results: [] }), 'not a moderation response'],
    ['answers without an end', async () => new Response('x'.repeat(300_000)), 'the response exceeds the size limit'],
  ] as [string, () => Promise<Response>, string][])(
    'keeps the in-process verdict and logs the failure when it %s',
    async (_what, answer, detail) => {
      const { moderation, lines } = world(answer)
      expect(await moderation.send(['one'], 'req_1', never)).toBeNull()
      expect(lines).toEqual([`moderation_failed ${detail}`])
      expect(moderation.counts.failed).toBe(1)
    },
  )

  test('aborts after its timeout', async () => {
    const { moderation, lines, timers } = world(
      init => new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted')))),
    )
    const verdict = moderation.send(['one'], 'req_1', never)
    for (const expire of timers) expire()
    expect(await verdict).toBeNull()
    expect(lines).toEqual(['moderation_failed no verdict in time'])
  })

  test('pauses for ten seconds after three failures', async () => {
    let isUp = false
    const { moderation, lines, bodies, pass } = world(async () =>
      isUp ? results(true) : new Response('', { status: 503 }),
    )
    for (let count = 0; count < 4; count++) expect(await moderation.send(['one'], 'req_1', never)).toBeNull()
    expect(bodies.length).toBe(3)
    isUp = true
    pass(10_001)
    expect(await moderation.send(['one'], 'req_1', never)).toBe('hate_threatening')
    expect(lines.slice(-2)).toEqual(['moderation_skipped ', 'moderation_recovered'])
    expect(moderation.counts).toEqual({ asked: 4, blocked: 1, failed: 3, passedOver: 1 })
  })

  test('does not fail when a client disconnects', async () => {
    const { moderation } = world(() => Promise.reject(new Error('aborted')))
    expect(await moderation.send(['one'], 'req_1', AbortSignal.abort())).toBeNull()
    expect(moderation.counts.failed).toBe(0)
  })
})

test('external moderation model: uses the first JSON object, and treats other output as no response', async () => {
  const settings = { ...endpoint, url: null, model: 'gpt-5.5' }
  const { moderation } = world(() => Promise.reject(new Error('no endpoint')), settings)
  expect(await moderation.send(['with a knife'], 'req_1', never)).toBe('violence')
  expect(await moderation.send(['with a spoon'], 'req_1', never)).toBeNull()
})
