export type Passwords = {
  /**
   * Returns the Argon2id hash of a password. `source` is the client that the work is for: a network address, or the id of a
   * user who is signed in; null = the operator. Throws `ip_rate_limited` if the source has too much work waiting, and
   * `service_unavailable` if the queue is full.
   */
  hash(password: string, source: string | null): Promise<string>
  /**
   * Compares a password with a hash. Null, for an unknown user, takes as long and is always wrong. `outdated`: right, but
   * hashed with other parameters than the current ones. Throws as `hash` does.
   */
  verify(password: string, hash: string | null, source: string | null): Promise<'wrong' | 'right' | 'outdated'>
}
