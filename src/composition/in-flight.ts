import { createActiveSet, type RequestAbort } from '../core/chat/request-abort.ts'
import type { GatewayError } from '../core/validation/errors.ts'

/** Requests in progress. */
export type InFlight = {
  add(ending: RequestAbort): void
  delete(ending: RequestAbort): void
  endAll(reason: GatewayError): void
}

/** Creates an empty set. */
export function createInFlight(): InFlight {
  const endings = createActiveSet<RequestAbort>()
  return {
    add: endings.add,
    delete: endings.delete,
    endAll(reason) {
      for (const ending of [...endings]) ending.abort(reason)
    },
  }
}
