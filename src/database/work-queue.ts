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
   * signal's reason if it is aborted before the start. An urgent work starts before all others, and never finds the queue full.
   */
  run<T>(work: () => PromiseLike<T>, signal: AbortSignal, isUrgent?: boolean): Promise<T>
  /** Frees all places because the current works will never end, and starts waiting ones. */
  reset(): void
  waiting(): number
}

type WorkQueueOptions = {
  /** Maximum concurrent works. */
  readonly places: number
  /** Places that only urgent works use: the others may hold theirs for long. */
  readonly urgentPlaces?: number
  /** Maximum waiting works. */
  readonly maximumWaiting: number
}

type Waiter = { readonly start: () => void }

/** Creates an empty queue without a timer. */
export function createWorkQueue({ places, urgentPlaces = 0, maximumWaiting }: WorkQueueOptions): WorkQueue {
  const [urgent, waiters] = [new Set<Waiter>(), new Set<Waiter>()]
  let busy = 0
  /** Works of an earlier generation free no place. */
  let generation = 0

  const placesFor = (isUrgent: boolean) => (isUrgent ? places : places - urgentPlaces)

  const startNext = () => {
    for (const queue of [urgent, waiters])
      for (const waiter of queue) {
        if (busy >= placesFor(queue === urgent)) return
        queue.delete(waiter)
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
    run(work, signal, isUrgent = false) {
      if (signal.aborted) return Promise.reject(signal.reason)
      if (busy < placesFor(isUrgent)) return started(work)
      if (waiters.size >= maximumWaiting && !isUrgent) return Promise.reject(new QueueFull(waiters.size))
      const queue = isUrgent ? urgent : waiters
      return new Promise((done, fail) => {
        const leave = () => {
          queue.delete(waiter)
          fail(signal.reason)
        }
        const waiter: Waiter = {
          start() {
            signal.removeEventListener('abort', leave)
            started(work).then(done, fail)
          },
        }
        queue.add(waiter)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
    reset() {
      generation++
      busy = 0
      startNext()
    },
    waiting: () => urgent.size + waiters.size,
  }
}
