/** What an example teaches: requests, requests of every day, what a text says, or attempts on a model's rules. */
export type Lesson = 'request' | 'everyday' | 'content' | 'jailbreak'

/** Sentences with gaps, parted by `|`, what fills each gap, and how many of all combinations are taken. */
export type Filled = {
  readonly forms: string
  readonly fill: Readonly<Record<string, string>>
  readonly take: number
}

/** Sentences that are all harmful, or none of them; without `lesson`, requests. */
export type Frame = Filled & { readonly lesson?: Lesson; readonly harmful: boolean }
