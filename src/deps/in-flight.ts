import type { Ending } from '../core/ending.ts'
import type { GatewayError } from '../core/errors.ts'
import { createRoster } from '../core/roster.ts'

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
