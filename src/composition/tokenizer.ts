import { GatewayError } from '../core/validation/errors.ts'
import type { TokenizerOrder, TokenizerReport } from './tokenizer-worker.ts'

export type Tokenizer = {
  /** Tokens of all texts together, as OpenAI's models count them. Rejects with `service_unavailable` when it takes too long. */
  count(texts: readonly string[]): Promise<number>
  /** The texts behind lists of token IDs of cl100k_base. Rejects as `count` does. */
  decode(lists: readonly (readonly number[])[]): Promise<readonly string[]>
  /** Whoever still waits is refused. */
  close(): void
}

const deadlineMs = 5_000
/** More waiting than this would not be answered in time anyway. */
const maximumWaiting = 64

type PendingOrder = { readonly tell: (report: TokenizerReport) => void; readonly refuse: () => void }
type WithoutId<Order> = Order extends unknown ? Omit<Order, 'id'> : never

/** A tokenizer beside the event loop. Its thread starts with the first count and does not keep the process alive. */
export function createTokenizer(): Tokenizer {
  const waiting = new Map<number, PendingOrder>()
  let worker: Worker | null = null
  let orders = 0

  const start = (): Worker => {
    const started = new Worker(new URL('./tokenizer-worker.ts', import.meta.url))
    started.onmessage = ({ data }: MessageEvent<TokenizerReport>) => waiting.get(data.id)?.tell(data)
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
    const timer = setTimeout(refuse, deadlineMs)
    waiting.set(id, { tell: resolve, refuse })
    worker.postMessage({ ...order, id } satisfies TokenizerOrder)
    return promise.finally(() => {
      clearTimeout(timer)
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
  return new GatewayError('service_unavailable', 'Counting tokens takes too long right now. Try again in a moment.', {
    retryAfterMs: 1_000,
  })
}
