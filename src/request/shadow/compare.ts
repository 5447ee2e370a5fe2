/**
 * Shadow evaluation: after a sampled automatic request, the account's baseline answers too, and the operator's judge compares both
 * outputs without their names. The client has its response before. Texts stay in the memory of a pending comparison and are
 * dropped with it; docs/guides/savings.md has the rules.
 */
import { type ChatRequest, isChat, type Message } from '../../core/chat/chat.ts'
import type { ResponseOutput, ResponsePart, TextChannel } from '../../core/chat/chat-events.ts'
import { createRequestAbort, type RequestAbortSignal } from '../../core/chat/request-abort.ts'
import { ResponseCollector } from '../../core/chat/response-collector.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { fullName, getNeeds } from '../../core/models/models.ts'
import type { Log } from '../../core/ports.ts'
import type { ShadowVerdict } from '../../core/usage/shadow.ts'
import { servingModel } from '../../core/usage/usage-record.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { endComparison } from '../../learning/shadow-comparisons.ts'
import { defaultLevelShares, getLevel } from '../../models/capability-levels.ts'
import { nextTurn } from '../../text/moderation/text-moderator.ts'
import { type AnswerRequest, answer, getUnderPolicy } from '../answer.ts'
import { findBaseline } from '../baseline.ts'
import { modelBreach } from '../routing/constrained.ts'
import { findJudge, readVerdict, toJudgeRequest } from './judge.ts'
import { findText, Purse, type PurseDeps, unaided } from './purse.ts'

const comparedAtOnce = 2
/** Pending comparisons, whose texts are in memory. */
const maximumWaiting = 8

type Job = (signal: RequestAbortSignal) => Promise<ShadowVerdict | null>

/** The comparisons of a process: some at once, few waiting, no more. */
export class ShadowJobs {
  private readonly running = new Set<Promise<void>>()
  private readonly waiting: Job[] = []
  private readonly abort = createRequestAbort()

  constructor(private readonly compared: (result: ShadowVerdict | 'skipped') => void) {}

  /** Never waits, never throws. */
  add(job: Job): void {
    if (this.abort.signal.aborted || this.waiting.length >= maximumWaiting) this.compared('skipped')
    else {
      this.waiting.push(job)
      this.next()
    }
  }

  /** Ends all comparisons. Resolves when what they used is counted. */
  async close(): Promise<void> {
    this.waiting.length = 0
    this.abort.abort(new GatewayError('service_unavailable', 'The gateway stops.'))
    await Promise.all(this.running)
  }

  private next(): void {
    if (this.running.size >= comparedAtOnce) return
    const job = this.waiting.shift()
    if (job === undefined) return
    // In a turn of its own: the client must not wait for the choice and the estimates of the baseline's call.
    const run = nextTurn()
      .then(() => job(this.abort.signal))
      .then(verdict => this.compared(verdict ?? 'skipped'))
      .finally(() => {
        this.running.delete(run)
        this.next()
      })
    this.running.add(run)
  }
}

type ShadowDeps = PurseDeps & {
  readonly shadow: Pick<ShadowJobs, 'add'>
  readonly config: { readonly routing: { readonly judgeModel: string | null } }
  readonly random: () => number
  readonly log: Pick<Log, 'warn'>
}

/** Answers like `answer`, and compares the output afterwards if the request is sampled. */
export function answerInView(
  deps: ShadowDeps,
  caller: Caller,
  asked: ChatRequest,
  request: AnswerRequest,
): Promise<void> {
  const { shadow } = caller
  if (shadow === undefined || !isComparable(asked) || deps.random() >= shadow.share)
    return answer(deps, caller, asked, request)
  const served = new SeenOutput(request.output)
  const { headers, id } = request
  const comparison = (signal: RequestAbortSignal) =>
    compare(deps, { caller, asked, headers, requestId: id, served: served.seen }, signal).catch(thrown => {
      if (!(thrown instanceof GatewayError)) deps.log.warn('shadow_comparison_failed', { request_id: id })
      return null
    })
  return answer(deps, caller, asked, { ...request, output: served }).then(() => deps.shadow.add(comparison))
}

/** Passes an output on and keeps its text. */
class SeenOutput implements ResponseOutput {
  readonly seen = new ResponseCollector()

  constructor(private readonly output: ResponseOutput) {}

  text(channel: TextChannel, text: string): void {
    this.seen.text(channel, text)
    this.output.text(channel, text)
  }

  add(part: ResponsePart): void {
    this.seen.add(part)
    this.output.add(part)
  }

  flush(): Promise<void> | null {
    return this.output.flush()
  }
}

/** Only text, and nothing that few models can read or that the client does not want stored. */
function isComparable(asked: ChatRequest): boolean {
  const { embedding, source, choices, logprobs, extras, messages } = asked
  if (embedding !== undefined || !isChat(asked) || choices > 1 || logprobs || extras.store === false) return false
  if (source !== null && (source.fields.store === false || source.needs.length + source.unread.length > 0)) return false
  const { vision, files, tools, responseFormat } = getNeeds(asked)
  const isCall = (message: Message) =>
    message.role === 'tool' || (message.role === 'assistant' && message.toolCalls.length > 0)
  return !vision && !files && !tools && responseFormat === 'text' && !messages.some(isCall)
}

type ServedRequest = {
  readonly caller: Caller
  readonly asked: ChatRequest
  readonly headers: AnswerRequest['headers']
  readonly requestId: string
  readonly served: ResponseCollector
}

/** Returns the verdict; null = not compared: another model answers, a constraint or rule forbids it, or the cap is reached. */
async function compare(
  deps: ShadowDeps,
  { caller, asked, headers, requestId, served }: ServedRequest,
  signal: RequestAbortSignal,
): Promise<ShadowVerdict | null> {
  const { receipt } = served
  const text = findText(served)
  const judge = findJudge(deps.catalog, deps.config.routing.judgeModel)
  const baseline = findBaseline(deps, caller)
  if (receipt === null || text === null || judge === null || baseline === null) return null
  const baselineModel = fullName(baseline)
  const { record, progress } = receipt
  const { searched = false, sources = [] } = progress.web ?? {}
  if (record.routing_mode !== 'auto' || searched || sources.length > 0) return null
  const model = servingModel(record)
  // An own key of the account is a contract of the account, which no cap of the gateway holds.
  if (model === baselineModel || deps.ownKeys.of(caller) !== null) return null
  const ruled = getUnderPolicy(deps, caller, { ...asked, model: baselineModel }, headers)
  if (ruled.model !== baselineModel || modelBreach(deps.endpoints, judge, ruled.demands) !== null) return null
  const purse = new Purse(deps, caller, {
    requestId,
    accountId: caller.accountId,
    at: deps.clock.now(),
    queryType: receipt.plan.analysis.queryType,
    level: getLevel(
      deps.prompts.read(caller.accountId, asked, false).analysis.strongGain ?? 0,
      deps.shares ?? defaultLevelShares,
    ),
    model,
    effort: record.trace?.e ?? null,
    baselineModel,
    judgeModel: fullName(judge),
    servedMicrocents: record.billed_microcents,
  })
  let verdict: ShadowVerdict = 'none'
  let baselineMicrocents = 0
  try {
    const cap = asked.maxOutputTokens
    const maxOutputTokens = cap === null ? null : Math.min(cap, baseline.maxOutputTokens)
    const other = await purse.ask({ ...ruled, ...unaided, maxOutputTokens }, signal, caller.models)
    baselineMicrocents = purse.microcents
    const isFirst = deps.random() < 0.5
    const request = toJudgeRequest(judge, ruled, isFirst ? [text, other] : [other, text])
    verdict = readVerdict(await purse.ask(request, signal), isFirst)
  } catch (thrown) {
    if (!purse.isHeld || !(thrown instanceof GatewayError)) throw thrown
  } finally {
    const { microcents, isHeld } = purse
    if (isHeld) await endComparison(deps.database, purse.comparison, { verdict, microcents, baselineMicrocents })
  }
  return verdict
}
