import type { AnalysisResult } from './analysis.ts'
import type { AnalysisJob, AnalysisReport } from './analysis-worker.ts'
import { CommandFailure } from './command.ts'

export type AnalysisThreads = {
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
export function startAnalysisThreads(count: number): AnalysisThreads {
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
      const one = waiting.get(data.id)
      waiting.delete(data.id)
      if (one === undefined) return
      thread.orders--
      one.tell(data.told)
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
      const thread = threads.reduce((least, one) => (one.orders < least.orders ? one : least))
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
