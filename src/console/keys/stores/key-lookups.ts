/**
 * Looks up keys that are not in memory. One query runs at a time with up to 100 keys, so waiting clients add no
 * queries. Keys that are known to exist go first, so invalid keys cannot delay them. Both queues are bounded; beyond
 * that a look-up is rejected at once, because each waiting one holds a connection and its buffers.
 */
import { GatewayError } from '../../../core/validation/errors.ts'

/** A key to look up: its full digest, and the public ID by which its row is found. */
export type WantedKey = { readonly digest: string; readonly publicId: string }

type KeyLookups<T> = {
  /**
   * Looks up a key in Postgres; null = none. Concurrent look-ups of one key share a promise. Rejects with
   * `service_unavailable` if too many wait, and with the query's errors.
   */
  find(key: WantedKey, exists: boolean): Promise<T | null>
}

type PendingLookup<T> = WantedKey & {
  readonly promise: Promise<T | null>
  readonly resolve: (found: T | null) => void
  readonly reject: (cause: unknown) => void
}

const keysPerQuery = 100
const maximumWaiting = { existing: 256, unknown: 64 }

/** Creates look-ups. `query` returns its results by digest. */
export function createKeyLookups<T>(
  query: (keys: readonly WantedKey[]) => Promise<ReadonlyMap<string, T>>,
): KeyLookups<T> {
  const existing = new Map<string, PendingLookup<T>>()
  const unknown = new Map<string, PendingLookup<T>>()
  const asked = new Map<string, PendingLookup<T>>()
  let isRunning = false

  const next = (): PendingLookup<T>[] => {
    const batch = [...existing.values(), ...unknown.values()].slice(0, keysPerQuery)
    for (const pendingLookup of batch) {
      existing.delete(pendingLookup.digest)
      unknown.delete(pendingLookup.digest)
      asked.set(pendingLookup.digest, pendingLookup)
    }
    return batch
  }
  const send = async (batch: readonly PendingLookup<T>[]) => {
    try {
      const found = await query(batch)
      for (const pendingLookup of batch) pendingLookup.resolve(found.get(pendingLookup.digest) ?? null)
    } catch (cause) {
      for (const pendingLookup of batch) pendingLookup.reject(cause)
    } finally {
      asked.clear()
    }
  }
  const run = async () => {
    isRunning = true
    for (let batch = next(); batch.length > 0; batch = next()) await send(batch)
    isRunning = false
  }

  return {
    find({ digest, publicId }, exists) {
      const same = asked.get(digest) ?? existing.get(digest) ?? unknown.get(digest)
      if (same !== undefined) return same.promise
      const line = exists ? existing : unknown
      if (line.size >= (exists ? maximumWaiting.existing : maximumWaiting.unknown)) return Promise.reject(tooMany())
      const item = { digest, publicId, ...Promise.withResolvers<T | null>() }
      line.set(digest, item)
      if (!isRunning) void run()
      return item.promise
    },
  }
}

function tooMany(): GatewayError {
  return new GatewayError('service_unavailable', 'API key lookup is overloaded. Retry.', {
    retryAfterMs: 1000,
    detail: 'the queue of key look-ups is full',
  })
}
