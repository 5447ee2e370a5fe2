/** Bulk work in the thread of the embedded database, without a driver and a socket. */
import { fileURLToPath } from 'node:url'
import { type PGlite, parse, protocol } from '@electric-sql/pglite'
import type { Statements, Work } from './transact.ts'

const { serialize } = protocol
/** Names of prepared statements by their texts, which are constants: to plan them took longer than to run them. */
const names = new Map<string, string>()

/** Runs work of a module in one transaction and returns its output. Throws Postgres' errors. */
export function runWork(backend: PGlite, module: string, input: string): Promise<string> {
  // Synchronous: the module is there before another message is read.
  const work: Pick<Work, 'run'> = import.meta.require(fileURLToPath(module))
  return backend.transaction(transaction =>
    work.run(
      {
        query: <Row>(text: string, values: Parameters<Statements['query']>[1] = []) =>
          query<Row>(backend, text, values),
        async copy(into, lines) {
          await transaction.query(`copy ${into} from '/dev/blob'`, [], { blob: new Blob([lines]) })
        },
      },
      input,
    ),
  )
}

async function query<Row>(
  backend: PGlite,
  text: string,
  values: readonly (string | number | boolean | null)[],
): Promise<readonly Row[]> {
  let statement = names.get(text)
  if (statement === undefined) {
    statement = `work_${names.size}`
    await backend.execProtocol(Buffer.concat([serialize.parse({ name: statement, text }), serialize.sync()]))
    names.set(text, statement)
  }
  const { messages } = await backend.execProtocol(
    Buffer.concat([
      serialize.bind({ statement, values: values.map(value => (value === null ? null : String(value))) }),
      serialize.describe({ type: 'P' }),
      serialize.execute(),
      serialize.sync(),
    ]),
  )
  return parse.parseResults(messages, backend.parsers)[0]?.rows as Row[]
}
