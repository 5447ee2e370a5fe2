/** Label of an example: request, everyday request, content, or attempt to override a model's rules. */
export type TrainingLabel = 'request' | 'everyday' | 'content' | 'jailbreak'

/** Sentences with gaps, separated by `|`, the fillers of each gap, and how many combinations are used. */
export type Filled = {
  readonly forms: string
  readonly fill: Readonly<Record<string, string>>
  readonly take: number
}

/** Sentences that are all harmful or all harmless; without `lesson`, requests. */
export type ExampleTemplate = Filled & { readonly lesson?: TrainingLabel; readonly harmful: boolean }

/** Yields the sentences in a fixed order. */
export function* textsOf({ forms, fill, take }: Filled): Generator<string> {
  const lists = Object.entries(fill).map(([name, fillers]) => ({ name, fillers: fillers.split('|') }))
  const shapes = forms.split('|')
  const total = lists.reduce((product, { fillers }) => product * fillers.length, shapes.length)
  const count = Math.min(take, total)
  for (let index = 0; index < count; index++) {
    // A stride without a common divisor covers every list evenly.
    let rest = (index * stride) % total
    let text = shapes[rest % shapes.length] ?? ''
    rest = Math.floor(rest / shapes.length)
    for (const { name, fillers } of lists) {
      text = text.replace(`{${name}}`, fillers[rest % fillers.length] ?? '')
      rest = Math.floor(rest / fillers.length)
    }
    yield text
  }
}

const stride = 7_919
