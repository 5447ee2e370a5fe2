import type { ExampleTemplate } from './example-template.ts'

/** Harmless and harmful requests about one topic. */
export type Topic = {
  readonly honest: string
  readonly harmful: string
  /** Number of combinations used. */
  readonly take: { readonly honest: number; readonly harmful: number }
  /** Fillers of both sides. */
  readonly fill: Readonly<Record<string, string>>
}

/** Returns a frame for each side of each topic. */
export function topicFrames(topics: readonly Topic[]): readonly ExampleTemplate[] {
  return topics.flatMap(({ honest, harmful, take, fill }): ExampleTemplate[] => [
    { harmful: false, forms: honest, fill, take: take.honest },
    { harmful: true, forms: harmful, fill, take: take.harmful },
  ])
}
