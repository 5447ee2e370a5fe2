/** The calls of a comparison and their money: the most that a call can cost is held before it, its cost is counted after it. */
import type { ChatRequest } from '../../core/chat/chat.ts'
import type { RequestAbortSignal } from '../../core/chat/request-abort.ts'
import { ResponseCollector } from '../../core/chat/response-collector.ts'
import type { Caller, Limits } from '../../core/limits/plans.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import { fromUsd } from '../../core/usage/money.ts'
import { shadowKeyId } from '../../core/usage/shadow.ts'
import { getSpent } from '../../core/usage/usage-record.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { Database } from '../../database/database.ts'
import { type Comparison, holdComparison } from '../../learning/shadow-comparisons.ts'
import type { Admission, AdmissionRequest, Meter, QuotaStatus, Settlement } from '../../limits/meter.ts'
import { type AnswerDeps, answer } from '../answer.ts'

/** The whole text of an output; null = it is cut, filtered, or no text. */
export function findText(output: ResponseCollector): string | null {
  const [choice] = output.result()
  return choice?.finishReason === 'stop' && choice.filtered === null && choice.text !== '' ? choice.text : null
}

/** One call, of the model that is named. */
export const unaided = {
  dialect: 'native',
  source: null,
  strategy: null,
  stream: null,
  fallback: 'none',
  continuation: 'none',
  hedge: false,
  web: 'off',
  enhance: false,
  endUser: null,
  session: null,
  tags: null,
  metadata: null,
} as const satisfies Partial<ChatRequest>

export type PurseDeps = AnswerDeps & {
  readonly database: Database
  readonly meter: Pick<Meter, 'charge' | 'loadStatus' | 'quotaStatus'>
  readonly newRequestId: () => string
}

/** The money of one comparison, as the meter of its calls. */
export class Purse {
  microcents = 0
  isHeld = false

  constructor(
    private readonly deps: PurseDeps,
    private readonly caller: Caller,
    readonly comparison: Comparison,
  ) {}

  /** Returns the whole output of a model. `models`: those that the key may use. Throws if there is none. */
  async ask(request: ChatRequest, signal: RequestAbortSignal, models?: Caller['models']): Promise<string> {
    const { accountId, limits, refusedFrom } = this.caller
    const output = new ResponseCollector()
    await answer(
      { ...this.deps, meter: this, rules: { operator: [] }, ownKeys: { of: () => null } },
      {
        ...{ accountId, keyId: shadowKeyId, limits },
        // It pays no more than was held, whatever the account's own plan.
        plan: 'evaluation',
        ...(refusedFrom !== undefined && { refusedFrom }),
        ...(models !== undefined && { models }),
      },
      request,
      { id: this.deps.newRequestId(), signal, output },
    )
    const text = findText(output)
    if (text === null) throw new GatewayError('upstream_failed', 'The output is incomplete.')
    return text
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    const { requestId, accountId, limits, inputTokens, outputTokens: outputCap, inputPrice, outputPrice } = request
    const reservedTokens = inputTokens + outputCap
    const cost = Math.ceil((inputTokens * inputPrice + outputCap * outputPrice) / 1e6) + request.extraMicrocents
    const { tokens, costMicrocents } = await this.deps.meter.loadStatus(accountId, limits)
    const day = formatDay(this.deps.clock.now())
    const isWithinDay = reservedTokens <= tokens.remaining && cost <= costMicrocents.remaining
    const { shadow } = this.caller
    const held = this.microcents + cost
    if (
      !isWithinDay ||
      !(await holdComparison(this.deps.database, this.comparison, held, fromUsd(shadow?.monthly_cap_usd ?? 0)))
    )
      return { admitted: false, code: 'monthly_cost_exceeded', scope: null, retryAfterMs: 0 }
    this.isHeld = true
    const reservation = { requestId, accountId, outputCap, reservedTokens, reservedMicrocents: cost, day }
    return { admitted: true, reservation }
  }

  quotaStatus(accountId: string, limits: Limits): QuotaStatus | null {
    return this.deps.meter.quotaStatus(accountId, limits)
  }

  /** Nothing beyond what is held. */
  async raise(): Promise<null> {
    return null
  }

  checkpoint(): void {}

  async settle({ record }: Settlement): Promise<void> {
    const { microcents, tokens } = getSpent(record)
    this.microcents += microcents
    // A call that used nothing is no usage of the account.
    if (microcents + tokens > 0) await this.deps.meter.charge({ ...record, learning: null })
  }
}
