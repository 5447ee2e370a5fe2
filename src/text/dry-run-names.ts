/** Names that a dry run lists. In a separate file, so that browsers load them without the lexicons. */

/** Signals of a prompt's difficulty. `benchmarks` = results of models on similar prompts. */
export const difficultySignals = [
  'design',
  'proof',
  'debugging',
  'expert_field',
  'constraints',
  'depth',
  'risk',
  'planning',
  'routine',
  'lookup',
  'small_talk',
  'creative',
  'subject',
  'shape',
  'wording',
  'benchmarks',
] as const
export type DifficultySignal = (typeof difficultySignals)[number]

/** Parts of a message: what it asks, what it is about, and what a client program puts around both. */
export const segmentKinds = ['request', 'material', 'frame'] as const
export type SegmentKind = (typeof segmentKinds)[number]
