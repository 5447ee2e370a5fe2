/**
 * Bounds the memory of request bodies. A request reserves the bytes of its body before the gateway reads them, and
 * releases them when its response has ended. One account, or one IP address without a key, cannot reserve more than its
 * own share (429); all requests together cannot reserve more than the process has (503). The last eighth is reserved
 * for small bodies, so that large ones cannot stop ordinary requests. Released bodies over 32 KB stay counted until the
 * garbage collector has run.
 */
import { GatewayError } from '../core/validation/errors.ts'

const megabyte = 1_048_576

/** Maximum bytes of concurrent bodies, as `charge` counts them. */
export type BodyLimits = { readonly process: number; readonly owner: number }

const smallBody = 262_144
/** A body up to this size can hold the maximum of 262,144 values, and a value needs more memory than its text. */
const denseBytes = 786_432
const keptForSmall = 1 / 8
/**
 * Larger bodies trigger a collection before their garbage accumulates; the engine's own schedule suffices for smaller
 * ones.
 */
const collectedBody = 32_768

/** Returns the bytes that a body counts for. The first 768 KB count four times. */
export function charge(bytes: number): number {
  return bytes + 3 * Math.min(bytes, denseBytes)
}

/**
 * Megabytes. A large body costs three to seven times its bytes in memory: the bytes, the text (two bytes per character if one
 * character needs it), the parsed strings, and the provider's request as text and as bytes. Under the defaults a gateway of
 * 110 MB stays below 512 MB. Under the smallest limits the largest body is still accepted.
 */
export const bodyMegabytes = {
  process: { default: 48, smallest: 40 },
  owner: { default: 36, smallest: 35 },
  largest: 1_048_576,
} as const

type BodyBudgetOptions = {
  readonly limits: BodyLimits
  /** Runs a full garbage collection. */
  readonly collect: () => void
}

/** The bodies of one process. */
export class BodyBudget {
  /** Bytes reserved now, as `charge` counts them. */
  heldBytes = 0
  /** Released bytes since the last collection. */
  private garbage = 0
  private readonly owners = new Map<string, number>()

  constructor(private readonly options: BodyBudgetOptions) {}

  /** Opens an empty reservation for an account ID or an IP address; null = not known yet. */
  open(owner: string | null): BodyHold {
    return new BodyHold(this, owner)
  }

  reserve(owner: string | null, bytes: number, isSmall: boolean): void {
    const { limits, collect } = this.options
    this.checkOwner(owner, bytes)
    const most = isSmall ? limits.process : limits.process * (1 - keptForSmall)
    if (this.heldBytes + bytes > most) throw processLimit(this.heldBytes)
    if (this.heldBytes + this.garbage + bytes > most && this.garbage > 0) {
      collect()
      this.garbage = 0
    }
    this.addToOwner(owner, bytes)
    this.heldBytes += bytes
  }

  release(owner: string | null, bytes: number, leavesGarbage: boolean): void {
    this.addToOwner(owner, -bytes)
    this.heldBytes -= bytes
    if (leavesGarbage) this.garbage += bytes
  }

  checkOwner(owner: string | null, bytes: number): void {
    const most = this.options.limits.owner
    if (owner !== null && (this.owners.get(owner) ?? 0) + bytes > most) throw ownersLimit(most)
  }

  addToOwner(owner: string | null, bytes: number): void {
    if (owner === null) return
    const own = (this.owners.get(owner) ?? 0) + bytes
    if (own > 0) this.owners.set(owner, own)
    else this.owners.delete(owner)
  }
}

/** Reservation of one request. It counts for the process from the start, and for its owner when the owner is known. */
export class BodyHold {
  private bytes = 0
  private isOver = false

  constructor(
    private readonly budget: BodyBudget,
    private owner: string | null,
  ) {}

  /** Sets the owner. Throws 429 `request_bytes_exceeded` if the owner then holds too much; the bytes stay reserved. */
  assign(owner: string): void {
    const bytes = charge(this.bytes)
    this.budget.checkOwner(owner, bytes)
    this.owner = owner
    this.budget.addToOwner(owner, bytes)
  }

  /**
   * Reserves `more` bytes of the body; `isWhole` if they are the whole body. Part of a body counts as part of a large one.
   * Throws 429 `request_bytes_exceeded` if its owner holds too much, and 503 `service_unavailable` if the process does. Earlier
   * reservations stay.
   */
  add(more: number, isWhole: boolean): void {
    // After a timeout, a late reader must not reserve bytes that no code would release.
    if (this.isOver) throw new Error('the reservation was released')
    const bytes = this.bytes + more
    this.budget.reserve(this.owner, charge(bytes) - charge(this.bytes), isWhole && bytes <= smallBody)
    this.bytes = bytes
  }

  /** Releases all bytes. A second call does nothing. */
  release(): void {
    if (this.bytes > 0) this.budget.release(this.owner, charge(this.bytes), this.bytes > collectedBody)
    this.bytes = 0
    this.isOver = true
  }
}

const retryAfterMs = 1_000

function ownersLimit(limit: number): GatewayError {
  const megabytes = Math.floor(limit / megabyte)
  return new GatewayError(
    'request_bytes_exceeded',
    `Concurrency limit reached: the bodies of your running requests exceed ${megabytes} MB in total. Retry when one has finished.`,
    { retryAfterMs },
  )
}

function processLimit(held: number): GatewayError {
  return new GatewayError(
    'service_unavailable',
    'The gateway holds as many request bodies as its memory allows. Retry after the time in `retry-after`.',
    { retryAfterMs, detail: `request bodies: ${Math.ceil(held / megabyte)} MB held` },
  )
}
