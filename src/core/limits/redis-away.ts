/** Redis did not answer in time, cannot be reached, or is not asked because it failed to answer too often. */
export class RedisUnavailableError extends Error {
  constructor(reason: string) {
    super(`redis: ${reason}`)
    this.name = 'RedisAway'
  }
}
