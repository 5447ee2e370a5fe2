/**
 * Names of the keys of limits in Redis. On one server all accounts are in one partition, so that one script serves all
 * requests of a turn. In a cluster they are spread over 16, each in one slot, since a script cannot reach beyond its slot.
 */
import { isSentinelUrl } from '../text/sentinel-urls.ts'

const partitionsOfCluster = 16

export type LimitKeys = ReturnType<typeof createLimitKeys>

/** Returns the keys on the servers of these URLs. They are the same in every gateway instance. */
export function createLimitKeys(urls: readonly string[]) {
  const isCluster = urls.length > 1 && !isSentinelUrl(urls[0] ?? '')
  const partitions = isCluster ? partitionsOfCluster : 1
  const partition = (accountId: string) => (isCluster ? Bun.hash.crc32(accountId) % partitions : 0)
  // Redis Cluster hashes only the part between the braces.
  const getPrefix = (number: number) => `gateway:{${number}}:`
  return {
    partitions: Array.from({ length: partitions }, (_, number) => number),
    partition,
    account: (accountId: string) => `${getPrefix(partition(accountId))}account:${accountId}`,
    state: (number: number) => `${getPrefix(number)}state`,
    instances: (number: number) => `${getPrefix(number)}instances`,
    check: (number: number) => `${getPrefix(number)}check`,
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
