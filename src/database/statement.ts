import { type SQL, sql } from 'drizzle-orm'
import type { TransactionSql } from 'postgres'
import type { Transaction } from './account-transaction.ts'

/** A transaction of either interface. */
export type Step = Transaction | TransactionSql

type Value = string | number | boolean | null

/** Returns a template tag that runs statements in `step`, for functions that callers of both interfaces use. */
export function statementIn(step: Step): (text: TemplateStringsArray, ...values: Value[]) => Promise<unknown> {
  if (typeof step === 'function') return async (text, ...values) => step(text, ...values)
  return async (text, ...values) =>
    step.execute((sql as (text: TemplateStringsArray, ...values: Value[]) => SQL)(text, ...values))
}
