/**
 * One request, a chat or embeddings, from beginning to end: reserves, runs the steps beside this file, and settles once, however it ends.
 * All endpoints receive its response in the same way.
 */

import { type ChatRequest, strictestPolicy } from '../core/chat/chat.ts'
import type { ResponseOutput, ResponseSummary } from '../core/chat/chat-events.ts'
import { type RequestAbortSignal, unlessAborted } from '../core/chat/request-abort.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { RecentPrompts } from '../learning/recent-prompts.ts'
import type { RequestAnalysis } from '../text/analysis/prompt-analysis.ts'
import { estimateInputTokens } from '../text/tokens/tokens.ts'
import { planWebAccess } from '../web/web-plan.ts'
import { type AdmitDeps, admit, rejoin } from './admit.ts'
import type { AttemptRun, CallRequest } from './attempt-run.ts'
import { type PlanDecisionsDeps, planDecisions } from './decisions.ts'
import { type EnhanceDeps, enhance, planRequestEnhancement } from './enhance.ts'
import { type EnrichDeps, enrich, getOffer, type OfferDeps } from './enrich.ts'
import { findHedging, race, startHedging } from './hedge.ts'
import { emptyAnswer, judge } from './judge.ts'
import { type ModerateDeps, moderate, moderateEmbedded } from './moderate.ts'
import { planEmbeddings } from './plan-embeddings.ts'
import { type AdmittedRequest, findFailure, Progress } from './progress.ts'
import { joinDemands } from './routing/constrained.ts'
import { type RouteDeps, route } from './routing/route.ts'
import { type RuleHeaders, type RulesDeps, underRules } from './routing/under-rules.ts'
import { type OutputModerationDeps, ScreenedOutput } from './screened-output.ts'
import { type CheckpointDeps, checkpoint, type SettleDeps, settle } from './settle.ts'
import { startAttempt } from './start-attempt.ts'
import { type CallDeps, CallState, select } from './ways.ts'

/** Dependencies of all steps, as each declares its own. */
export type AnswerDeps = RouteDeps &
  RulesDeps &
  PlanDecisionsDeps &
  AdmitDeps &
  ModerateDeps &
  EnhanceDeps &
  EnrichDeps &
  CallDeps &
  OutputModerationDeps &
  CheckpointDeps &
  SettleDeps & {
    readonly prompts: Pick<RecentPrompts, 'read'>
    /** Providers for callers with own keys; null = the caller has none. */
    readonly ownKeys: { of(caller: Caller): Pick<AnswerDeps, 'endpoints' | 'health'> | null }
    readonly observe: { admitted(progress: Progress): void }
  }

/**
 * Returns the request under the policies and the constraints of its account, project and key, which it can only
 * narrow, and under the rules of operator and account. Throws `forbidden` if a rule denies it.
 */
export function getUnderPolicy(
  deps: RulesDeps,
  caller: Caller,
  request: ChatRequest,
  headers: RuleHeaders | undefined,
): ChatRequest {
  const narrowed = narrowedBy(caller, request)
  const hasRules = caller.rules !== undefined || (deps.rules?.operator.length ?? 0) > 0
  return hasRules ? underRules(deps, caller, narrowed, headers) : narrowed
}

/** Returns the request under the policies of its account and key. */
function narrowedBy(caller: Pick<Caller, 'fallback' | 'continuation' | 'demands'>, request: ChatRequest): ChatRequest {
  if (caller.fallback === undefined && caller.continuation === undefined && caller.demands === undefined) return request
  const { fallback, continuation } = request
  const demands = joinDemands(caller, request.demands)
  return {
    ...request,
    fallback: strictestPolicy(caller.fallback, fallback),
    continuation: caller.continuation === undefined ? continuation : strictestPolicy(caller.continuation, continuation),
    ...(demands === undefined ? {} : { demands }),
  }
}

/** A request as its route received it. */
export type AnswerRequest = {
  readonly id: string
  readonly signal: RequestAbortSignal
  /** Receives the response. */
  readonly output: ResponseOutput
  /** Read by rules; absent = none. */
  readonly headers?: RuleHeaders
  readonly trace?: TraceParent | null
  /** Called when the request is admitted: from then on it has a usage record, however it ends. */
  readonly admitted?: () => void
  /** Awaited when the usage record is durable. */
  readonly settled?: (record: UsageRecord) => Promise<void>
}

/** Plans a chat by its analysis, which is of the client's own text only, so that no fetched text can change the choice. */
export function planChat(
  deps: RouteDeps & OfferDeps & Parameters<typeof planRequestEnhancement>[0],
  caller: Caller,
  request: ChatRequest,
  analysis: RequestAnalysis,
) {
  const web = planWebAccess(request, analysis, caller, getOffer(deps, request.demands))
  const enhancement = planRequestEnhancement(deps, request, analysis)
  const inputTokens = enhancement?.inputTokens ?? estimateInputTokens(request)
  return { plan: route(deps, { caller, request, analysis, inputTokens, web }), enhancement }
}

function planAnalyzed(deps: AnswerDeps, caller: Caller, request: ChatRequest) {
  const canSearch = deps.web.search.isThere(request.demands)
  const { analysis, digest: promptDigest } = deps.prompts.read(caller.accountId, request, canSearch)
  return { request, promptDigest, ...planChat(deps, caller, request, analysis) }
}

/**
 * Answers one request and writes its response: `opened`, content, `finish` per choice, and `done` when the usage record is
 * durable. Throws `GatewayError`; before the first content it becomes a status, after it an `error` event. Aborting
 * `request.signal` aborts the upstream call, and the received output is settled.
 */
export async function answer(
  deps: AnswerDeps,
  caller: Caller,
  asked: ChatRequest,
  request: AnswerRequest,
): Promise<void> {
  const { clock } = deps
  const requestId = request.id
  const startedAt = clock.now()
  const startedMonotonic = clock.monotonic()
  const { embedding } = asked
  const own = deps.ownKeys.of(caller)
  const planning = own === null ? deps : { ...deps, ...own }
  const ruled = getUnderPolicy(deps, caller, asked, request.headers)
  // Runs in process, so nothing is billed yet.
  const planned =
    embedding !== undefined
      ? await planEmbeddings(planning, caller, ruled, embedding)
      : asked.dialect === 'decisions'
        ? planDecisions(planning, caller, ruled)
        : planAnalyzed(planning, caller, ruled)
  const { request: question, plan: wanted, promptDigest, enhancement } = planned
  const admittedFrom = clock.monotonic()
  const accepted = await admit(deps, { requestId, caller, request: question, plan: wanted })
  let admitted: AdmittedRequest = {
    requestId,
    startedAt,
    startedMonotonic,
    trace: request.trace ?? null,
    promptDigest,
    caller,
    request: question,
    plan: accepted.plan,
  }
  const progress = new Progress(accepted.reservation, { route: startedMonotonic, admit: admittedFrom })
  const { stages } = progress
  deps.observe.admitted(progress)
  request.admitted?.()
  const noteUsage = () => checkpoint(deps, admitted, progress)
  // Written immediately: a request without a checkpoint leaves no usage record if the process dies.
  noteUsage()
  let receipt: ResponseSummary
  try {
    if (accepted.note !== undefined) {
      const joined = await rejoin(deps, admitted, accepted, () => planAnalyzed(planning, caller, ruled).plan)
      progress.reservation = joined.reservation
      admitted = { ...admitted, plan: joined.plan }
    }
    const { plan } = admitted
    stages.moderate = clock.monotonic()
    const screened = await (question.embedding === undefined
      ? moderate(deps, question, request)
      : moderateEmbedded(deps, question, question.embedding, request))
    const { signal, secrets } = screened
    stages.enhance = clock.monotonic()
    const enhanced = await enhance(deps, screened, { requestId, request: question, plan, enhancement })
    progress.enhancement = enhanced.enhancement
    stages.enrich = clock.monotonic()
    const prepared = await enrich(deps, enhanced, { accountId: caller.accountId, plan: plan.web, signal })
    progress.web = prepared.web ?? accepted.web
    stages.call = clock.monotonic()
    const calling = { ...admitted, prepared, secrets, signal, checkpoint: noteUsage }
    const sent = { verdict: screened.verdict, sources: prepared.web?.sources ?? [] }
    // Health is reported by the key that was called.
    const calls = own === null ? deps : { ...deps, endpoints: own.endpoints }
    await call(calls, calling, progress, new ScreenedOutput(deps, question.stream, sent, request.output))
    progress.outcome = 'completed'
  } catch (thrown) {
    const failure = findFailure(thrown, request.signal)
    if (failure !== null) {
      progress.outcome = failure.outcome
      progress.errorCode = failure.errorCode
      progress.decision = failure.decision
    }
    throw thrown
  } finally {
    stages.settle = clock.monotonic()
    // Success, failure and disconnect all end here, once.
    receipt = await settle(deps, admitted, progress, request.settled)
  }
  // The terminal event follows the durable usage record, so a client that received it is in the ledger.
  request.output.add({ type: 'done', receipt })
  void request.output.flush()
}

/**
 * Runs the attempt loop and writes the response: `opened` and content, then the finish reasons of a complete output. Ends
 * early at a hit of the output's moderation. `progress.response` is the response to be billed. Throws `GatewayError` if no candidate answered, if the output ended early after its first content was sent, and
 * when `signal` aborts.
 */
async function call(deps: CallDeps, request: CallRequest, progress: Progress, output: ScreenedOutput): Promise<void> {
  const state = new CallState(deps, request, progress)
  progress.upstreamMs = request.prepared.waitedMs
  startHedging(state)
  const active = deps.health.beginRequest()
  try {
    const last = await attempts(state, output)
    if (last !== null) {
      if (output.verdict !== null) await output.judged()
      last.end(output.sink)
      // A complete output is settled whether or not the client has read it.
      void output.flush()
    }
  } catch (thrown) {
    output.release()
    throw thrown
  } finally {
    active.end()
    const hit = output.hit()
    progress.isFiltered = hit !== null
    if (hit !== null) progress.decision = { layer: hit.layer, category: hit.category, param: null }
  }
}

/**
 * Runs the attempt loop: `select` (`ways.ts`) returns the next way, `startAttempt` tries it, and `judge` decides whether to
 * go on. A JSON client receives only complete output, so every failure can still fall back. Returns the serving attempt,
 * whose end is not sent yet; null = the output's moderation has ended it.
 */
async function attempts(state: CallState, output: ScreenedOutput): Promise<AttemptRun | null> {
  for (;;) {
    const way = await select(state)
    if (way === null) break
    const started = startAttempt(state, way)
    const hedge = findHedging(state, started)
    const run = hedge === null ? started : await race(state, hedge, started)
    if (run === 'stop') break
    if (run === 'next') continue
    try {
      if (!(await read(state, run, output))) return null
    } finally {
      run.close()
    }
    const step = judge(state, run)
    if (step === 'stop') break
    if (step === 'next') continue
    return run
  }
  return emptyAnswer(state)
}

/** Reads a response to its end and writes what may be sent; false = the output's moderation has ended it. */
async function read({ request }: CallState, run: AttemptRun, output: ScreenedOutput): Promise<boolean> {
  const { signal } = request
  for (;;) {
    if (run.maySend()) {
      if (run.seam === null) run.commit()
      if (output.verdict !== null) await unlessAborted(output.judged(), signal)
      run.send(output.sink)
      const isSlow = output.flush()
      if (isSlow !== null) await unlessAborted(isSlow, signal)
      if (output.hit() !== null) return false
    }
    if (run.response.isOver()) return true
    if (!(await run.attempt.next())) return true
    run.add()
  }
}
