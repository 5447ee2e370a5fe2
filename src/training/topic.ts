import type { ExampleTemplate } from './example-template.ts'

/** What honest people ask of a thing, and what is harmful of the same. */
export type Topic = {
  readonly honest: string
  readonly harmful: string
  /** How many of all combinations are taken. */
  readonly take: { readonly honest: number; readonly harmful: number }
  /** Of both sides. */
  readonly fill: Readonly<Record<string, string>>
}

/** A frame for each side of each topic. */
export function topicFrames(topics: readonly Topic[]): readonly ExampleTemplate[] {
  return topics.flatMap(({ honest, harmful, take, fill }): ExampleTemplate[] => [
    { harmful: false, forms: honest, fill, take: take.honest },
    { harmful: true, forms: harmful, fill, take: take.harmful },
  ])
}
