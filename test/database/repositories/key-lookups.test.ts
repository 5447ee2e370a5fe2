import { describe, expect, test } from 'bun:test'
import { createKeyLookups, type WantedKey } from '../../../src/console/keys/stores/key-lookups.ts'

/** Creates look-ups on a controlled store: every key exists, and its value is its digest. */
function start() {
  const queries: { readonly digests: readonly string[]; answer(): void; fail(): void }[] = []
  const lookups = createKeyLookups<string>(keys => {
    const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, string>>()
    queries.push({
      digests: keys.map(({ digest }) => digest),
      answer: () => resolve(new Map(keys.map(({ digest }) => [digest, digest]))),
      fail: () => reject(new Error('away')),
    })
    return promise
  })
  return { lookups, queries }
}

const key = (name: string): WantedKey => ({ digest: name, publicId: name })
const settled = () => new Promise<void>(resolve => setImmediate(resolve))

describe('createKeyLookups', () => {
  test('queries a first key at once, and all keys that came meanwhile together', async () => {
    const { lookups, queries } = start()
    const first = lookups.find(key('first'), false)
    const rest = Array.from({ length: 50 }, (_, index) => lookups.find(key(`key-${index}`), false))
    expect(queries.map(({ digests }) => digests.length)).toEqual([1])
    queries[0]?.answer()
    expect(await first).toBe('first')
    await settled()
    expect(queries.map(({ digests }) => digests.length)).toEqual([1, 50])
    queries[1]?.answer()
    expect((await Promise.all(rest)).at(-1)).toBe('key-49')
    await settled()
    expect(queries).toHaveLength(2)
  })

  test('queries a key once for any number of waiting requests', async () => {
    const { lookups, queries } = start()
    const found = [key('a'), key('a'), key('b'), key('b')].map(wantedKey => lookups.find(wantedKey, false))
    queries[0]?.answer()
    await settled()
    queries[1]?.answer()
    expect(await Promise.all(found)).toEqual(['a', 'a', 'b', 'b'])
    expect(queries.map(({ digests }) => digests)).toEqual([['a'], ['b']])
  })

  test('queries existing keys before unknown ones', async () => {
    const { lookups, queries } = start()
    const unknown = Array.from({ length: 65 }, (_, index) => lookups.find(key(`unknown-${index}`), false))
    const existing = Array.from({ length: 90 }, (_, index) => lookups.find(key(`existing-${index}`), true))
    queries[0]?.answer()
    await settled()
    expect(queries[1]?.digests.filter(digest => digest.startsWith('existing'))).toHaveLength(90)
    expect(queries[1]?.digests).toHaveLength(100)
    queries[1]?.answer()
    await Promise.all(existing)
    await settled()
    queries[2]?.answer()
    expect(await Promise.all(unknown)).toHaveLength(65)
  })

  test('rejects beyond its limit at once with 503, separately for unknown and existing keys', async () => {
    const { lookups, queries } = start()
    const running = lookups.find(key('running'), false)
    const waiting = Array.from({ length: 64 }, (_, index) => lookups.find(key(`unknown-${index}`), false))
    await expect(lookups.find(key('one more'), false)).rejects.toMatchObject({
      code: 'service_unavailable',
      status: 503,
    })
    const existing = lookups.find(key('existing'), true)
    queries[0]?.answer()
    await settled()
    queries[1]?.answer()
    expect(await existing).toBe('existing')
    await Promise.all([running, ...waiting])
  })

  test('rejects all look-ups of a failed query and queries the next ones', async () => {
    const { lookups, queries } = start()
    const failed = lookups.find(key('a'), true)
    queries[0]?.fail()
    await expect(failed).rejects.toThrow('away')
    const again = lookups.find(key('a'), true)
    queries[1]?.answer()
    expect(await again).toBe('a')
  })
})
