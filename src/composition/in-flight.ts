import type { Ending } from '../core/chat/request-abort.ts'
import type { GatewayError } from '../core/validation/errors.ts'
import { createRoster } from '../core/limits/active-set.ts'

/** The requests now being answered. */
export type InFlight = {
  add(ending: Ending): void
  delete(ending: Ending): void
  endAll(reason: GatewayError): void
}

/** None yet. */
export function createInFlight(): InFlight {
  const endings = createRoster<Ending>()
  return {
    add: endings.add,
    delete: endings.delete,
    endAll(reason) {
      for (const ending of [...endings]) ending.abort(reason)
    },
  }
}
