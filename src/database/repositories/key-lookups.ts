/**
 * Asks Postgres about keys that are not in memory. One query runs at a time and carries up to a hundred keys, so that
 * callers who wait never add queries. Keys that are known to exist go first: keys of strangers cannot delay them. Both lines
 * are bounded; past its bound a lookup is refused at once, because each one that waits holds a connection and its buffers.
 */
import { GatewayError } from '../../core/validation/errors.ts'

/** A key to look up: its full digest, and the id by which its row is found. */
export type WantedKey = { readonly digest: string; readonly publicId: string }

export type KeyLookups<T> = {
  /**
   * What Postgres says of a key; null if there is none. Lookups of one key share one promise. Rejects with
   * `service_unavailable` if too many wait, and with what the query throws.
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

/** `query` answers by digest. */
export function createKeyLookups<T>(
  query: (keys: readonly WantedKey[]) => Promise<ReadonlyMap<string, T>>,
): KeyLookups<T> {
  const existing = new Map<string, PendingLookup<T>>()
  const unknown = new Map<string, PendingLookup<T>>()
  const asked = new Map<string, PendingLookup<T>>()
  let isRunning = false

  const next = (): PendingLookup<T>[] => {
    const batch = [...existing.values(), ...unknown.values()].slice(0, keysPerQuery)
    for (const one of batch) {
      existing.delete(one.digest)
      unknown.delete(one.digest)
      asked.set(one.digest, one)
    }
    return batch
  }
  const ask = async (batch: readonly PendingLookup<T>[]) => {
    try {
      const found = await query(batch)
      for (const one of batch) one.resolve(found.get(one.digest) ?? null)
    } catch (cause) {
      for (const one of batch) one.reject(cause)
    } finally {
      asked.clear()
    }
  }
  const run = async () => {
    isRunning = true
    for (let batch = next(); batch.length > 0; batch = next()) await ask(batch)
    isRunning = false
  }

  return {
    find({ digest, publicId }, exists) {
      const same = asked.get(digest) ?? existing.get(digest) ?? unknown.get(digest)
      if (same !== undefined) return same.promise
      const line = exists ? existing : unknown
      if (line.size >= (exists ? maximumWaiting.existing : maximumWaiting.unknown)) return Promise.reject(tooMany())
      const one = { digest, publicId, ...Promise.withResolvers<T | null>() }
      line.set(digest, one)
      if (!isRunning) void run()
      return one.promise
    },
  }
}

function tooMany(): GatewayError {
  return new GatewayError('service_unavailable', 'Too many unknown keys are being looked up. Try again shortly.', {
    retryAfterMs: 1000,
    detail: 'key lookups at their bound',
  })
}
