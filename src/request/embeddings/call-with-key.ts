/** Calls an upstream with a key of its pool. A failed key is replaced at once by another one, within a bound. */

import { isKeyFailure } from '../../core/chat/attempts.ts'
import { fullName } from '../../core/models/models.ts'
import type { Log } from '../../core/ports.ts'
import type { KeyClaim, NoKey, PoolKey } from '../../providers/keys/key-pool.ts'
import { maximumCapacityWaitMs, maximumKeyFailures, sleepUnlessAborted } from '../claim-key.ts'
import { reportKeyFailure } from '../report-attempt.ts'
import { type CallOptions, callUpstream, type UpstreamCallDeps, type UpstreamCallResult } from './upstream-call.ts'

type KeyedCall = Omit<CallOptions, 'claim'> & {
  readonly requestId: string /** Estimated tokens. */
  readonly tokens: number
}

type KeyedResult = UpstreamCallResult & {
  /** The pool had no other key: the failure says nothing about the model's health. */
  readonly isOfKeys: boolean
}

type KeyedCallDeps = UpstreamCallDeps & { readonly log: Pick<Log, 'info' | 'warn' | 'error'> }

/** Makes one call. Never throws. */
export async function callWithKey(deps: KeyedCallDeps, call: KeyedCall): Promise<KeyedResult> {
  const { endpoint, model } = call.host
  const { keys } = endpoint
  if (keys === undefined) return { ...(await callUpstream(deps, { ...call, claim: null })), isOfKeys: false }
  const except = new Set<PoolKey>()
  let last: UpstreamCallResult | null = null
  let waitedMs = 0
  while (!call.signal.aborted && except.size < maximumKeyFailures) {
    const claim = keys.claim({ model: fullName(model), tokens: call.tokens, except })
    if (claim.key === null) {
      const { reason, waitMs } = claim
      const isSoon = waitedMs + waitMs <= maximumCapacityWaitMs && deps.clock.monotonic() + waitMs < call.deadlineAt
      if (reason !== 'at_limit' || !isSoon) return { ...(last ?? withoutKey(claim)), isOfKeys: true }
      waitedMs += waitMs
      await sleepUnlessAborted(deps.clock, waitMs, call.signal)
      continue
    }
    last = await callOnce(deps, call, claim)
    if (last.result.kind !== 'failure' || !isKeyFailure(last.result.failure.kind)) return { ...last, isOfKeys: false }
    except.add(claim.key)
  }
  return { ...(last ?? withoutKey(null)), isOfKeys: true }
}

async function callOnce(deps: KeyedCallDeps, call: KeyedCall, claim: KeyClaim): Promise<UpstreamCallResult> {
  const called = await callUpstream(deps, { ...call, claim })
  const { result } = called
  if (result.kind === 'failure') {
    const { failure } = result
    claim.settle(0, { ...failure, status: called.status })
    if (isKeyFailure(failure.kind)) reportKeyFailure(deps, call.requestId, { candidate: call.host, failure, claim })
  } else claim.settle(result.inputTokens)
  return called
}

function withoutKey(claim: NoKey | null): UpstreamCallResult {
  const isAtLimit = claim?.reason === 'at_limit'
  return {
    status: null,
    droppedParameters: [],
    result: {
      kind: 'failure',
      failure: {
        kind: isAtLimit ? 'rate_limited' : 'credential_refused',
        blame: isAtLimit ? 'upstream' : 'us',
        retryable: true,
        retryAfterMs: isAtLimit ? claim.waitMs : null,
        detail: isAtLimit ? 'no capacity' : 'no usable key',
      },
    },
  }
}
