/**
 * How well an upstream is, as a value: what was heard of it goes in, whether to ask it comes out. Bad news expires: every
 * closed door opens again by time alone, first for one request that tries it.
 */

/**
 * `soft_failure`: it failed this request (5xx, timeout, truncation). `unhealthy`: it says itself that it cannot serve (503).
 * `cooling`: it asks to be left alone (429). `switched_off`: it refuses our credential or our account.
 */
export type HealthOutcome = 'ok' | 'soft_failure' | 'unhealthy' | 'cooling' | 'switched_off'

export const healthStates = ['healthy', 'degraded', 'unhealthy'] as const
export type HealthState = (typeof healthStates)[number]

/** Times are milliseconds on a clock that only goes forward. */
export type CircuitState = {
  /** The latest outcomes, newest last: true = failed. At most `maximumRecent`. */
  readonly recent: readonly boolean[]
  readonly consecutiveFailures: number
  /** Not asked before this; then by one probe, unless it merely cooled. */
  readonly closedUntil: number
  readonly closure: 'none' | 'cooling' | 'broken'
  /** How long the next closure lasts. */
  readonly backoffMs: number
  /** Until when the upstream itself asked to be left alone; 0 = it did not. */
  readonly askedToWaitUntil: number
  /** Until when a probe is thought to be under way; one that is never heard of again does not bar the next. */
  readonly probeUntil: number
  readonly firstTokenMs: number | null
}

const maximumRecent = 20
/** Fewer outcomes than this say nothing about a rate. */
const minimumForRate = 10
const failuresInARow = 3
const firstBackoffMs = 2_000
const maximumBackoffMs = 60_000
const probeMs = 30_000
/** Weight of the newest first-token time in the moving average. */
const newestWeight = 0.2

export const initialCircuit: CircuitState = {
  recent: [],
  consecutiveFailures: 0,
  closedUntil: 0,
  closure: 'none',
  backoffMs: firstBackoffMs,
  askedToWaitUntil: 0,
  probeUntil: 0,
  firstTokenMs: null,
}

/** The health after an outcome at `now`. `retryAfterMs` is what a cooling upstream asked for, 60 s of it at most. */
export function applyOutcome(
  health: CircuitState,
  outcome: HealthOutcome,
  now: number,
  retryAfterMs: number | null = null,
): CircuitState {
  switch (outcome) {
    case 'ok':
      if (isSpotless(health)) return health
      // A probe that came through clears the slate, or the old failures would close the door at the next one.
      return health.closure === 'broken'
        ? { ...initialCircuit, recent: [false], firstTokenMs: health.firstTokenMs }
        : {
            ...health,
            recent: recently(health, false),
            consecutiveFailures: 0,
            backoffMs: firstBackoffMs,
            closure: closureAt(health, now),
          }
    case 'soft_failure': {
      const failed = { ...health, recent: recently(health, true), consecutiveFailures: health.consecutiveFailures + 1 }
      return health.closure === 'broken' || isBroken(failed) ? failedAt(failed, now) : failed
    }
    case 'unhealthy':
      return failedAt(
        { ...health, recent: recently(health, true), consecutiveFailures: health.consecutiveFailures + 1 },
        now,
      )
    case 'switched_off':
      return closed({ ...health, recent: recently(health, true) }, now, maximumBackoffMs)
    case 'cooling': {
      const until = now + Math.min(maximumBackoffMs, Math.max(0, retryAfterMs ?? firstBackoffMs))
      // A broken one that answers 429 is no nearer to being well.
      if (health.closure === 'broken')
        return { ...health, closedUntil: Math.max(until, health.closedUntil), probeUntil: 0 }
      return {
        ...health,
        closure: 'cooling',
        closedUntil: Math.max(until, health.closedUntil),
        askedToWaitUntil: retryAfterMs === null ? health.askedToWaitUntil : until,
      }
    }
    default:
      return outcome satisfies never
  }
}

/** The health with a new first-token time in its moving average. */
export function afterFirstToken(health: CircuitState, firstTokenMs: number): CircuitState {
  const { firstTokenMs: average } = health
  return {
    ...health,
    firstTokenMs: average === null ? firstTokenMs : average + newestWeight * (firstTokenMs - average),
  }
}

/** Whether it may be asked now. `probe`: yes, by this one request, whose outcome decides. */
export function circuitDecision(health: CircuitState, now: number): 'yes' | 'probe' | 'no' {
  if (health.closure === 'none') return 'yes'
  if (now < health.closedUntil) return 'no'
  if (health.closure === 'cooling') return 'yes'
  return now < health.probeUntil ? 'no' : 'probe'
}

export const skipReasons = ['circuit_open', 'cooldown', 'provider_disabled'] as const
/**
 * Why a model is not asked now. `circuit_open`: it failed, and its next probe is not due. `cooldown`: it answered 429 and its
 * wait is not over. `provider_disabled`: its provider refused the credential or the account.
 */
export type SkipReason = (typeof skipReasons)[number]

/**
 * Why a model is not asked now; null = it is asked. A model that the client names is asked until several failures opened its
 * circuit, or while the wait lasts that it asked for itself: one failure stops only the requests that can choose another model.
 */
export function skipReasonAt(health: CircuitState, now: number, isNamed: boolean): SkipReason | null {
  if (circuitDecision(health, now) !== 'no') return null
  if (health.closure === 'cooling') return isNamed && now >= health.askedToWaitUntil ? null : 'cooldown'
  return isNamed && !isBroken(health) ? null : 'circuit_open'
}

/** The health while a probe is under way. */
export function withProbe(health: CircuitState, now: number): CircuitState {
  return { ...health, probeUntil: now + probeMs }
}

/** As the models list tells it: unhealthy = not asked; degraded = asked with care, or failing now and then. */
export function stateAt(health: CircuitState, now: number): HealthState {
  if (health.closure === 'broken') return now < health.closedUntil ? 'unhealthy' : 'degraded'
  if (closureAt(health, now) === 'cooling' || health.consecutiveFailures > 0) return 'degraded'
  return failureRate(health) > 0.2 && health.recent.length >= minimumForRate ? 'degraded' : 'healthy'
}

/** A failure that is heard of while the circuit is open belongs to no probe: it makes the wait no longer. */
function failedAt(health: CircuitState, now: number): CircuitState {
  return health.closure === 'broken' && now < health.closedUntil ? health : closed(health, now, health.backoffMs)
}

function closed(health: CircuitState, now: number, forMs: number): CircuitState {
  return {
    ...health,
    closure: 'broken',
    closedUntil: now + forMs,
    backoffMs: Math.min(maximumBackoffMs, forMs * 2),
    probeUntil: 0,
  }
}

const closureAt = (health: CircuitState, now: number) =>
  health.closure === 'cooling' && now >= health.closedUntil ? 'none' : health.closure

/** No news could make it better. */
const isSpotless = ({ recent, consecutiveFailures, closure, backoffMs }: CircuitState) =>
  recent.length === maximumRecent &&
  closure === 'none' &&
  consecutiveFailures === 0 &&
  backoffMs === firstBackoffMs &&
  !recent.includes(true)

const isBroken = (health: CircuitState) =>
  health.consecutiveFailures >= failuresInARow || (health.recent.length >= minimumForRate && failureRate(health) > 0.5)

function failureRate({ recent }: CircuitState): number {
  let failures = 0
  for (const failed of recent) if (failed) failures++
  return recent.length === 0 ? 0 : failures / recent.length
}

const recently = (health: CircuitState, failed: boolean) => [...health.recent, failed].slice(-maximumRecent)
