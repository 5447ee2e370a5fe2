/**
 * What this gateway may hand out of each account while it decides without Redis: claims in Postgres (`claims.ts`), taken a
 * slice at a time and given back when nobody here wants them. The local meter's day counters are moved with every claim, so
 * that they say what all gateways have used and claimed.
 *
 * With Postgres away too it may hand out what it has claimed and, of what nobody had, as of the last it heard, its share: so
 * much for each gateway that lived then. How far that can go over is what others' unheard-of use adds up to; without any such
 * word it is the share of what Redis or the ledger last said. While Postgres is there nothing is handed out without a claim.
 */
import { dayOf } from '../../core/days.ts'
import { GatewayError } from '../../core/errors.ts'
import { type Limits, noLimits } from '../../core/plans.ts'
import type { Admission, AdmitRequest, OpenSeat, Seat } from '../meter.ts'
import type { LocalMeter } from '../meter-local.ts'
import type { Authority } from './authority.ts'
import {
  type Amounts,
  amountsOf,
  type Claimed,
  type Claims,
  each,
  fairPart,
  type HandedOut,
  noAmounts,
} from './claims.ts'
import { grantOf } from './grant.ts'
import type { Spent } from './spent.ts'

export type AllowancesOptions = {
  readonly claims: Claims
  readonly authority: Pick<Authority, 'isWithout' | 'readiness'>
  /** Leaves Redis for good, until its counts are made anew; resolves once that is said. */
  readonly leave: (partition: number) => Promise<void>
  readonly local: Pick<LocalMeter, 'admit' | 'raise' | 'used' | 'shift'>
  readonly clock: { now(): number; monotonic(): number }
  readonly partitionOf: (accountId: string) => number
  /** What is out of these accounts, in Redis' name or in this process' own. */
  readonly outOf: (accountIds: readonly string[], day: number) => readonly HandedOut[]
  /** How many share an account when last heard of. */
  readonly gatewaysOf: (accountId: string) => number
  /** What was used when an account came under local limits; null = not known. */
  readonly baseOf: (accountId: string) => Spent | null
  /** Called in the step that decides: Redis' counts are wrong from then on. */
  readonly deciding: (accountId: string) => void
  readonly onTrouble: (detail: string) => void
}

export type Allowances = {
  /** Admits on claims, which it takes as they are needed. The local meter must have seen the account. */
  admit(request: AdmitRequest): Promise<Admission>
  raise(open: OpenSeat, reservedTokens: number, reservedMicrocents: number): Promise<Seat | null>
  /** The local meter's limits: all that this gateway may have out. */
  allowed(accountId: string, limits: Limits): Limits
  /** A request has ended: what it leaves over may be wanted elsewhere. */
  settled(accountId: string): void
  /** What is out has been put down, and nothing more may be handed out on earlier claims. */
  begin(accountIds: readonly string[]): void
  /** Redis decides again. */
  forget(partition: number): void
  close(): void
}

type Allowance = Claimed & { readonly limits: Limits; readonly heardAt: number; isActive: boolean }
type Asking = { limits: Limits; need: Amounts; answer: Promise<Answer> }
/** `away` = Postgres is; `late` = it is there, and gave no answer in time. */
type Answer = 'heard' | 'away' | 'late'

/** How long a claim may be used unless renewed: shorter than others wait before they take this gateway for dead. */
const validMs = 2000
const refreshMs = 1000
/** A refusal is final where what others have was asked since the request came, or as lately. */
const freshMs = 20
/** How long an admission waits for claims, while others leave Redis: longer than one that does not is taken for alive. */
const holdMs = 4000
const retryMs = 20
const giveBackMs = 10
const mostRounds = 16
const mostAtOnce = 200
/** Requests' worth that is claimed ahead. */
const ahead = 8

/** Starts renewing. The timers do not keep the process alive. */
export function createAllowances(options: AllowancesOptions): Allowances {
  const { claims, authority, local, clock, partitionOf, outOf } = options
  /** Of every account that has a row; null = only what is out is known. */
  const placed = new Map<string, Allowance | null>()
  const running = new Map<string, Promise<unknown>>()
  const queued = new Map<string, Asking>()
  const givingBack = new Set<string>()
  /** How often a partition was begun anew: an answer from before it says nothing. */
  const begun = new Map<number, number>()
  let givingBackSoon: ReturnType<typeof setTimeout> | null = null

  const today = () => dayOf(clock.now())
  const isValid = (one: Allowance) => one.day === today() && clock.monotonic() - one.heardAt < validMs
  const heldOf = (accountId: string): Allowance | null => {
    const held = placed.get(accountId) ?? null
    return held !== null && isValid(held) && authority.isWithout(partitionOf(accountId)) ? held : null
  }
  const usedOf = (accountId: string): Amounts => local.used(accountId) ?? noAmounts

  const fits = (accountId: string, need: Amounts): boolean => {
    const held = heldOf(accountId)
    if (held === null) return false
    const slack = slackOf(held, usedOf(accountId))
    return (
      slack.tokens >= need.tokens &&
      slack.microcents >= need.microcents &&
      slack.seats >= need.seats &&
      slack.requests >= need.requests
    )
  }

  /** All that the others leave of an account's limits, as the local meter counts: of the day it knows what they have. */
  const leftByOthers = ({ accountId, limits }: AdmitRequest): Limits => {
    const elsewhere = heldOf(accountId)?.elsewhere ?? noAmounts
    return {
      ...limits,
      requestsPerMinute: Math.max(0, limits.requestsPerMinute - elsewhere.requests),
      concurrentRequests: Math.max(0, limits.concurrentRequests - elsewhere.seats),
    }
  }

  /** What a request takes where every gateway's use is counted; null = a limit is in its way. */
  const takes = (request: AdmitRequest): { readonly need: Amounts; readonly outputCap: number } | null => {
    const { accountId } = request
    const used = usedOf(accountId)
    const limits = leftByOthers(request)
    const freeSeats = limits.concurrentRequests - used.seats
    if (freeSeats <= 0 || used.requests >= limits.requestsPerMinute) return null
    const grant = grantOf(request, limits, used, freeSeats)
    if (typeof grant === 'string') return null
    const { tokens, microcents, outputCap } = grant
    return { need: { tokens, microcents, seats: 1, requests: 1 }, outputCap }
  }

  const isFresh = (accountId: string, since: number) => {
    const held = heldOf(accountId)
    return held !== null && held.heardAt >= Math.min(since, clock.monotonic() - freshMs)
  }

  /** Asks for as much as all who wait need together, one question of an account at a time. */
  const ask = (accountId: string, limits: Limits, need: Amounts): Promise<Answer> => {
    const waiting = queued.get(accountId)
    if (waiting !== undefined) {
      waiting.need = each(one => waiting.need[one] + need[one])
      waiting.limits = limits
      return waiting.answer
    }
    const before = running.get(accountId) ?? Promise.resolve()
    const asking: Asking = { limits, need, answer: Promise.resolve('late') }
    asking.answer = before.then(() => {
      queued.delete(accountId)
      return inTurn([accountId], () => askNow(accountId, asking))
    })
    queued.set(accountId, asking)
    return asking.answer
  }

  const inTurn = <T>(accountIds: readonly string[], work: () => Promise<T>): Promise<T> => {
    const done = work().finally(() => {
      for (const accountId of accountIds) if (running.get(accountId) === settled) running.delete(accountId)
    })
    const settled = done.catch(() => {})
    for (const accountId of accountIds) running.set(accountId, settled)
    return done
  }

  const askNow = async (accountId: string, { limits, need }: Asking): Promise<Answer> => {
    const partition = partitionOf(accountId)
    for (const until = clock.monotonic() + holdMs; clock.monotonic() < until; await Bun.sleep(retryMs)) {
      await options.leave(partition)
      const isReady = authority.readiness() === 'ready'
      if (isReady && (await send(partition, [{ accountId, limits, need, keeps: true }]))) return 'heard'
      if (authority.readiness() === 'away') return 'away'
    }
    return 'late'
  }

  type Wish = { readonly accountId: string; readonly limits: Limits; readonly need: Amounts; readonly keeps: boolean }

  /**
   * What this gateway has to spare, and how much of that it keeps while a claim is on its way, which may leave it less: from
   * here on no more is handed out than is kept, or others would be given what is handed out here meanwhile.
   */
  const sparedAndKept = ({ accountId, limits, need, keeps }: Wish) => {
    const held = heldOf(accountId)
    if (held === null) return { spared: noAmounts, kept: noAmounts }
    const used = usedOf(accountId)
    const slack = slackOf(held, used)
    const limit = amountsOf(limits)
    const free = (one: keyof Amounts) => limit[one] - used[one] - (isDaily(one) ? 0 : held.elsewhere[one])
    const part = (one: keyof Amounts) => fairPart(free(one) - need[one], options.gatewaysOf(accountId))
    const kept = keeps ? each(one => Math.min(slack[one], part(one))) : noAmounts
    placed.set(accountId, { ...held, mine: each(one => held.mine[one] - slack[one] + kept[one]) })
    return { spared: keeps ? slack : noAmounts, kept }
  }

  /** One transaction for accounts of one partition; false where others may still admit in Redis, or Postgres is late. */
  const send = async (partition: number, wishes: readonly Wish[]): Promise<boolean> => {
    const since = begun.get(partition)
    const [heardAt, day] = [clock.monotonic(), today()]
    const out = outOf(
      wishes.map(({ accountId }) => accountId),
      day,
    )
    const used = wishes.map(({ accountId }) => local.used(accountId))
    const asked = wishes.map((wish, index) => {
      const { accountId, limits, need } = wish
      const { spared, kept } = sparedAndKept(wish)
      const handedOut = out[index] ?? { accountId, day, out: noAmounts, waiting: [] }
      return { ...handedOut, limits, need, kept, spare: each(one => Math.max(spared[one], ahead * need[one])) }
    })
    try {
      const answer = await claims.claim(1 << partition, asked)
      if (answer === null || !authority.isWithout(partition) || begun.get(partition) !== since) return false
      for (const [index, claimed] of answer.entries())
        hear({ ...claimed, limits: asked[index]?.limits ?? noLimits, heardAt, isActive: false }, used[index] ?? null)
      return true
    } catch (cause) {
      if (!(cause instanceof GatewayError)) options.onTrouble(cause instanceof Error ? cause.message : String(cause))
      return false
    }
  }

  const hear = (claimed: Allowance, usedBefore: Spent | null) => {
    const { accountId, day, elsewhere, out } = claimed
    if (usedBefore === null) {
      if (out.tokens + out.microcents + out.seats + out.requests === 0) placed.delete(accountId)
      return
    }
    local.shift(accountId, day, {
      tokens: elsewhere.tokens + out.tokens - usedBefore.tokens,
      microcents: elsewhere.microcents + out.microcents - usedBefore.microcents,
    })
    placed.set(accountId, claimed)
  }

  /** Keeps what is in use, and gives back the rest. */
  const renew = async (accountIds: readonly string[], keeps: (held: Allowance) => boolean) => {
    if (authority.readiness() !== 'ready') return
    const free = accountIds.filter(accountId => placed.has(accountId) && !running.has(accountId))
    for (const [partition, all] of Map.groupBy(free, partitionOf)) {
      if (!authority.isWithout(partition)) continue
      for (let at = 0; at < all.length; at += mostAtOnce) {
        const some = all.slice(at, at + mostAtOnce).filter(accountId => !running.has(accountId))
        const wishes = some.map((accountId): Wish => {
          const held = placed.get(accountId) ?? null
          return { accountId, limits: held?.limits ?? noLimits, need: noAmounts, keeps: held !== null && keeps(held) }
        })
        await inTurn(some, () => send(partition, wishes))
      }
    }
  }

  const timer = setInterval(() => void renew([...placed.keys()], held => held.isActive), refreshMs)
  timer.unref()

  const giveBack = (accountId: string) => {
    givingBack.add(accountId)
    givingBackSoon ??= setTimeout(() => {
      givingBackSoon = null
      const all = [...givingBack]
      givingBack.clear()
      void renew(all, () => false)
    }, giveBackMs)
  }

  /** All that may be out here, counted as the local meter counts: with what others have of the day's tokens and money. */
  const mostOf = (accountId: string, limits: Limits): Limits => {
    const valid = heldOf(accountId)
    const held = valid ?? placed.get(accountId) ?? null
    if (held === null || held.day !== today())
      return shareOf(limits, options.baseOf(accountId) ?? noAmounts, options.gatewaysOf(accountId))
    const { elsewhere, mine } = held
    const most = (limit: number, one: keyof Amounts) => {
      const rest = valid === null ? Math.max(0, limit - elsewhere[one] - mine[one]) : 0
      return mine[one] + Math.floor(rest / options.gatewaysOf(accountId))
    }
    return {
      requestsPerMinute: most(limits.requestsPerMinute, 'requests'),
      concurrentRequests: most(limits.concurrentRequests, 'seats'),
      dailyTokens: elsewhere.tokens + most(limits.dailyTokens, 'tokens'),
      dailyCostMicrocents: elsewhere.microcents + most(limits.dailyCostMicrocents, 'microcents'),
    }
  }

  const decide = (request: AdmitRequest, within?: Limits): Promise<Admission> => {
    options.deciding(request.accountId)
    const held = placed.get(request.accountId)
    if (held) held.isActive = true
    return local.admit(request, within)
  }

  /** Without Postgres: on what is claimed, or a share. */
  const decideAlone = (request: AdmitRequest): Promise<Admission> => {
    if (heldOf(request.accountId) === null && authority.readiness() !== 'away')
      throw undecided('no claim was to be had in time')
    return decide(request)
  }

  return {
    async admit(request) {
      const { accountId, limits } = request
      const cameAt = clock.monotonic()
      for (let round = 0; round < mostRounds; round++) {
        const wanted = takes(request)
        // In one step with the look at what there is: whoever waited beside it looks for itself.
        if (wanted !== null && fits(accountId, wanted.need))
          return decide({ ...request, outputTokens: wanted.outputCap, fairShare: false })
        // For the limit that is in its way, and not for what happens to be claimed here.
        if (wanted === null && isFresh(accountId, cameAt)) return decide(request, leftByOthers(request))
        const answer = await ask(accountId, limits, wanted?.need ?? noAmounts)
        // Others may be deciding all the while: a share on top of what they hand out would be too much.
        if (answer === 'late') break
        if (answer === 'away') return decideAlone(request)
      }
      throw undecided('no claim was to be had in time')
    },

    async raise({ seat, limits }, reservedTokens, reservedMicrocents) {
      const need: Amounts = {
        ...noAmounts,
        tokens: Math.max(0, reservedTokens - seat.reservedTokens),
        microcents: Math.max(0, reservedMicrocents - seat.reservedMicrocents),
      }
      if (!fits(seat.accountId, need)) await ask(seat.accountId, limits, need)
      if (heldOf(seat.accountId) === null && authority.readiness() !== 'away') return null
      options.deciding(seat.accountId)
      return local.raise(seat, reservedTokens, reservedMicrocents)
    },

    allowed: mostOf,

    settled(accountId) {
      const held = heldOf(accountId)
      if (held !== null && options.gatewaysOf(accountId) > 1 && isScarce(held, slackOf(held, usedOf(accountId))))
        giveBack(accountId)
    },

    begin(accountIds) {
      for (const accountId of accountIds) placed.set(accountId, null)
    },

    forget(partition) {
      begun.set(partition, (begun.get(partition) ?? 0) + 1)
      for (const accountId of [...placed.keys()]) if (partitionOf(accountId) === partition) placed.delete(accountId)
    },

    close() {
      clearInterval(timer)
      if (givingBackSoon !== null) clearTimeout(givingBackSoon)
    },
  }
}

/** Nobody could be asked in time. */
export function undecided(detail: string): GatewayError {
  return new GatewayError(
    'service_unavailable',
    'The service cannot check the account’s limits right now. Try again shortly.',
    {
      retryAfterMs: 1000,
      detail,
    },
  )
}

/** Of these the local meter counts what others have, too. */
const isDaily = (one: keyof Amounts) => one === 'tokens' || one === 'microcents'

/** What may still be handed out here. */
function slackOf({ elsewhere, mine }: Claimed, used: Amounts): Amounts {
  return {
    tokens: Math.max(0, elsewhere.tokens + mine.tokens - used.tokens),
    microcents: Math.max(0, elsewhere.microcents + mine.microcents - used.microcents),
    seats: Math.max(0, mine.seats - used.seats),
    requests: Math.max(0, mine.requests - used.requests),
  }
}

/** Whether others may soon be refused for what lies idle here. */
function isScarce({ rest }: Claimed, slack: Amounts): boolean {
  return rest.seats < 1 || rest.requests < 1 || rest.tokens < slack.tokens || rest.microcents < slack.microcents
}

/** One gateway's part of limits of which so much is known to be used; of requests and seats one at least. */
function shareOf(limits: Limits, used: Spent, gateways: number): Limits {
  const part = (limit: number, gone: number) => Math.min(limit, gone + Math.floor(Math.max(0, limit - gone) / gateways))
  const atLeastOne = (limit: number) => (limit === 0 ? 0 : Math.max(1, Math.floor(limit / gateways)))
  return {
    requestsPerMinute: atLeastOne(limits.requestsPerMinute),
    concurrentRequests: atLeastOne(limits.concurrentRequests),
    dailyTokens: part(limits.dailyTokens, used.tokens),
    dailyCostMicrocents: part(limits.dailyCostMicrocents, used.microcents),
  }
}
