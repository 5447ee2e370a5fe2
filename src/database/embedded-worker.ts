/**
 * The embedded Postgres: PGlite in a worker thread, so that no query blocks the event loop, serving the wire protocol
 * on a Unix socket, so that driver and SQL are the same as for a real one.
 *
 * PGlite has one backend, so connections take turns: from a client's first message until the backend is ready again
 * outside a transaction. With shorter turns, one client could execute a statement that another has bound;
 * `@electric-sql/pglite-socket` switches between single messages and allows that. Cost: session state (`SET`,
 * session-level advisory locks) is shared by all connections.
 */
import { existsSync, renameSync, rmSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import type { Socket } from 'bun'
import { whenNeeded } from '../core/jobs/repeating.ts'
import { packedFolder } from './data-folder.ts'
import { runWork } from './embedded-work.ts'

declare const self: Worker

export type WorkerOrder =
  | { readonly type: 'open'; readonly directory: string; readonly socketPath: string }
  /** Runs `Work` of a module in one transaction. */
  | { readonly type: 'transact'; readonly id: number; readonly module: string; readonly input: string }
  | { readonly type: 'close' }
export type WorkerReport =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly detail: string }
  | { readonly type: 'closed' }
  | { readonly type: 'committed'; readonly id: number; readonly output: string }
  /** Postgres' error. */
  | { readonly type: 'refused'; readonly id: number; readonly code: string; readonly message: string }
  /** Something was written since the last report. */
  | { readonly type: 'written' }

type Batch = Extract<WorkerOrder, { type: 'transact' }>
type Connection = {
  readonly socket: Socket<Connection>
  /** Received and not yet executed. */
  incoming: Buffer
  /** Results not yet accepted by the socket. */
  outgoing: Buffer[]
  started: boolean
  gone: boolean
  /** Names of the statements that it has prepared. */
  readonly prepared: Set<string>
}

/**
 * Frontend messages that only start or extend a turn: Bind, Close, Describe, Execute, Flush, Parse, and the messages of
 * COPY.
 */
const openers = new Set([...'BCDEHPdcf'].map(letter => letter.charCodeAt(0)))
/** Four per worker, and commands. */
const maximumConnections = 512
const parse = 'P'.charCodeAt(0)
const maximumMessageBytes = 64 << 20
/** Time between a statement and the look for its writes. */
const lookAfterMs = 100
const terminate = 'X'.charCodeAt(0)
const sslRequest = 80877103
const cancelRequest = 80877102
const syncMessage = Uint8Array.of(0x53, 0, 0, 0, 4)
const noBytes = Buffer.alloc(0)

let database: PGlite | null = null
let listener: ReturnType<typeof Bun.listen> | null = null
const connections = new Set<Connection>()
/** The connection that has the turn, and whether its last message left the turn open. */
let owner: Connection | null = null
let turnIsOpen = false
/** Transactions that wait for their turn, and the one that has it. */
const batches: Batch[] = []
let batch: Promise<void> | null = null
/** The answer to the last look for writes. */
let endOfLog = ''
/** Prepared statements of disconnected clients, which would stay in the shared session. */
const leftPrepared: string[] = []

self.onmessage = async (event: MessageEvent<WorkerOrder>) => {
  const order = event.data
  try {
    switch (order.type) {
      case 'open':
        database = await openDatabase(order.directory)
        listener = listen(order.socketPath)
        report({ type: 'ready' })
        break
      case 'transact':
        batches.push(order)
        serve()
        break
      case 'close':
        listener?.stop(true)
        await batch
        if (owner !== null) release(owner)
        await looking.close()
        await database?.close()
        report({ type: 'closed' })
        break
      default:
        order satisfies never
    }
  } catch (error) {
    report({ type: 'failed', detail: getText(error) })
  }
}

/** Returns an error text; the backend's file system throws objects that are not errors. */
function getText(error: unknown): string {
  if (error instanceof Error) return String(error)
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null
  return typeof code === 'string' ? code : `a thrown ${typeof error}`
}

function report(message: WorkerReport): void {
  self.postMessage(message)
}

/**
 * Creates a new database in a temporary folder and renames it when complete, so that a killed start leaves nothing that
 * looks like a database. Without a packed folder, as after a change of the migrations, PGlite initializes one.
 */
async function openDatabase(directory: string): Promise<PGlite> {
  if (!existsSync(directory)) {
    const unfinished = `${directory}.unfinished`
    rmSync(unfinished, { recursive: true, force: true })
    const packed = Bun.file(packedFolder())
    if (await packed.exists()) await new Bun.Archive(Bun.zstdDecompressSync(await packed.bytes())).extract(unfinished)
    else await (await PGlite.create({ dataDir: unfinished, initDbStartParams: ['--wal-segsize=1'] })).close()
    renameSync(unfinished, directory)
  }
  return PGlite.create({ dataDir: directory, startParams: [...PGlite.defaultStartParams, ...settings] })
}

/**
 * One backend with small tables: the default of 128 MB of buffers would only use memory. Segments of the log have 1 MB;
 * checkpoints are as frequent as with the usual 16 MB.
 */
const settings = ['shared_buffers=16MB', 'max_wal_size=1GB', 'min_wal_size=80MB'].flatMap(text => ['-c', text])

function listen(socketPath: string) {
  return Bun.listen<Connection>({
    unix: socketPath,
    socket: {
      open(socket) {
        const connection = {
          socket,
          incoming: noBytes,
          outgoing: [],
          started: false,
          gone: false,
          prepared: new Set<string>(),
        }
        socket.data = connection
        if (connections.size < maximumConnections) connections.add(connection)
        else socket.end()
      },
      data(socket, bytes) {
        const connection = socket.data
        connection.incoming =
          connection.incoming.length === 0 ? Buffer.from(bytes) : Buffer.concat([connection.incoming, bytes])
        serve()
      },
      drain: socket => flush(socket.data),
      close: socket => leave(socket.data),
      error: socket => leave(socket.data),
    },
  })
}

function leave(connection: Connection): void {
  connection.gone = true
  connections.delete(connection)
  if (owner === connection) release(connection)
  leftPrepared.push(...connection.prepared)
  connection.prepared.clear()
  serve()
}

/** Ends the unfinished turn and transaction of a disconnected client. */
function release(connection: Connection): void {
  if (turnIsOpen) execute(connection, syncMessage)
  if (database?.isInTransaction()) executeAlone('ROLLBACK')
  turnIsOpen = false
  owner = null
}

/**
 * Reports writes, so that the gateway does not poll. The end of the write-ahead log shows all of them: of functions, of
 * statements that return rows, and of other processes.
 */
const looking = whenNeeded(lookAfterMs, () => {
  // Within a turn our own statement would end it.
  if (owner !== null || batch !== null) return looking.need()
  const end = executeAlone('SELECT pg_current_wal_insert_lsn()')
  if (end === endOfLog) return
  endOfLog = end
  report({ type: 'written' })
})

/** Returns the answer to a statement, in the protocol's own form. */
function executeAlone(sql: string): string {
  const text = Buffer.from(`${sql}\0`)
  const head = Buffer.alloc(5)
  head.write('Q')
  head.writeInt32BE(text.length + 4, 1)
  let answer = ''
  attempt(() => {
    answer = Buffer.from(database?.execProtocolRawSync(Buffer.concat([head, text])) ?? []).toString('latin1')
  })
  return answer
}

/** Starts the next transaction between two turns. Returns false if there is none. */
function startBatch(backend: PGlite): boolean {
  const next = owner === null ? batches.shift() : undefined
  if (next === undefined) return false
  batch = transact(backend, next).finally(() => {
    batch = null
    looking.need()
    serve()
  })
  return true
}

async function transact(backend: PGlite, { id, module, input }: Batch): Promise<void> {
  try {
    report({ type: 'committed', id, output: await runWork(backend, module, input) })
  } catch (error) {
    const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
    if (code === null) report({ type: 'failed', detail: getText(error) })
    else report({ type: 'refused', id, code, message: getText(error) })
  }
}

/**
 * Runs all executable messages: those of the turn's owner, then a transaction, then each other connection's in
 * order of arrival.
 */
function serve(): void {
  if (database === null || batch !== null) return
  // Between two turns, since our own statement within a turn would end it.
  if (owner === null) for (const name of leftPrepared.splice(0)) executeAlone(`DEALLOCATE "${name}"`)
  for (let ran = true; ran; ) {
    if (startBatch(database)) return
    ran = false
    for (const connection of owner === null ? [...connections] : [owner]) {
      if (owner !== null && owner !== connection) continue
      const message = nextMessage(connection)
      if (message === null) continue
      ran = true
      take(connection, message)
      looking.need()
    }
  }
}

function take(connection: Connection, message: Buffer): void {
  if (!connection.started) greet(connection, message)
  else if (message[0] === terminate) connection.socket.end()
  else {
    owner = connection
    turnIsOpen = openers.has(message[0] ?? 0)
    if (message[0] === parse) notePrepared(connection, message)
    execute(connection, message)
    if (turnIsOpen || database?.isInTransaction()) return
    owner = null
    // Moved to the end of the queue, so that one busy client cannot keep the turn.
    if (connections.delete(connection)) connections.add(connection)
  }
}

/** Stores the name of a prepared statement, the first text of the message, if it needs no escaping. */
function notePrepared(connection: Connection, message: Buffer): void {
  const name = message.toString('latin1', 5, message.indexOf(0, 5))
  if (/^\w+$/.test(name)) connection.prepared.add(name)
}

/** Handles the messages before a session, which have no type byte. */
function greet(connection: Connection, message: Buffer): void {
  const code = message.length >= 8 ? message.readInt32BE(4) : 0
  if (code === sslRequest) send(connection, Buffer.from('N'))
  else if (code === cancelRequest) connection.socket.end()
  else {
    connection.started = true
    execute(connection, message)
  }
}

/** Removes and returns one complete message from the connection's buffer, including its header; null = incomplete. */
function nextMessage(connection: Connection): Buffer | null {
  const { incoming } = connection
  const lengthAt = connection.started ? 1 : 0
  if (connection.gone || incoming.length < lengthAt + 4) return null
  const length = lengthAt + incoming.readInt32BE(lengthAt)
  if (length < lengthAt + 4 || length > maximumMessageBytes) {
    connection.socket.end()
    return null
  }
  if (incoming.length < length) return null
  connection.incoming = incoming.subarray(length)
  return incoming.subarray(0, length)
}

function execute(connection: Connection, message: Uint8Array): void {
  attempt(() => {
    const answer = database?.execProtocolRawSync(message)
    if (answer !== undefined && answer.length > 0) send(connection, Buffer.from(answer))
  })
}

/**
 * Runs an action on the backend. An exception means a panic (such as a full disk under its log): the thread must be
 * restarted.
 */
function attempt(action: () => void): void {
  try {
    action()
  } catch (error) {
    report({ type: 'failed', detail: getText(error) })
  }
}

function send(connection: Connection, bytes: Buffer): void {
  if (connection.gone) return
  connection.outgoing.push(bytes)
  flush(connection)
}

function flush(connection: Connection): void {
  for (let bytes = connection.outgoing[0]; bytes !== undefined && !connection.gone; bytes = connection.outgoing[0]) {
    const taken = connection.socket.write(bytes)
    if (taken < bytes.length) {
      connection.outgoing[0] = bytes.subarray(Math.max(0, taken))
      return
    }
    connection.outgoing.shift()
  }
}
