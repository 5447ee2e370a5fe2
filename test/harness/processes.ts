/** Runs gateways and commands as separate processes, as an operator starts them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Sql } from 'postgres'
import { openDatabase } from '../../src/database/database.ts'
import { connectEmbedded } from '../../src/database/embedded.ts'
import type { UsageRow } from '../../src/database/tables.ts'
import { programPath } from './bundle.ts'
import { copyFolder, freshDataFolder } from './data-folder.ts'
import { keptFolder } from './kept-files.ts'
import { lazyCompilation } from './lazy-compilation.ts'
import { patientEnvironment, patientStore } from './patience.ts'

export type Environment = Readonly<Record<string, string>>

export type GatewayProcess = {
  readonly url: string
  readonly pid: number
  /** Milliseconds from the start of the process to its banner. */
  readonly startedInMs: number
  /** Returns everything written to stdout so far. */
  output(): string
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
  readonly exited: Promise<number>
  chat(key: string, prompt: string, fields?: Readonly<Record<string, unknown>>): Promise<Response>
}

export type Finished = { readonly code: number; readonly stdout: string; readonly stderr: string }

const root = resolve(import.meta.dir, '..', '..')
const startDeadlineMs = 60_000

/**
 * Settings of the runtime that take a quarter from the processor time of a start: transpiled files are kept for the next
 * process, and less code is optimized. They change no result.
 */
const cheapStart = {
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: join(keptFolder(), 'gateway-ai-transpiled'),
  ...lazyCompilation,
}

const folders: string[] = []
const running = new Set<Bun.Subprocess>()

/**
 * Ends all running processes and removes their folders. Must be called in the `afterAll` of every file that uses this
 * module: registered here, it would apply only to the first file.
 */
export async function stopProcesses(): Promise<void> {
  for (const child of running) child.kill('SIGKILL')
  await Promise.all([...running].map(child => child.exited))
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}

/** Returns a data folder that `stopProcesses` removes: a copy of `from`, or one that does not exist yet. */
export function dataFolder(from?: string): string {
  const folder = join(mkdtempSync(join(tmpdir(), 'gateway-ai-')), 'data')
  folders.push(resolve(folder, '..'))
  if (from !== undefined) copyFolder(from, folder)
  return folder
}

/** The same with a migrated, empty embedded database, so that the first start is fast. */
export function freshFolder(): Promise<string> {
  return freshDataFolder(dataFolder())
}

/** Runs a file of `src/` to its end. It receives only `PATH` and `TMPDIR` of this process's environment. */
export async function run(
  file: 'main.ts' | 'cli.ts',
  words: readonly string[],
  environment: Environment,
): Promise<Finished> {
  const child = spawn(file, words, environment)
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}

/** Starts a gateway on a free port and waits for its banner. `release` is the folder of another release's repository. */
export async function startProcess(
  folder: string,
  environment: Environment = {},
  release = root,
): Promise<GatewayProcess> {
  const began = performance.now()
  const settings = { PORT: '0', GATEWAY_DATA_DIR: folder, DRAIN_NOTICE_MS: '1', REGISTRATION: 'open', ...environment }
  const child = spawn('main.ts', [], settings, release)
  let output = ''
  const { promise: listening, resolve: heard } = Promise.withResolvers<string>()
  const scan = (async () => {
    const decoder = new TextDecoder()
    for await (const piece of child.stdout) {
      output += decoder.decode(piece, { stream: true })
      // The banner is complete when an empty line follows its last word.
      const url = /listening +(\S+)[\s\S]*\n\n\{/.exec(output)?.[1]
      if (url !== undefined) heard(url)
    }
  })()
  const url = await Promise.race([listening, child.exited, Bun.sleep(startDeadlineMs)])
  if (typeof url !== 'string') throw new Error(`the gateway did not start: ${output}${await child.stderr.text()}`)
  return {
    url,
    pid: child.pid,
    startedInMs: Math.round(performance.now() - began),
    output: () => output,
    kill: signal => child.kill(signal),
    exited: Promise.all([child.exited, scan]).then(([code]) => code),
    chat: (key, prompt, fields = {}) =>
      fetch(`${url}/api/v1/chat`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gateway-ai', prompt, max_output_tokens: 500, ...fields }),
      }),
  }
}

/** Runs SQL on a data folder's database, through the gateway that runs on it or, where none does, on the database itself. */
export async function onEmbedded<T>(
  folder: string,
  work: (connected: { readonly sql: Sql }) => PromiseLike<T>,
): Promise<T> {
  const embedded = await connectEmbedded(folder)
  const database = openDatabase(embedded.address, { connections: 1, ...patientStore })
  try {
    return await database.run(work, 5_000)
  } finally {
    await database.close()
    await embedded.close()
  }
}

/** The ledger of a data folder. */
export function getLedger(
  folder: string,
): Promise<Pick<UsageRow, 'requestId' | 'status' | 'errorCode' | 'outputTokens'>[]> {
  return onEmbedded(
    folder,
    async ({ sql }) =>
      await sql<Pick<UsageRow, 'requestId' | 'status' | 'errorCode' | 'outputTokens'>[]>`
        select request_id as "requestId", status, error_code as "errorCode", output_tokens::int as "outputTokens" from usage_records`,
  )
}

function spawn(file: 'main.ts' | 'cli.ts', words: readonly string[], environment: Environment, release = root) {
  const program = release === root ? programPath(file) : join(release, 'src', file)
  const child = Bun.spawn([process.execPath, program, ...words], {
    cwd: release,
    env: {
      PATH: process.env.PATH ?? '',
      // Sockets of data folders with long paths are in it.
      TMPDIR: tmpdir(),
      BUN_CONFIG_MAX_HTTP_REQUESTS: '8192',
      ...cheapStart,
      ...patientEnvironment,
      ...environment,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.add(child)
  void child.exited.then(() => running.delete(child))
  return child
}
