/**
 * Counts a pool's capacity in Redis: one script per claim, for all gateway instances. Without Redis each instance sends
 * at most one request per account beyond its share of the quota, and charges Redis for these requests when it returns.
 */
import type { Script } from '../../core/limits/script.ts'
import type { Quota, Shortage } from '../../models/minute-buckets.ts'
import type { CapacityChoice, CapacityNeed, CapacityStore, KeyOption } from './capacity.ts'
import { claimScript, correctScript, exhaustScript, pauseScript } from './capacity-scripts.ts'
import { type CapacityDeps, LocalCapacity } from './local-capacity.ts'

type RedisCapacityDeps = CapacityDeps & {
  readonly redis: { evaluate(script: Script, keys: readonly string[], values: readonly string[]): Promise<unknown> }
  /** Distinguishes gateway instances. */
  readonly instanceId: string
  /** Distinguishes pools: the provider. */
  readonly poolId: string
}

type Owed = { requests: number; tokens: number }

export class RedisCapacity implements CapacityStore {
  private readonly deps: RedisCapacityDeps
  private readonly hash: string
  private readonly instances: string
  /** Counts while Redis is unavailable. */
  private readonly own: LocalCapacity
  private isAway = false
  /** Instances that claimed within a minute, at the last claim in Redis. */
  private processes = 1
  /** Quotas of the accounts, as last claimed. */
  private readonly quotas = new Map<string, Quota>()
  /** Use by account that Redis has not counted. */
  private readonly owed = new Map<string, Owed>()

  constructor(deps: RedisCapacityDeps) {
    this.deps = deps
    this.hash = `gw:{keys:${deps.poolId}}:use`
    this.instances = `gw:{keys:${deps.poolId}}:instances`
    this.own = new LocalCapacity(deps, { processes: () => this.processes, startsEmpty: true })
  }

  async claim(options: readonly KeyOption[], need: CapacityNeed): Promise<CapacityChoice> {
    for (const { account, quota } of options) this.quotas.set(account, quota)
    try {
      this.chargeOwed()
      const [index, waitMs, processes] = numbersOf(await this.claimInRedis(options, need))
      this.isAway = false
      this.processes = Math.max(1, processes)
      return { index, waitMs }
    } catch {
      return this.claimHere(options, need)
    }
  }

  correct(account: string, tokens: number): void {
    if (this.isAway) {
      this.own.correct(account, tokens)
      this.owe(account, 0, -tokens)
    } else this.sendCorrection(account, { requests: 0, tokens: -tokens })
  }

  exhaust(account: string, shortage: Shortage): void {
    this.own.exhaust(account, shortage)
    const [requests, tokens] = this.figuresOf(account)
    const fields = [
      ...(shortage.requests && requests > 0 ? [`r:${account}`] : []),
      ...(shortage.tokens && tokens > 0 ? [`t:${account}`] : []),
    ]
    if (fields.length > 0) this.deps.redis.evaluate(exhaustScript, [this.hash], fields).catch(() => {})
  }

  pause(account: string, model: string | null, milliseconds: number): void {
    // Also here, in case Redis is unavailable.
    this.own.pause(account, model, milliseconds)
    const name = model === null ? account : `${account} ${model}`
    this.deps.redis.evaluate(pauseScript, [this.hash], [name, String(milliseconds)]).catch(() => {})
  }

  private claimInRedis(options: readonly KeyOption[], { model, tokens }: CapacityNeed): Promise<unknown> {
    const { redis, instanceId, random } = this.deps
    const values = [instanceId, model, String(tokens), String(random())]
    for (const { account, quota, weight, share } of options)
      values.push(account, String(quota.requests ?? 0), String(quota.tokens ?? 0), String(weight), String(share))
    return redis.evaluate(claimScript, [this.hash, this.instances], values)
  }

  private claimHere(options: readonly KeyOption[], need: CapacityNeed): CapacityChoice {
    if (!this.isAway) this.own.reset()
    this.isAway = true
    const choice = this.own.claim(options, need)
    const chosen = options[choice.index]
    if (chosen !== undefined) this.owe(chosen.account, 1, need.tokens)
    return choice
  }

  /** Requests and tokens per minute; 0 = not limited. */
  private figuresOf(account: string): readonly [number, number] {
    const { requests, tokens } = this.quotas.get(account) ?? { requests: null, tokens: null }
    return [requests ?? 0, tokens ?? 0]
  }

  private owe(account: string, requests: number, tokens: number): void {
    const owed = this.owed.get(account) ?? { requests: 0, tokens: 0 }
    this.owed.set(account, { requests: owed.requests + requests, tokens: owed.tokens + tokens })
  }

  /** Sent before a claim on the same connection, so that the claim counts it. */
  private chargeOwed(): void {
    for (const [account, owed] of this.owed) {
      this.owed.delete(account)
      this.sendCorrection(account, owed)
    }
  }

  private sendCorrection(account: string, owed: Owed): void {
    const values = [account, ...[...this.figuresOf(account), -owed.requests, -owed.tokens].map(String)]
    // A deadline may have passed after Redis ran it. Charged twice is the safe side.
    this.deps.redis
      .evaluate(correctScript, [this.hash], values)
      .catch(() => this.owe(account, owed.requests, owed.tokens))
  }
}

/** Throws if the reply is not that of the claim script. */
function numbersOf(reply: unknown): readonly [number, number, number] {
  const [index, waitMs, processes] = Array.isArray(reply) ? reply.map(Number) : []
  if (index === undefined || waitMs === undefined || processes === undefined) throw new Error('unexpected reply')
  return [index, waitMs, processes]
}
