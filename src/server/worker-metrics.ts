/**
 * One scrape of several workers. The kernel gives it to any of them, which asks the parent, who asks the others: each keeps
 * figures of its own, and a scrape that had a different worker's every time would be of no use.
 */
import type { Family } from '../observability/instruments.ts'
import { sendToProcess } from './send-message.ts'

type WorkerMetrics = { readonly worker: number; readonly families: readonly Family[] }

/** Between a worker and its parent, either way: somebody wants everybody's figures; here are one's own, or all the others'. */
export type FiguresMessage =
  | { readonly type: 'figures_wanted'; readonly id: string }
  | { readonly type: 'figures'; readonly id: string; readonly figures: readonly WorkerMetrics[] }

type Peer = { send(message: FiguresMessage): unknown }

/** Who has not answered by then is left out of the scrape. */
const answerMs = 1000
/** The parent has a deadline of its own; this one is for a parent that is gone. */
const gatherMs = 1500

export type WorkerPeers = {
  /** The figures of all workers, this one's first. */
  gather(): Promise<readonly WorkerMetrics[]>
  /** A message from the parent. */
  hear(message: FiguresMessage): void
}

/** A worker's end. `own` are its figures at that moment. */
export function createSiblings(worker: number, parent: Peer, own: () => readonly Family[]): WorkerPeers {
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
  /** A message from one of the workers that run now. */
  hear(from: Peer, message: FiguresMessage, running: Iterable<Peer>): void
}

/** The parent's end. */
export function createGathering(): MetricsCollector {
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
    // One that does not hear it is missed until the deadline.
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
