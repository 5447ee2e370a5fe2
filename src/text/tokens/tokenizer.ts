import type { Clock } from '../../core/ports.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { TokenizerOrder, TokenizerReport } from './tokenizer-worker.ts'

type Tokenizer = {
  /**
   * Returns the total tokens of all texts by the tokenizers of OpenAI's models. Rejects with `service_unavailable` on a
   * timeout.
   */
  count(texts: readonly string[]): Promise<number>
  /** Returns the texts of lists of token IDs of cl100k_base. Rejects as `count` does. */
  decode(lists: readonly (readonly number[])[]): Promise<readonly string[]>
  /** Rejects all waiting calls. */
  close(): void
}

/** For a thread that loads its tables: about 0.5 s, but many times that on a busy machine. */
const startDeadlineMs = 30_000
/** Maximum waiting calls: more would time out anyway. */
const maximumWaiting = 64

type PendingOrder = { readonly tell: (report: TokenizerReport) => void; readonly refuse: () => void }
type WithoutId<Order> = Order extends unknown ? Omit<Order, 'id'> : never

/**
 * Creates a tokenizer outside of the event loop. Its thread starts with the first count and does not keep the process
 * alive.
 */
export function createTokenizer(deadlineMs: number, { after }: Pick<Clock, 'after'>): Tokenizer {
  const waiting = new Map<number, PendingOrder>()
  let worker: Worker | null = null
  /** The worker has carried out an order. */
  let isWarm = false
  let orders = 0

  const start = (): Worker => {
    const started = new Worker(new URL('./tokenizer-worker.ts', import.meta.url))
    isWarm = false
    started.onmessage = ({ data }: MessageEvent<TokenizerReport>) => {
      if (worker === started) isWarm = true
      waiting.get(data.id)?.tell(data)
    }
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

  const send = (order: WithoutId<TokenizerOrder>): Promise<TokenizerReport> => {
    if (waiting.size >= maximumWaiting) return Promise.reject(busy())
    worker ??= start()
    orders += 1
    const id = orders
    const { promise, resolve, reject } = Promise.withResolvers<TokenizerReport>()
    const refuse = () => reject(busy())
    const cancel = after(isWarm ? deadlineMs : Math.max(deadlineMs, startDeadlineMs), refuse)
    waiting.set(id, { tell: resolve, refuse })
    worker.postMessage({ ...order, id } satisfies TokenizerOrder)
    return promise.finally(() => {
      cancel()
      waiting.delete(id)
    })
  }

  return {
    async count(texts) {
      const report = await send({ kind: 'count', texts })
      return report.kind === 'count' ? report.tokens : 0
    },
    async decode(lists) {
      const report = await send({ kind: 'decode', lists })
      return report.kind === 'decode' ? report.texts : []
    },
    close: giveUp,
  }
}

function busy(): GatewayError {
  return new GatewayError('service_unavailable', 'Token counting timed out. Retry.', {
    retryAfterMs: 1_000,
  })
}
