/**
 * What accounts begin their day with when they come under local limits: what the ledger holds and, where Redis has spoken
 * lately, what others have open beside it. Where Postgres is gone too, what Redis last said is all there is.
 */
import { GatewayError } from '../../core/errors.ts'
import { maximumAccounts, remember } from '../remember.ts'
import { less, mostOf, nothing, type Seed, type Settled, type Spent, sumOf, type Waiting } from './spent.ts'

export type OpeningsOptions = {
  readonly seed: Seed
  /** Settled here, and perhaps not in the ledger yet. */
  readonly waitingOf: (accountId: string, day: number) => readonly Waiting[]
  readonly isShared: (accountId: string) => boolean
  /** What Redis last said is used of today, reservations included; null = nothing. */
  readonly lastSpent: (accountId: string) => Spent | null
  /** What this gateway has reserved in Redis. */
  readonly reservedOf: (accountId: string, day: number) => Spent
  /** What it has settled without Redis since Redis last spoke of the account. */
  readonly settledAlone: (accountId: string) => Settled | undefined
}

export type Openings = {
  /** Rejects with `DecidedInRedis`, or where nobody says what was used. */
  of(accountId: string, day: number): Promise<Spent>
  /** What was used by anybody else, and what the ledger held, when the account's day began; null = it has not. */
  baseOf(accountId: string, day: number): Spent | null
  /** Adds what the ledger held of these accounts to what is known to be settled of them. */
  raise(known: Map<string, Settled>, isWanted: (accountId: string) => boolean): void
  /** Redis decides for the account again. */
  forget(accountId: string): void
}

/** An account was to come under local limits, and Redis decides for it again. */
export class DecidedInRedis extends Error {}

export function createOpenings(options: OpeningsOptions): Openings {
  const { seed, waitingOf } = options
  const bases = new Map<string, Settled>()
  const fromLedger = new Map<string, Settled>()

  /** Without and with what waits for it here; or why it cannot be read. */
  const ledgerOf = async (accountId: string, day: number) => {
    try {
      const spent = await seed(accountId, day, [])
      return { spent, known: await seed(accountId, day, waitingOf(accountId, day)) }
    } catch (cause) {
      if (cause instanceof GatewayError) return cause
      throw cause
    }
  }

  return {
    async of(accountId, day) {
      const ledger = await ledgerOf(accountId, day)
      if (options.isShared(accountId)) throw new DecidedInRedis()
      // Only now: Redis may have spoken while Postgres was waited for.
      const last = options.lastSpent(accountId)
      const reserved = options.reservedOf(accountId, day)
      if (ledger instanceof GatewayError) {
        if (last === null) throw ledger
        const alone = options.settledAlone(accountId)
        const known = sumOf([less(last, reserved), alone?.day === day ? alone : nothing])
        remember(bases, accountId, { ...known, day }, maximumAccounts)
        return known
      }
      const { spent, known } = ledger
      // Others may have more open than the ledger knows: Redis said so a moment ago.
      const more = last === null ? nothing : less(last, sumOf([known, reserved]))
      remember(bases, accountId, { ...sumOf([spent, more]), day }, maximumAccounts)
      remember(fromLedger, accountId, { ...known, day }, maximumAccounts)
      return sumOf([known, more])
    },

    baseOf(accountId, day) {
      const base = bases.get(accountId)
      return base?.day === day ? base : null
    },

    raise(known, isWanted) {
      for (const [accountId, read] of fromLedger) {
        if (!isWanted(accountId)) continue
        const heard = known.get(accountId)
        if (heard === undefined || heard.day < read.day) known.set(accountId, read)
        else if (heard.day === read.day) known.set(accountId, { ...mostOf(heard, read), day: read.day })
      }
    },

    forget: accountId => void bases.delete(accountId),
  }
}
