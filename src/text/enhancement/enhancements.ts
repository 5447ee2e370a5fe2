/**
 * Lines added to a terse prompt, by language and query type or task, in the prompt's language. Each says how to answer,
 * never what: it contains no number, name or claim. With its labels, a set is shorter than 180 characters, so that a
 * prompt of 61 characters grows to at most four times its length.
 */
import { eastern } from './enhancements/eastern.ts'
import { germanic } from './enhancements/germanic.ts'
import type { EnhancementWords } from './enhancements/language.ts'
import { romance } from './enhancements/romance.ts'
import { slavic } from './enhancements/slavic.ts'
import { taskLines } from './enhancements/tasks.ts'

const types = { ...germanic, ...romance, ...slavic, ...eastern }

/** By ISO 639-1. */
export const enhancements: Readonly<Record<string, EnhancementWords>> = Object.fromEntries(
  Object.entries(types).map(([language, words]) => [
    language,
    { ...words, tasks: taskLines[language as keyof typeof types] },
  ]),
)
