export type Passwords = {
  /**
   * Returns the Argon2id hash of a password. `source` is the client that the work is for: a network address, or the ID
   * of a signed-in user; null = the operator. Throws `ip_rate_limited` if the source has too much work waiting, and
   * `service_unavailable` if the queue is full.
   */
  hash(password: string, source: string | null): Promise<string>
  /**
   * Compares a password with a hash. Null stands for an unknown user: it takes as long and never matches. `outdated`:
   * correct, but hashed with other parameters than the current ones. Throws like `hash`.
   */
  verify(password: string, hash: string | null, source: string | null): Promise<'wrong' | 'right' | 'outdated'>
}
