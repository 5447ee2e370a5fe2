import type { Analysed } from './analysis.ts'
import type { AnalysisOrder, AnalysisReport } from './analysis-worker.ts'
import { CommandFailure } from './command.ts'

export type AnalysisThreads = {
  /** Reports on lines, in the thread that has the least to do. Rejects when a thread breaks down. */
  of(lines: string): Promise<Analysed>
  /** Whether one of them may soon have nothing to do. */
  haveTime(): boolean
  close(): void
}

type Thread = { readonly worker: Worker; orders: number }
type Waiting = {
  readonly thread: Thread
  readonly tell: (told: Analysed) => void
  readonly fail: (cause: Error) => void
}

/** As many as a thread gets through while the one that gives them out reads one batch itself, and some. */
const ordersAhead = 4

/** Starts so many threads, each with an analysis of its own. */
export function startAnalysisThreads(count: number): AnalysisThreads {
  const waiting = new Map<number, Waiting>()
  let orders = 0

  const start = (): Thread => {
    const worker = new Worker(new URL('./analysis-worker.ts', import.meta.url))
    worker.onmessage = ({ data: { id, told } }: MessageEvent<AnalysisReport>) => {
      const one = waiting.get(id)
      waiting.delete(id)
      if (one === undefined) return
      one.thread.orders--
      one.tell(told)
    }
    worker.onerror = ({ message }) => {
      for (const { fail } of waiting.values()) fail(new CommandFailure(`A thread broke down: ${message}`))
      waiting.clear()
    }
    return { worker, orders: 0 }
  }

  const threads = Array.from({ length: count }, start)
  return {
    of(lines) {
      const thread = threads.reduce((least, one) => (one.orders < least.orders ? one : least))
      thread.orders++
      const id = orders++
      return new Promise((tell, fail) => {
        waiting.set(id, { thread, tell, fail })
        thread.worker.postMessage({ id, lines } satisfies AnalysisOrder)
      })
    },
    haveTime: () => threads.some(({ orders }) => orders < ordersAhead),
    close() {
      for (const { worker } of threads) worker.terminate()
    },
  }
}
