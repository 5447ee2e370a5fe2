/**
 * Training sentences of the project. Harmful and harmless requests with the same words differ in object, setting or
 * purpose, which a few hundred labeled sentences cover too little. Frames and fillers (`data/frames.json`, where `@name` is
 * a list that several frames share); every `stride`th combination is used, so that no frame dominates.
 */
import file from './data/frames.json'

/** Label of an example: request, everyday request, content, or attempt to override a model's rules. */
type TrainingLabel = 'request' | 'everyday' | 'content' | 'jailbreak'

/** Sentences that are all harmful or all harmless. */
type Frame = {
  /** Absent = requests. */
  readonly lesson?: TrainingLabel
  readonly harmful: boolean
  /** Number of combinations used. */
  readonly take: number
  /** Sentences with gaps, and the fillers of each gap. */
  readonly forms: readonly string[]
  readonly fill: Readonly<Record<string, readonly string[]>>
}

export type ModerationExample = { readonly text: string; readonly lesson: TrainingLabel; readonly harmful: boolean }

const groups = file.groups as readonly { readonly name: string; readonly frames: readonly Frame[] }[]
const lists: Readonly<Record<string, readonly string[]>> = file.lists

/** Yields all examples in a fixed order. */
export function* moderationExamples(): Generator<ModerationExample> {
  for (const { frames } of groups)
    for (const frame of frames)
      for (const text of sentences(frame)) yield { text, lesson: frame.lesson ?? 'request', harmful: frame.harmful }
}

/** Returns the texts that machines wrote: log lines, queries, records, source, commands. */
export function machineTexts(): readonly string[] {
  return groups
    .filter(({ name }) => name === 'machine')
    .flatMap(({ frames }) => frames.flatMap(frame => [...sentences(frame)]))
}

function* sentences({ forms, fill, take }: Frame): Generator<string> {
  const gaps = Object.entries(fill).map(([name, fillers]) => ({ name, fillers: withLists(fillers) }))
  const shapes = withLists(forms)
  const total = gaps.reduce((product, { fillers }) => product * fillers.length, shapes.length)
  const count = Math.min(take, total)
  for (let index = 0; index < count; index++) {
    // A stride without a common divisor covers every list evenly.
    let rest = (index * stride) % total
    let text = shapes[rest % shapes.length] ?? ''
    rest = Math.floor(rest / shapes.length)
    for (const { name, fillers } of gaps) {
      text = text.replace(`{${name}}`, fillers[rest % fillers.length] ?? '')
      rest = Math.floor(rest / fillers.length)
    }
    yield text
  }
}

const stride = 7_919

function withLists(items: readonly string[]): readonly string[] {
  return items.flatMap(item => {
    const list = item.startsWith('@') ? lists[item.slice(1)] : [item]
    if (list === undefined) throw new TypeError(`frames.json has no list "${item}"`)
    return list
  })
}
