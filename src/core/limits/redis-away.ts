/** Thrown if Redis timed out, cannot be reached, or is skipped because it failed too often. */
export class RedisUnavailableError extends Error {
  constructor(reason: string) {
    super(`redis: ${reason}`)
    this.name = 'RedisAway'
  }
}
