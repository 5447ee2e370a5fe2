/**
 * What a terse prompt gains, by language and query type or task: labelled lines behind it, in the prompt's own language. Each says
 * how to answer, never what: no number, name or claim stands here. Together with the labels a set stays below 180
 * characters, so that a prompt of 61 characters still grows to no more than four times its length.
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
