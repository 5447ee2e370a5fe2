/** An epoch of the limit authority: which store decides, until the next change. */
export type Epoch = {
  readonly number: number
  readonly holder: 'redis' | 'postgres'
  /** The text of each partition's epoch key in Redis; empty if Postgres decides. */
  readonly keys: readonly string[]
}
