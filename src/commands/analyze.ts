/** `analyze`: what the gateway reads in prompts, for operators who want to see or measure it. */
import { fstatSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { readConfig } from '../config.ts'
import { type AnalysisResult, openAnalysis } from './analysis.ts'
import { type AnalysisThreads, startAnalysisThreads } from './analysis-threads.ts'
import { CommandFailure, command } from './command.ts'
import { showProgress } from './progress.ts'

const analyze = command({
  name: 'analyze',
  about: 'Read JSON lines {"text": …} or {"messages": […]} and write one line each: what the gateway reads in it',
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
      // Who reads slowly is written to slowly: the next lines are read only when these are taken.
      await output.flush()
    }
    // Where lines come out on the same terminal they are progress enough, and where they are typed in nobody wonders.
    const progress =
      process.stdout.isTTY || process.stdin.isTTY ? null : showProgress('lines', () => ({ done: lines, of: null }))
    if (process.stdin.isTTY) process.stderr.write('Reading from the terminal: one JSON line each, Ctrl-D ends.\n')
    let written = Promise.resolve()
    let hasFailed = false
    const writing: Promise<void>[] = []
    let characters = 0
    try {
      for await (const batch of batchesOf(Bun.stdin.stream())) {
        characters += batch.length
        if (characters > worthThreads) threads ??= startAnalysisThreads(otherThreads())
        // This thread has read the first lines and is quick by now: it goes on reading where the others have enough to do.
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
        // Whoever read may have left: what is under way is for nobody.
        if (hasFailed) break
      }
      await written
      await output.end()
    } finally {
      progress?.stop()
      threads?.close()
      analysis.close()
    }
    if (bad > 0) throw new CommandFailure(`${bad} of ${lines} line(s) could not be read; each has its "error".`)
  },
})

export const analyzeCommands = [analyze]

const maximumLineCharacters = 32 * 1024 * 1024
/** Some hundred lines: little enough that all threads end at about the same time. */
const batchBytes = 65_536
/**
 * An input longer than this, some fifty thousand prompts, is worth more threads. Each has to be compiled for anew, which costs
 * some two seconds of a core: meanwhile the first one alone, with its compiler beside it, has read that much.
 */
const worthThreads = 24 * 1024 * 1024
const maximumThreads = 16
/** Batches under way: more than the threads are given ahead, few enough to hold in memory. */
const batchesAhead = 8 * maximumThreads

/** Beside this one; none where there is but one core. */
function otherThreads(): number {
  return Math.min(availableParallelism(), maximumThreads) - 1
}

/** How much there is to read, where that can be told beforehand: of a pipe nothing can. */
function knownBytes(): number {
  const input = fstatSync(0)
  return input.isFile() ? input.size : 0
}

/** Lets in what other threads have told in the meantime: more input, where it is there, would be read first. */
function othersTold(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Writes a batch once it is told and the one before it is written. */
function inOrder(
  before: Promise<void>,
  told: AnalysisResult | Promise<AnalysisResult>,
  write: (told: AnalysisResult) => Promise<void>,
): Promise<void> {
  return Promise.all([told, before]).then(([one]) => write(one))
}

/** The lines of a stream of bytes as they come in, without the end of the last; one without an end counts, an empty one at the end does not. */
async function* batchesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
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
