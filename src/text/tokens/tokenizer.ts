import type { Clock } from '../../core/ports.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { TokenizerOrder, TokenizerReport } from './tokenizer-worker.ts'

type Tokenizer = {
  /** Returns the texts of lists of token IDs of cl100k_base. Rejects with `service_unavailable` on a timeout. */
  decode(lists: readonly (readonly number[])[]): Promise<readonly string[]>
  /** Rejects all waiting calls. */
  close(): void
}

/** IDs of cl100k_base are below this; the few special ones above stand for no text. */
export const tokenIdLimit = 100_256

/** For a thread that loads its table: about 0.2 s, but many times that on a busy machine. */
const startDeadlineMs = 30_000
/** Maximum waiting calls: more would time out anyway. */
const maximumWaiting = 64

type PendingOrder = { readonly tell: (report: TokenizerReport) => void; readonly refuse: () => void }

/**
 * Creates a tokenizer outside of the event loop. Its thread starts with the first list and does not keep the process
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

  /** The next list starts a new thread. */
  const giveUp = () => {
    worker?.terminate()
    worker = null
    for (const { refuse } of waiting.values()) refuse()
  }

  const decode: Tokenizer['decode'] = async lists => {
    if (waiting.size >= maximumWaiting) throw busy()
    worker ??= start()
    orders += 1
    const id = orders
    const { promise, resolve, reject } = Promise.withResolvers<TokenizerReport>()
    const refuse = () => reject(busy())
    const cancel = after(isWarm ? deadlineMs : Math.max(deadlineMs, startDeadlineMs), refuse)
    waiting.set(id, { tell: resolve, refuse })
    worker.postMessage({ id, lists } satisfies TokenizerOrder)
    try {
      return (await promise).texts
    } finally {
      cancel()
      waiting.delete(id)
    }
  }

  return { decode, close: giveUp }
}

function busy(): GatewayError {
  return new GatewayError('service_unavailable', 'Token decoding timed out. Retry.', {
    retryAfterMs: 1_000,
  })
}
