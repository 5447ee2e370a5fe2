/**
 * What this process has heard of each upstream, and how many second tries it may spend. In memory: another process learns
 * the same within a few requests, and a restart may begin with trust.
 */

import type { RoutingFigures } from '../../core/models/models.ts'
import {
  afterFirstToken,
  applyOutcome,
  type CircuitState,
  circuitDecision,
  type HealthOutcome,
  type HealthState,
  initialCircuit,
  type SkipReason,
  skipReasonAt,
  stateAt,
  withProbe,
} from '../../core/routing/circuit-breaker.ts'
import {
  type AttemptSample,
  addAttemptSample,
  blendWithCatalog,
  emptyStats,
  type LiveModelStats,
} from '../../core/routing/live-model-stats.ts'
import type { Figures } from '../../core/routing/scoring.ts'

export type HealthReport = {
  readonly outcome: HealthOutcome
  /** Milliseconds an upstream asked to be left alone for. */
  readonly retryAfterMs?: number | null
  readonly firstTokenMs?: number | null
  readonly tokensPerSecond?: number | null
}

export type HealthEntry = {
  readonly key: string
  readonly state: HealthState
  /** Epoch milliseconds at which it entered this state; null = it was never in another one. */
  readonly since: number | null
  /** Moving average; null = never measured. */
  readonly firstTokenMs: number | null
}

/** Keys are `provider/model`, and `provider/model#credential` where a provider has several credentials. */
export type HealthTracker = {
  report(key: string, report: HealthReport): void
  stateOf(key: string): HealthState
  /** Whether to ask it now: false while it rests, and while another's probe of it is under way. Changes nothing. */
  mayTry(key: string): boolean
  /** Why not to ask it now; null = ask it. A model that the client named is asked for longer (`core/health.ts`). */
  skipReason(key: string, isNamed: boolean): SkipReason | null
  /** Told when an attempt begins: of one that heals, it is the probe until its outcome is reported, 30 s at most. */
  beginAttempt(key: string): void
  /** Moving average of the milliseconds to the first token; null = never measured. */
  firstTokenMs(key: string): number | null
  /** The figures published of a model, moved towards what was measured here of late; null = nothing was. */
  figuresOf(key: string, published: RoutingFigures): Figures | null
  /** The model as it is shown: its own state, or `unhealthy` while its provider's credential is refused. */
  entryOf(key: string): HealthEntry
  /** Of every model that was looked at. */
  list(): readonly HealthEntry[]
  /** Counts a request as active until its `end`, which may be called twice. */
  beginRequest(): { end(): void }
  /** A second or third try, if the budget has one (a fifth of the active requests, three at least); null where it has not. */
  beginRetry(key: string): { end(): void } | null
}

type Line = {
  health: CircuitState
  /** As shown when it was last brought up to date, and since when in epoch milliseconds; null = it was never another. */
  state: HealthState
  since: number | null
  /** Monotonic milliseconds of that. */
  seenAt: number
  live: LiveModelStats | null
  /** What is heard of its credential; null of a credential itself. */
  readonly provider: Line | null
}

const retriesPerRequest = 0.2
const minimumRetries = 3
/** Keys come from the catalogue, which is small; this only bounds a mistake. */
const maximumKeys = 10_000

/** An empty book: everyone is thought well. */
export function createHealthBook({ clock }: { readonly clock: { now(): number; monotonic(): number } }): HealthTracker {
  const lines = new Map<string, Line>()
  let activeRequests = 0
  let activeRetries = 0

  const unheard = (key: string): Line => {
    const provider = key.includes('/') ? lineOf(providerKey(key)) : null
    if (provider !== null) bringUpToDate(provider)
    return {
      health: initialCircuit,
      state: provider?.state === 'unhealthy' ? 'unhealthy' : 'healthy',
      since: provider?.since ?? null,
      seenAt: clock.monotonic(),
      live: null,
      provider,
    }
  }
  const lineOf = (key: string): Line => {
    const line = lines.get(key)
    if (line !== undefined) return line
    const fresh = unheard(key)
    if (lines.size < maximumKeys) lines.set(key, fresh)
    return fresh
  }
  /** Of one that nothing has closed the time says nothing; to ask the clock for every model of every request is expensive. */
  const timeFor = ({ closure }: CircuitState) => (closure === 'none' ? 0 : clock.monotonic())
  const stateNow = ({ health, provider }: Line): HealthState =>
    provider !== null && stateAt(provider.health, timeFor(provider.health)) === 'unhealthy'
      ? 'unhealthy'
      : stateAt(health, timeFor(health))
  /**
   * Notes the state that is shown now, and when it was entered. A state changes by what is reported, where this is called
   * before and after, and by time alone when a closure ends: that moment is known however late somebody looks.
   */
  const bringUpToDate = (line: Line) => {
    const { health, provider, seenAt } = line
    // Nothing is closed, as nearly always: no time has to be looked back at.
    if (health.closure === 'none' && (provider === null || provider.health.closure === 'none'))
      return enter(line, stateAt(health, 0), 0)
    const now = clock.monotonic()
    line.seenAt = now
    const ends = [health.closedUntil, provider?.health.closedUntil ?? 0].filter(end => end > seenAt && end < now)
    for (const at of [...ends.sort((one, other) => one - other), now]) {
      const isDisabled = provider !== null && stateAt(provider.health, at) === 'unhealthy'
      enter(line, isDisabled ? 'unhealthy' : stateAt(health, at), now - at)
    }
  }
  const enter = (line: Line, state: HealthState, agoMs: number) => {
    if (state === line.state) return
    line.state = state
    line.since = clock.now() - agoMs
  }
  const update = (line: Line, change: (health: CircuitState) => CircuitState) => {
    const changed = change(line.health)
    if (changed === line.health) return
    const bringAllUpToDate = () => {
      bringUpToDate(line)
      // What is heard of a credential is shown of all of the provider's models.
      if (line.provider === null) for (const one of lines.values()) if (one.provider === line) bringUpToDate(one)
    }
    bringAllUpToDate()
    line.health = changed
    bringAllUpToDate()
  }
  const take = (line: Line, measured: AttemptSample, outcome: HealthOutcome, now: number) => {
    // A broken one that also says how long to leave it alone has failed once.
    if (outcome === 'cooling' && line.health.closure === 'broken') return
    line.live ??= emptyStats(now)
    addAttemptSample(line.live, measured, now)
  }
  const mayAsk = ({ health }: Line) => circuitDecision(health, timeFor(health)) !== 'no'
  const probe = (line: Line) => {
    const now = clock.monotonic()
    if (circuitDecision(line.health, now) === 'probe') line.health = withProbe(line.health, now)
  }
  const skipReasonOf = ({ health, provider }: Line, isNamed: boolean): SkipReason | null => {
    if (provider !== null && !mayAsk(provider)) return 'provider_disabled'
    return skipReasonAt(health, timeFor(health), isNamed)
  }
  const entryOf = (key: string): HealthEntry => {
    const line = lineOf(key)
    bringUpToDate(line)
    return { key, state: line.state, since: line.since, firstTokenMs: line.health.firstTokenMs }
  }

  return {
    report(key, { outcome, retryAfterMs = null, firstTokenMs = null, tokensPerSecond = null }) {
      const now = clock.monotonic()
      const line = lineOf(key)
      take(line, { failed: outcome !== 'ok', firstTokenMs, tokensPerSecond }, outcome, now)
      // A refused credential is refused for all of the provider's models, and an answer from one proves it for all.
      if (outcome === 'switched_off') return update(line.provider ?? line, health => applyOutcome(health, outcome, now))
      if (outcome === 'ok' && line.provider !== null) update(line.provider, () => initialCircuit)
      update(line, health => {
        const after = applyOutcome(health, outcome, now, retryAfterMs)
        return firstTokenMs === null ? after : afterFirstToken(after, firstTokenMs)
      })
    },
    stateOf: key => stateNow(lineOf(key)),
    mayTry: key => skipReasonOf(lineOf(key), false) === null,
    skipReason: (key, isNamed) => skipReasonOf(lineOf(key), isNamed),
    entryOf,
    beginAttempt(key) {
      const line = lineOf(key)
      if (line.provider !== null) probe(line.provider)
      probe(line)
    },
    firstTokenMs: key => lines.get(key)?.health.firstTokenMs ?? null,
    figuresOf(key, published) {
      const live = lines.get(key)?.live ?? null
      return live === null ? null : blendWithCatalog(published, live, clock.monotonic())
    },
    list: () => [...lines.keys()].filter(key => key.includes('/')).map(entryOf),
    beginRequest() {
      activeRequests++
      return once(() => {
        activeRequests--
      })
    },
    beginRetry() {
      if (activeRetries >= Math.max(minimumRetries, Math.floor(activeRequests * retriesPerRequest))) return null
      activeRetries++
      return once(() => {
        activeRetries--
      })
    },
  }
}

/** `openai/gpt-5#2` → `openai#2`: whom a credential belongs to. Holds no slash, so it is no model's key. */
function providerKey(key: string): string {
  const credential = key.includes('#') ? key.slice(key.lastIndexOf('#')) : ''
  return key.slice(0, key.indexOf('/')) + credential
}

function once(action: () => void): { end(): void } {
  let ended = false
  return {
    end() {
      if (ended) return
      ended = true
      action()
    },
  }
}
