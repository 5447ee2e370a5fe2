/** `analyze`: prints the analysis of prompts, for operators. */
import { fstatSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { readConfig } from '../config/config.ts'
import { type AnalysisResult, openAnalysis } from './analysis.ts'
import type { AnalysisJob, AnalysisReport } from './analysis-worker.ts'
import { CommandFailure, command } from './command.ts'
import { showProgress } from './progress.ts'

const analyze = command({
  name: 'analyze',
  about: 'Read JSON lines {"text": …} or {"messages": […]} and print their prompt analysis as JSON lines',
  operands: {},
  options: {},
  async run() {
    const config = readConfig()
    let threads: AnalysisThreads | null = knownBytes() > worthThreads ? startAnalysisThreads(otherThreads()) : null
    const analysis = await openAnalysis(config)
    const output = Bun.stdout.writer()
    let [lines, bad] = [0, 0]
    const write = async (told: AnalysisResult) => {
      lines += told.lines
      bad += told.bad
      await output.write(told.text)
      // Backpressure: reads on only when the output has accepted these lines.
      await output.flush()
    }
    // Progress is shown unless the output goes to the same terminal, or the input is typed there.
    const progress =
      process.stdout.isTTY || process.stdin.isTTY ? null : showProgress('lines', () => ({ done: lines, of: null }))
    if (process.stdin.isTTY) process.stderr.write('Reading from the terminal: one JSON line each, Ctrl-D ends.\n')
    let written = Promise.resolve()
    let hasFailed = false
    const writing: Promise<void>[] = []
    let characters = 0
    try {
      for await (const batch of getBatches(Bun.stdin.stream())) {
        characters += batch.length
        if (characters > worthThreads) threads ??= startAnalysisThreads(otherThreads())
        // The main thread is warmed up, so it continues analyzing while the others are busy.
        const told: AnalysisResult | Promise<AnalysisResult> = threads?.haveTime()
          ? threads.of(batch)
          : analysis.of(batch)
        written = inOrder(written, told, write)
        written.catch(() => {
          hasFailed = true
        })
        writing.push(written)
        if (threads === null || writing.length > batchesAhead) await writing.shift()
        if (threads !== null && !(told instanceof Promise)) await othersTold()
        // The reader of the output has closed it; batches in progress are discarded.
        if (hasFailed) break
      }
      await written
      await output.end()
    } finally {
      progress?.stop()
      threads?.close()
      analysis.close()
    }
    if (bad > 0) throw new CommandFailure(`${bad} of ${lines} lines failed; see "error" in the output.`)
  },
})

export const analyzeCommands = [analyze]

const maximumLineCharacters = 32 * 1024 * 1024
/** A few hundred lines: small enough that all threads finish at about the same time. */
const batchBytes = 65_536
/**
 * Larger inputs (about 50,000 prompts) justify more threads. Each needs about 2 s of a core for compilation, during
 * which the main thread analyzes that much.
 */
const worthThreads = 24 * 1024 * 1024
const maximumThreads = 16
/** Maximum batches in progress: keeps all threads busy within bounded memory. */
const batchesAhead = 8 * maximumThreads

/** Returns the number of additional threads; 0 with one core. */
function otherThreads(): number {
  return Math.min(availableParallelism(), maximumThreads) - 1
}

/** Returns the input size if known; a pipe's is not. */
function knownBytes(): number {
  const input = fstatSync(0)
  return input.isFile() ? input.size : 0
}

/** Yields to results from other threads; otherwise available input would be read first. */
function othersTold(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Writes batches in input order as they finish. */
function inOrder(
  before: Promise<void>,
  told: AnalysisResult | Promise<AnalysisResult>,
  write: (told: AnalysisResult) => Promise<void>,
): Promise<void> {
  return Promise.all([told, before]).then(([analysisResult]) => write(analysisResult))
}

/**
 * Yields the lines of a byte stream as they arrive, without line ends. An unterminated last line counts; an empty one
 * does not.
 */
async function* getBatches(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    for (let from = 0; from < chunk.length; from += batchBytes) {
      const piece = decoder.decode(chunk.subarray(from, from + batchBytes), { stream: true })
      const end = piece.lastIndexOf('\n')
      if (end !== -1) yield rest + piece.slice(0, end)
      rest = end === -1 ? rest + piece : piece.slice(end + 1)
      if (rest.length > maximumLineCharacters) throw new CommandFailure('A line is longer than 32 million characters.')
    }
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

type AnalysisThreads = {
  /** Analyzes lines in the least busy thread; `haveTime` must be true. Rejects if a thread fails. */
  of(lines: string): Promise<AnalysisResult>
  /** Returns true if a thread is ready and nearly idle. */
  haveTime(): boolean
  close(): void
}

type Thread = {
  readonly worker: Worker
  /** Batches in progress; infinite until the thread is ready. */
  orders: number
}
type PendingBatch = {
  readonly tell: (told: AnalysisResult) => void
  readonly fail: (cause: Error) => void
}

/** Batches that a thread processes while the main thread analyzes one itself, plus a margin. */
const ordersAhead = 3

/** Starts `count` threads, each with its own analysis. */
function startAnalysisThreads(count: number): AnalysisThreads {
  const waiting = new Map<number, PendingBatch>()
  let orders = 0

  const start = (): Thread => {
    const worker = new Worker(new URL('./analysis-worker.ts', import.meta.url))
    const thread: Thread = { worker, orders: Number.POSITIVE_INFINITY }
    worker.onmessage = ({ data }: MessageEvent<AnalysisReport>) => {
      if (data === 'ready') {
        thread.orders = 0
        return
      }
      const pendingBatch = waiting.get(data.id)
      waiting.delete(data.id)
      if (pendingBatch === undefined) return
      thread.orders--
      pendingBatch.tell(data.told)
    }
    worker.onerror = ({ message }) => {
      for (const { fail } of waiting.values()) fail(new CommandFailure(`An analysis thread failed: ${message}`))
      waiting.clear()
    }
    return thread
  }

  const threads = Array.from({ length: count }, start)
  return {
    of(lines) {
      const thread = threads.reduce((least, item) => (item.orders < least.orders ? item : least))
      thread.orders++
      const id = orders++
      return new Promise((tell, fail) => {
        waiting.set(id, { tell, fail })
        thread.worker.postMessage({ id, lines } satisfies AnalysisJob)
      })
    },
    haveTime: () => threads.some(({ orders }) => orders < ordersAhead),
    close() {
      for (const { worker } of threads) worker.terminate()
    },
  }
}
