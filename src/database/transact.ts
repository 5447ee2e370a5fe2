/** Statements of bulk work, which runs in the thread that owns the embedded database or over a connection. */
import type { Sql } from 'postgres'
import { systemErrorCode } from '../core/validation/errors.ts'

type Value = string | number | boolean | null

/** Statements of one transaction. Texts are constants; numbered parameters hold all values. */
export type Statements = {
  query<Row = unknown>(text: string, values?: readonly Value[]): Promise<readonly Row[]>
  /** Copies lines in Postgres' text format into `table (a, b)`; null = this connection cannot. */
  readonly copy: ((into: string, lines: string) => Promise<void>) | null
}

/** Work of one transaction. Receives and returns text, which is the cheapest message to a thread. */
export type Work = {
  /** URL of the module that exports `run`: a thread receives no functions. */
  readonly module: string
  run(statements: Statements, input: string): Promise<string>
}

/** Returns the statements of a driver's connection. The embedded database reads no rows from one. */
export function getStatements(sql: Pick<Sql, 'unsafe'>, canCopy = false): Statements {
  return {
    query: (text, values = []) => sql.unsafe(text, [...values], { prepare: true }),
    copy: canCopy ? (into, lines) => copy(sql, into, lines) : null,
  }
}

/** Postgres refused the rows of a copy: the driver hides its reason. A statement with the same rows gets it. */
class CopyRefused extends Error {
  readonly code = '23000'
  constructor(cause: unknown) {
    super('Postgres refused the copied rows', { cause })
    this.name = 'PostgresError'
  }
}

async function copy(sql: Pick<Sql, 'unsafe'>, into: string, lines: string): Promise<void> {
  const stream = await sql.unsafe(`copy ${into} from stdin`).writable()
  await new Promise<void>((done, fail) => {
    stream.on('error', fail)
    stream.write(lines, error => (error ? fail(error) : done()))
  })
  stream.end()
  // The end must be sent before the next statement.
  await new Promise(setImmediate)
  await sql.unsafe('select').catch((error: unknown) => {
    throw systemErrorCode(error) === abortedCode ? new CopyRefused(error) : error
  })
}

const abortedCode = '25P02'
