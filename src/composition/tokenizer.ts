import { GatewayError } from '../core/validation/errors.ts'
import type { CountOrder, CountReport } from './tokenizer-worker.ts'

export type Tokenizer = {
  /** Tokens of all texts together, as OpenAI's models count them. Rejects with `service_unavailable` when it takes too long. */
  count(texts: readonly string[]): Promise<number>
  /** Whoever still waits is refused. */
  close(): void
}

const deadlineMs = 5_000
/** More waiting than this would not be answered in time anyway. */
const maximumWaiting = 64

type PendingCount = { readonly tell: (tokens: number) => void; readonly refuse: () => void }

/** A tokenizer beside the event loop. Its thread starts with the first count and does not keep the process alive. */
export function createTokenizer(): Tokenizer {
  const waiting = new Map<number, PendingCount>()
  let worker: Worker | null = null
  let orders = 0

  const start = (): Worker => {
    const started = new Worker(new URL('./tokenizer-worker.ts', import.meta.url))
    started.onmessage = ({ data: { id, tokens } }: MessageEvent<CountReport>) => waiting.get(id)?.tell(tokens)
    started.onerror = () => {
      if (worker === started) giveUp()
    }
    started.unref()
    return started
  }

  /** The next count starts a new thread. */
  const giveUp = () => {
    worker?.terminate()
    worker = null
    for (const { refuse } of waiting.values()) refuse()
  }

  return {
    count(texts) {
      if (waiting.size >= maximumWaiting) return Promise.reject(busy())
      worker ??= start()
      orders += 1
      const id = orders
      const { promise, resolve, reject } = Promise.withResolvers<number>()
      const refuse = () => reject(busy())
      const timer = setTimeout(refuse, deadlineMs)
      waiting.set(id, { tell: resolve, refuse })
      worker.postMessage({ id, texts } satisfies CountOrder)
      return promise.finally(() => {
        clearTimeout(timer)
        waiting.delete(id)
      })
    },
    close: giveUp,
  }
}

function busy(): GatewayError {
  return new GatewayError('service_unavailable', 'Counting tokens takes too long right now. Try again in a moment.', {
    retryAfterMs: 1_000,
  })
}
