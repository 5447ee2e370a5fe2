/** Names of the signals that a dry run lists. In a file of their own, which browsers load without the lexicons. */
/** What a prompt's difficulty is told by. `benchmarks`: how models did on prompts like it. */
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
