import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBlocklist } from '../../../../src/text/moderation/layers/blocklist.ts'
import { eventually } from '../../../harness/eventually.ts'

const folder = mkdtempSync(join(tmpdir(), 'blocklist-'))
afterAll(() => rmSync(folder, { recursive: true }))

function world(fetch: () => Promise<Response> = () => Promise.reject(new Error('offline'))) {
  const lines: string[] = []
  const timers: (() => void)[] = []
  const deps = {
    fetch,
    hop: () => Promise.reject(new Error('no hop')),
    after: (milliseconds: number, action: () => void) => {
      if (milliseconds === 5_000) timers.push(action)
      return () => {}
    },
    log: {
      info: (event: string, fields?: object) => void lines.push(`${event} ${JSON.stringify(fields)}`),
      warn: (event: string, fields?: object) => void lines.push(`${event} ${JSON.stringify(fields)}`),
    },
  }
  const open = (sources: readonly string[], allow: readonly string[] = []) =>
    openBlocklist(deps, { sources, reloadMs: 5_000, allow })
  /** Runs the scheduled reload; resolves when the next one is scheduled. */
  const reload = async () => {
    timers.shift()?.()
    await eventually(() => timers.length === 1)
  }
  return { open, lines, reload }
}

describe('blocklist', () => {
  test("contains vendors' test hosts by default, and no well-known site", () => {
    const list = world().open([])
    expect(
      ['malware.wicar.org', 'testsafebrowsing.appspot.com', 'appspot.com', 'google.com', 'cutt.ly'].map(list.isBlocked),
    ).toEqual([true, true, false, false, false])
  })

  test('reads files and reloads them on schedule', async () => {
    const path = join(folder, 'list.txt')
    writeFileSync(path, '0.0.0.0 evil.com\n')
    const { open, reload } = world()
    const list = open([path])
    await list.ready
    expect([list.isBlocked('a.evil.com'), list.isBlocked('worse.example')]).toEqual([true, false])
    writeFileSync(path, 'worse.example\n')
    await reload()
    expect([list.isBlocked('a.evil.com'), list.isBlocked('worse.example')]).toEqual([false, true])
    list.close()
  })

  test('keeps the last version of an unreadable list and logs it', async () => {
    let isUp = true
    const { open, reload, lines } = world(async () =>
      isUp ? new Response('evil.com\n') : new Response('', { status: 503 }),
    )
    const list = open(['https://lists.test/a?token=secret'])
    await list.ready
    isUp = false
    await reload()
    expect(list.isBlocked('evil.com')).toBe(true)
    expect(lines.at(-1)).toBe(
      'blocklist_load_failed {"source":"https://lists.test/a","names_kept":1,"detail":"status 503"}',
    )
    list.close()
  })

  test('keeps its hosts when a download is an error page', async () => {
    const pages = ['evil.com\n', '']
    const { open, reload } = world(async () => new Response(pages.shift() ?? ''))
    const list = open(['https://lists.test/a'])
    await list.ready
    await reload()
    expect(list.isBlocked('evil.com')).toBe(true)
    list.close()
  })

  test('prefers the most specific entry, and allow over block', async () => {
    const path = join(folder, 'wide.txt')
    writeFileSync(path, 'cutt.ly\nphish.github.io\nours.example\n')
    const list = world().open([path], ['ours.example'])
    await list.ready
    expect(
      ['cutt.ly', 'phish.github.io', 'other.github.io', 'ours.example', 'sub.ours.example'].map(list.isBlocked),
    ).toEqual([false, true, false, false, false])
    list.close()
  })

  test('reads 250,000 names in slices, so that other work is not delayed', async () => {
    const path = join(folder, 'large.txt')
    writeFileSync(
      path,
      Array.from({ length: 250_000 }, (_, at) => `0.0.0.0 host-${at}.example${at % 977}.com`).join('\n'),
    )
    const list = world().open([path])
    let turns = 0
    let isReady = false
    void list.ready.then(() => {
      isReady = true
    })
    while (!isReady) {
      turns++
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(list.isBlocked('host-249999.example864.com')).toBe(true)
    expect(turns).toBeGreaterThan(50)
    list.close()
  })
})
