import { GatewayError } from '../core/errors.ts'
import type { CountOrder, CountReport } from './tokenizer-worker.ts'

export type Tokenizer = {
  /** Tokens of all texts together, as OpenAI's models count them. Rejects with `service_unavailable` when it takes too long. */
  count(texts: readonly string[]): Promise<number>
  close(): void
}

const deadlineMs = 5_000
/** More waiting than this would not be answered in time anyway. */
const maximumWaiting = 64

/** A tokenizer beside the event loop. Its thread starts with the first count and does not keep the process alive. */
export function createTokenizer(): Tokenizer {
  const waiting = new Map<number, (tokens: number) => void>()
  let worker: Worker | null = null
  let orders = 0

  const start = (): Worker => {
    const started = new Worker(new URL('./tokenizer-worker.ts', import.meta.url))
    started.onmessage = (event: MessageEvent<CountReport>) => {
      waiting.get(event.data.id)?.(event.data.tokens)
      waiting.delete(event.data.id)
    }
    // The next count starts a new one; those that wait run into their deadline.
    started.onerror = () => {
      if (worker === started) worker = null
    }
    started.unref()
    return started
  }

  return {
    count(texts) {
      if (waiting.size >= maximumWaiting) return Promise.reject(busy())
      worker ??= start()
      orders += 1
      const id = orders
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(id)
          reject(busy())
        }, deadlineMs)
        waiting.set(id, tokens => {
          clearTimeout(timer)
          resolve(tokens)
        })
        worker?.postMessage({ id, texts } satisfies CountOrder)
      })
    },
    close() {
      worker?.terminate()
      worker = null
    },
  }
}

function busy(): GatewayError {
  return new GatewayError('service_unavailable', 'Counting tokens takes too long right now. Try again in a moment.', {
    retryAfterMs: 1_000,
  })
}
