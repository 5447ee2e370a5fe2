/**
 * One scrape of several workers. The kernel gives it to any worker, which requests the figures of all others through
 * the supervisor. Otherwise each scrape would show the figures of another worker.
 */
import type { Family } from '../observability/instruments.ts'
import { sendToProcess } from './launcher.ts'

type WorkerMetrics = { readonly worker: number; readonly families: readonly Family[] }

/**
 * Messages between a worker and the supervisor: a request for all figures, the figures of one worker, or those of all
 * others.
 */
export type FiguresMessage =
  | { readonly type: 'figures_wanted'; readonly id: string }
  | { readonly type: 'figures'; readonly id: string; readonly figures: readonly WorkerMetrics[] }

type Peer = { send(message: FiguresMessage): unknown }

export type WorkerPeers = {
  /** Returns the metrics of all workers, this one's first. */
  gather(): Promise<readonly WorkerMetrics[]>
  /** Handles a message of the supervisor. */
  hear(message: FiguresMessage): void
}

/** Creates a worker's end. `own` returns its current figures. */
export function createSiblings(
  { worker, answerMs }: { readonly worker: number; readonly answerMs: number },
  parent: Peer,
  own: () => readonly Family[],
): WorkerPeers {
  // The supervisor has its own deadline; this one applies if the supervisor has ended.
  const gatherMs = 1.5 * answerMs
  const waiting = new Map<string, (others: readonly WorkerMetrics[]) => void>()
  let asked = 0
  return {
    async gather() {
      const id = `${worker}-${++asked}`
      const { promise, resolve } = Promise.withResolvers<readonly WorkerMetrics[]>()
      waiting.set(id, resolve)
      const deadline = setTimeout(() => resolve([]), gatherMs)
      sendToProcess(parent, { type: 'figures_wanted', id })
      const others = await promise
      clearTimeout(deadline)
      waiting.delete(id)
      return [{ worker, families: own() }, ...others]
    },
    hear(message) {
      if (message.type === 'figures') waiting.get(message.id)?.(message.figures)
      else sendToProcess(parent, { type: 'figures', id: message.id, figures: [{ worker, families: own() }] })
    },
  }
}

type MetricsCollector = {
  /** Handles a message of a running worker. */
  hear(from: Peer, message: FiguresMessage, running: Iterable<Peer>): void
}

/** Creates the supervisor's end. A worker without a response after `answerMs` is left out of the scrape. */
export function createGathering(answerMs: number): MetricsCollector {
  const open = new Map<string, (figures: readonly WorkerMetrics[]) => void>()

  const askAll = (asker: Peer, id: string, others: readonly Peer[]) => {
    const heard: WorkerMetrics[] = []
    let missing = others.length
    const end = () => {
      if (!open.delete(id)) return
      clearTimeout(deadline)
      sendToProcess(asker, { type: 'figures', id, figures: heard })
    }
    const deadline = setTimeout(end, answerMs)
    open.set(id, figures => {
      heard.push(...figures)
      if (--missing === 0) end()
    })
    // A worker that does not receive the message is missing until the deadline.
    for (const other of others) sendToProcess(other, { type: 'figures_wanted', id })
    if (missing === 0) end()
  }

  return {
    hear(from, message, running) {
      if (message.type === 'figures') open.get(message.id)?.(message.figures)
      else
        askAll(
          from,
          message.id,
          [...running].filter(peer => peer !== from),
        )
    },
  }
}
