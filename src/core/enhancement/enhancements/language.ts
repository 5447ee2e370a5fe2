import type { QueryType } from '../../chat/chat.ts'

export type EnhancedType = Exclude<QueryType, 'other'>
/** What a request may be for, of whatever type, that is answered in a way of its own. */
export type Task = 'explanation' | 'summary' | 'translation' | 'revision' | 'ideas'
export type Aspect = 'audience' | 'format' | 'scope' | 'constraints' | 'steps' | 'check'
export type Lines = Partial<Readonly<Record<Aspect, string>>>

/** One language's words: a label for each aspect, and for each type its lines. */
export type TypeWords = {
  readonly labels: Readonly<Record<Aspect, string>>
  readonly lines: Readonly<Record<EnhancedType, Lines>>
}

/** One language's lines for each task, under the same labels. */
export type TaskLines = Readonly<Record<Task, Lines>>

export type EnhancementWords = TypeWords & { readonly tasks: TaskLines }
