/**
 * Threads that parse pages, one page at a time with a time limit. A thread that exceeds the limit, or its memory limit,
 * is terminated and replaced, so that no page can stall or fill the gateway. An account has one thread at most and a part of the
 * queue, so that its slow pages delay only its own.
 */
import type { ServiceDeadlines } from '../../core/request/deadlines.ts'
import { PageFailure } from './failure.ts'
import type { ReadText } from './html.ts'
import type { PageBody, ReadOrder, ReadReport } from './worker.ts'

type ParserPool = {
  /** Rejects with `PageFailure`: `unreadable`, or `too_slow` if too many pages wait. */
  read(content: PageBody, accountId: string): Promise<ReadText>
  /** Terminates the threads and rejects all pages in progress and waiting. */
  close(): void
}

type ParserPoolOptions = {
  readonly enoughCharacters: number
  readonly deadlines: Pick<ServiceDeadlines, 'pageParsingMs' | 'parserStartMs'>
}

type QueuedPage = {
  readonly accountId: string
  readonly order: ReadOrder
  readonly done: (read: ReadText) => void
  readonly fail: (cause: Error) => void
}
type Thread = { readonly worker: Worker; busy: QueuedPage | null; end: () => void }

const maximumThreads = 2
const maximumWaiting = 32
const maximumWaitingPerAccount = 8
const lookEveryMs = 25
const maximumGrowthBytes = 256 << 20

/** Creates a pool. A thread starts with the first page and does not keep the process alive. */
export function createParserPool({ enoughCharacters, deadlines }: ParserPoolOptions): ParserPool {
  const { pageParsingMs, parserStartMs } = deadlines
  const threads: Thread[] = []
  const queue: QueuedPage[] = []
  let orders = 0
  let isClosed = false

  const drop = (thread: Thread) => {
    const at = threads.indexOf(thread)
    if (at !== -1) threads.splice(at, 1)
    thread.worker.terminate()
  }

  const start = (): Thread => {
    const thread: Thread = { worker: new Worker(new URL('./worker.ts', import.meta.url)), busy: null, end: () => {} }
    thread.worker.onmessage = (event: MessageEvent<ReadReport>) => {
      const { busy } = thread
      if (busy === null || busy.order.id !== event.data.id) return
      thread.end()
      const { read } = event.data
      if (read === null) busy.fail(new PageFailure('unreadable', 'parsing failed'))
      else busy.done(read)
      next()
    }
    thread.worker.onerror = () => give(thread, 'the parser thread failed')
    thread.worker.unref()
    threads.push(thread)
    return thread
  }

  /** Rejects a page and terminates its thread. */
  const give = (thread: Thread, message: string) => {
    const { busy } = thread
    thread.end()
    drop(thread)
    busy?.fail(new PageFailure('unreadable', message))
    next()
  }

  const begin = (thread: Thread, waiting: QueuedPage, allowedMs: number) => {
    thread.busy = waiting
    const memory = process.memoryUsage.rss()
    const late = setTimeout(() => give(thread, 'parsing timed out'), allowedMs)
    const watch = setInterval(() => {
      if (process.memoryUsage.rss() - memory > maximumGrowthBytes) give(thread, 'parsing exceeded the memory limit')
    }, lookEveryMs)
    thread.end = () => {
      thread.busy = null
      clearTimeout(late)
      clearInterval(watch)
    }
    thread.worker.postMessage(waiting.order)
  }

  const next = () => {
    if (isClosed) return
    const idle = threads.find(thread => thread.busy === null)
    if (idle === undefined && threads.length >= maximumThreads) return
    const isBusy = ({ accountId }: QueuedPage) => threads.some(({ busy }) => busy?.accountId === accountId)
    const at = queue.findIndex(queuedPage => !isBusy(queuedPage))
    const [waiting] = at === -1 ? [] : queue.splice(at, 1)
    if (waiting === undefined) return
    if (idle === undefined) begin(start(), waiting, parserStartMs + pageParsingMs)
    else begin(idle, waiting, pageParsingMs)
  }

  return {
    read(content, accountId) {
      if (isClosed) return Promise.reject(closed())
      const own = queue.filter(queuedPage => queuedPage.accountId === accountId)
      if (queue.length >= maximumWaiting || own.length >= maximumWaitingPerAccount)
        return Promise.reject(new PageFailure('too_slow', 'too many pages wait'))
      const { promise, resolve, reject } = Promise.withResolvers<ReadText>()
      orders += 1
      queue.push({ accountId, order: { id: orders, content, enoughCharacters }, done: resolve, fail: reject })
      next()
      return promise
    },
    close() {
      isClosed = true
      for (const waiting of queue.splice(0)) waiting.fail(closed())
      for (const thread of [...threads]) {
        thread.busy?.fail(closed())
        thread.end()
        drop(thread)
      }
    },
  }
}

function closed(): PageFailure {
  return new PageFailure('unreadable', 'the gateway is stopping')
}
