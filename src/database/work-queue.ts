/**
 * A bounded queue in front of a store: a limited number of concurrent works, the others wait in order of arrival. A
 * work that is aborted while it waits is never started, so an overloaded store does no work that no client waits for.
 */

/** The queue is full. */
export class QueueFull extends Error {
  constructor(waiting: number) {
    super(`the queue is full: ${waiting} works wait`)
    this.name = 'QueueFull'
  }
}

type WorkQueue = {
  /**
   * Starts `work` when a place is free and resolves like it. Rejects with `QueueFull` if too many wait, and with the
   * signal's reason if it is aborted before the start.
   */
  run<T>(work: () => PromiseLike<T>, signal: AbortSignal): Promise<T>
  /** Frees all places because the current works will never end, and starts waiting ones. */
  reset(): void
  waiting(): number
}

type WorkQueueOptions = {
  /** Maximum concurrent works. */
  readonly places: number
  /** Maximum waiting works. */
  readonly maximumWaiting: number
}

type Waiter = { readonly start: () => void }

/** Creates an empty queue without a timer. */
export function createWorkQueue({ places, maximumWaiting }: WorkQueueOptions): WorkQueue {
  const waiters = new Set<Waiter>()
  let busy = 0
  /** Works of an earlier generation free no place. */
  let generation = 0

  const startNext = () => {
    for (const waiter of waiters) {
      if (busy >= places) return
      waiters.delete(waiter)
      waiter.start()
    }
  }

  const started = async <T>(work: () => PromiseLike<T>): Promise<T> => {
    const own = generation
    busy++
    try {
      return await work()
    } finally {
      if (own === generation) {
        busy--
        startNext()
      }
    }
  }

  return {
    run(work, signal) {
      if (signal.aborted) return Promise.reject(signal.reason)
      if (busy < places) return started(work)
      if (waiters.size >= maximumWaiting) return Promise.reject(new QueueFull(waiters.size))
      return new Promise((done, fail) => {
        const leave = () => {
          waiters.delete(waiter)
          fail(signal.reason)
        }
        const waiter: Waiter = {
          start() {
            signal.removeEventListener('abort', leave)
            started(work).then(done, fail)
          },
        }
        waiters.add(waiter)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
    reset() {
      generation++
      busy = 0
      startNext()
    },
    waiting: () => waiters.size,
  }
}
