/**
 * Accounts are spread over partitions. Each partition has its own counter epoch in one cluster slot: a script cannot
 * reach beyond its slot.
 */

export const partitions = 16

/** Format of an account's seven counters in Redis, for its `struct`: y t c s z n x (`limits/redis/account-script.ts`). */
export const counterFormat = '<ddddddd'

/** Format of a scope's counters: y t c s z n w m v (`limits/redis/scope-scripts.ts`). */
export const scopeFormat = '<ddddddddd'

export const allPartitions: readonly number[] = Array.from({ length: partitions }, (_, partition) => partition)

/** Returns the partition of an account. It is the same in every gateway instance and never changes. */
export function getPartition(accountId: string): number {
  return Bun.hash.crc32(accountId) % partitions
}

export type PartitionKeys = ReturnType<typeof namesIn>

/** Returns the names of a partition's Redis keys. */
export function getKeys(partition: number): PartitionKeys {
  return allKeys[partition] ?? namesIn(partition)
}

const allKeys = allPartitions.map(namesIn)

/** Redis Cluster hashes only the part between the braces. */
function namesIn(partition: number) {
  const prefix = `gateway:{${partition}}:`
  return {
    account: (accountId: string) => `${prefix}account:${accountId}`,
    epoch: `${prefix}epoch`,
    checkpointed: `${prefix}checkpointed`,
    check: `${prefix}check`,
  }
}

/** A Redis script with the SHA-1 digest that Redis identifies it by. */
export type Script = { readonly source: string; readonly digest: string }

/** Returns the script of a Lua source. */
export function script(source: string): Script {
  return { source, digest: new Bun.CryptoHasher('sha1').update(source).digest('hex') }
}

/** Thrown if Redis timed out, cannot be reached, or is skipped because it failed too often. */
export class RedisUnavailableError extends Error {
  constructor(reason: string) {
    super(`redis: ${reason}`)
    this.name = 'RedisAway'
  }
}
