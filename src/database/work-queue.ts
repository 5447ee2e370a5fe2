/**
 * A bounded queue in front of a store: so many works at a time, the others wait in order of arrival. A work that is given up
 * while it waits is never started, so a store that is late does not also have to do what no caller waits for.
 */

/** The queue is full. */
export class QueueFull extends Error {
  constructor(waiting: number) {
    super(`${waiting} others wait already`)
    this.name = 'QueueFull'
  }
}

export type WorkQueue = {
  /**
   * Starts `work` at once or when a place is free, and resolves as it does. Rejects with `QueueFull` if too many wait, and with
   * the signal's reason if it is aborted before the work has started.
   */
  run<T>(work: () => PromiseLike<T>, signal: AbortSignal): Promise<T>
  /** Frees all places: the works that hold them now will never end, and those that wait are started. */
  reset(): void
  waiting(): number
}

export type WorkQueueOptions = {
  /** Works under way at a time. */
  readonly places: number
  /** Works that may wait. */
  readonly maximumWaiting: number
}

type Waiter = { readonly start: () => void }

/** Returns an empty queue. It owns no timer. */
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
