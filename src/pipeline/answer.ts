/**
 * One chat request, top to bottom. Whatever endpoint it came through and however it is delivered, this is its story; the
 * files beside this one are its steps.
 */

import type { Deps } from '../composition/deps.ts'
import type { ChatEvents, ChatRequest } from '../core/chat/chat.ts'
import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { planWebAccess } from '../core/web/web-plan.ts'
import { admit } from './admit.ts'
import { call } from './call.ts'
import { enhance, enhancedInputTokens } from './enhance.ts'
import { enrich, offerOf } from './enrich.ts'
import { moderate } from './moderate-input.ts'
import { moderateOutput } from './moderate-output.ts'
import { createRequestContext } from './request-context.ts'
import { route } from './routing/route.ts'
import { checkpoint, settle } from './settle.ts'

/**
 * Answers one ask as batches of events: `opened`, content, `finish` per choice, and `done` once the usage record is
 * durable. Throws `GatewayError`; before the first batch it becomes a status, after it an `error` event. Ending the
 * generator or aborting `request.signal` ends the upstream call, and what arrived is settled.
 */
export async function* answer(
  deps: Deps,
  caller: Caller,
  ask: ChatRequest,
  request: {
    readonly id: string
    readonly signal: RequestAbortSignal
    readonly trace?: TraceParent | null
    /** Awaited once the usage record is durable. */
    readonly settled?: (record: UsageRecord) => Promise<void>
  },
): ChatEvents {
  const tally = createRequestContext(deps.clock, request.id)
  tally.trace = request.trace ?? null
  // Reads the caller's own words only, so that no fetched text can move the choice; in process, so nothing is spent yet.
  const { reading, digest } = deps.prompts.read(caller.accountId, ask)
  tally.promptDigest = digest
  const web = planWebAccess(ask, reading, caller, offerOf(deps))
  const inputTokens = enhancedInputTokens(deps, ask, reading)
  const wanted = route(deps, { caller, ask, reading, inputTokens, web })
  tally.begin('admit')
  const { seat, plan } = await admit(deps, caller, ask, wanted, tally)
  tally.checkpoint = () => checkpoint(deps, caller, ask, plan, seat, tally)
  // At once: a request without one leaves no row, should the process die.
  tally.checkpoint()
  let receipt: Awaited<ReturnType<typeof settle>>
  try {
    tally.begin('moderate')
    const screened = moderate(deps, ask, request)
    tally.begin('enhance')
    const enhanced = await enhance(deps, screened, plan, tally)
    tally.begin('enrich')
    const prepared = await enrich(deps, caller, enhanced, plan, tally, screened.signal)
    tally.begin('call')
    tally.secrets = screened.secrets
    yield* moderateOutput(deps, ask.stream, screened, call(deps, prepared, plan, tally, screened.signal), tally)
    tally.outcome = 'completed'
  } catch (failure) {
    tally.fail(failure, request.signal)
    throw failure
  } finally {
    tally.begin('settle')
    // Success, refusal, failure, disconnect: all end here, once.
    receipt = await settle(deps, caller, ask, plan, seat, tally, request.settled)
  }
  // Only now is the answer over: its usage record is on disk, so a caller who saw the end is in the ledger.
  yield [{ type: 'done', receipt }]
}
