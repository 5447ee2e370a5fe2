/** Password hashing, dear by design and therefore bounded: a flood of sign-ins must not take the machine from everybody else. */
import { GatewayError } from '../core/errors.ts'
import { hashing, isOutdated, nobodysHash } from '../core/passwords.ts'

export type Passwords = {
  /** Argon2id. Throws `service_unavailable` where too many wait. */
  hash(password: string): Promise<string>
  /**
   * Whether the password is the hash's. Null, for somebody unknown, takes as long and is never right. `outdated`: right,
   * but hashed with other parameters than today's. Throws `service_unavailable` where too many wait.
   */
  verify(password: string, hash: string | null): Promise<'wrong' | 'right' | 'outdated'>
}

/** Hashes at once: four threads' worth. */
const maximumRunning = 4
/** In line, those being hashed included. */
const maximumLine = 64

/** The hasher of one process. */
export function createPasswords(cost = hashing): Passwords {
  const nobodys = nobodysHash(cost)
  const waiting: (() => void)[] = []
  let running = 0

  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    if (running + waiting.length >= maximumLine) throw tooMany()
    if (running >= maximumRunning) await new Promise<void>(resolve => waiting.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      // The place goes to the next in line without ever being free.
      if (next === undefined) running--
      else next()
    }
  }

  return {
    hash: password => inTurn(() => Bun.password.hash(password, { algorithm: 'argon2id', ...cost })),
    async verify(password, hash) {
      const matches = await inTurn(() => Bun.password.verify(password, hash ?? nobodys))
      if (!matches || hash === null) return 'wrong'
      return isOutdated(hash, cost) ? 'outdated' : 'right'
    },
  }
}

function tooMany(): GatewayError {
  return new GatewayError('service_unavailable', 'Too many sign-ins are under way. Try again shortly.', {
    retryAfterMs: 1000,
    detail: 'password hashing at its bound',
  })
}
