import type { QueryType } from '../chat.ts'

export type EnhancedType = Exclude<QueryType, 'other'>
export type Aspect = 'audience' | 'format' | 'scope' | 'constraints' | 'steps' | 'check'

/** One language's words: a label for each aspect, and for each type its lines. */
export type EnhancementWords = {
  readonly labels: Readonly<Record<Aspect, string>>
  readonly lines: Readonly<Record<EnhancedType, Partial<Readonly<Record<Aspect, string>>>>>
}
