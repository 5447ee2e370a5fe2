/**
 * Password hashing with a bounded queue. Argon2id is expensive; without the bounds, a burst of sign-ins would starve
 * other requests, and one network address could block the sign-ins of all others.
 */

import { dummyHash, hashing, isOutdated, type Passwords } from '../../core/accounts/passwords.ts'
import { GatewayError } from '../../core/validation/errors.ts'

/** Maximum concurrent hashes: 4 in total, 2 per source. */
const maximumRunning = 4
const maximumRunningOfSource = 2
/** Maximum queue length, running hashes included. */
const maximumLine = 64
const maximumLineOfSource = 8

/** Creates the hasher of one process. */
export function createPasswords(cost = hashing): Passwords {
  const nobodys = dummyHash(cost)
  const inTurn = createLine()
  return {
    hash: (password, source) => inTurn(source, () => Bun.password.hash(password, { algorithm: 'argon2id', ...cost })),
    async verify(password, hash, source) {
      const matches = await inTurn(source, () => Bun.password.verify(password, hash ?? nobodys))
      if (!matches || hash === null) return 'wrong'
      return isOutdated(hash, cost) ? 'outdated' : 'right'
    },
  }
}

/** Queued and running hashes of one source. */
type Place = { line: number; running: number }

/**
 * Runs work in order of arrival. If a source already runs two hashes, its next one waits, and work of another source
 * starts before it.
 */
function createLine() {
  const waiting: { readonly place: Place; readonly start: () => void }[] = []
  const places = new Map<string, Place>()
  const all: Place = { line: 0, running: 0 }

  const getPlace = (source: string | null): Place => {
    const place = (source === null ? undefined : places.get(source)) ?? { line: 0, running: 0 }
    if (source !== null) places.set(source, place)
    return place
  }
  const mayRun = (place: Place) => all.running < maximumRunning && place.running < maximumRunningOfSource
  const begin = (place: Place) => {
    all.running++
    place.running++
  }
  /** Counts the start before the waiting work resumes; otherwise two could use the same slot. */
  const startNext = () => {
    const at = waiting.findIndex(({ place }) => mayRun(place))
    const [next] = at === -1 ? [] : waiting.splice(at, 1)
    if (next === undefined) return
    begin(next.place)
    next.start()
  }

  return async <T>(source: string | null, work: () => Promise<T>): Promise<T> => {
    if (all.line >= maximumLine) throw lineFull()
    const place = getPlace(source)
    if (place.line >= maximumLineOfSource) throw sourceFull()
    all.line++
    place.line++
    if (mayRun(place)) begin(place)
    else await new Promise<void>(start => waiting.push({ place, start }))
    try {
      return await work()
    } finally {
      for (const item of [all, place]) {
        item.line--
        item.running--
      }
      if (source !== null && place.line === 0) places.delete(source)
      startNext()
    }
  }
}

function lineFull(): GatewayError {
  return new GatewayError('service_unavailable', 'Too many concurrent sign-ins. Retry.', {
    retryAfterMs: 1000,
    detail: 'password hashing at its bound',
  })
}

function sourceFull(): GatewayError {
  return new GatewayError('ip_rate_limited', 'Too many concurrent sign-ins from this address. Retry in 1 second.', {
    retryAfterMs: 1000,
  })
}
