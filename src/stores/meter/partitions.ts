/**
 * Accounts are spread over partitions, each with an epoch, a usage stream and a roll call of its own, all in one slot of a
 * cluster: a script cannot reach beyond its slot, and a stream for every account would be far too many to read.
 */

export const partitions = 16

export const allPartitions: readonly number[] = Array.from({ length: partitions }, (_, partition) => partition)

/** Which partition an account is in: the same for every gateway, for ever. */
export function partitionOf(accountId: string): number {
  return Bun.hash.crc32(accountId) % partitions
}

/** Those of a set, one bit each. */
export function partitionsIn(set: number): number[] {
  return allPartitions.filter(partition => (set & (1 << partition)) !== 0)
}

export type PartitionKeys = ReturnType<typeof namesIn>

/** Names of a partition's keys. */
export function keysOf(partition: number): PartitionKeys {
  return allKeys[partition] ?? namesIn(partition)
}

const allKeys = allPartitions.map(namesIn)

/** The braces are what a cluster hashes. */
function namesIn(partition: number) {
  const prefix = `gateway:{${partition}}:`
  return {
    account: (accountId: string) => `${prefix}account:${accountId}`,
    epoch: `${prefix}epoch`,
    gateways: `${prefix}gateways`,
    announced: `${prefix}announced`,
    stream: `${prefix}usage`,
    checkpointed: `${prefix}checkpointed`,
  }
}
