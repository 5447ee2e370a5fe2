import type { QueryType } from '../../../core/chat/chat.ts'

export type EnhancedType = Exclude<QueryType, 'other'>
/** Purposes of a request, independent of the query type, that need their own instructions. */
export type Task = 'explanation' | 'summary' | 'translation' | 'revision' | 'ideas'
export type Aspect = 'audience' | 'format' | 'scope' | 'constraints' | 'steps' | 'check'
type Lines = Partial<Readonly<Record<Aspect, string>>>

/** Lines of one language: a label for each aspect, and lines for each type. */
export type TypeWords = {
  readonly labels: Readonly<Record<Aspect, string>>
  readonly lines: Readonly<Record<EnhancedType, Lines>>
}

/** Lines of one language for each task, with the same labels. */
export type TaskLines = Readonly<Record<Task, Lines>>

export type EnhancementWords = TypeWords & { readonly tasks: TaskLines }
