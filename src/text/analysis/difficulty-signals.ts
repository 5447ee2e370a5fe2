/** Names of the signals that a dry run lists. In a separate file, so that browsers load them without the lexicons. */
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
