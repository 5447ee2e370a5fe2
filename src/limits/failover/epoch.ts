/** An epoch of the limit authority: who decides, from one change of the holder to the next. */
export type Epoch = {
  readonly number: number
  readonly holder: 'redis' | 'postgres'
  /** The text of each partition's epoch key in Redis; empty if Postgres decides. */
  readonly keys: readonly string[]
}
