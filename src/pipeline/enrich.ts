import type { Ask } from '../core/chat.ts'
import type { Screened } from './moderate.ts'

declare const prepared: unique symbol

/** An ask that has been screened and holds all that its model is to see. Only such a one can be sent to a provider. */
export type Prepared = {
  readonly [prepared]: true
  readonly ask: Ask
  /** What the web added, and what that cost (integers of 1e-8 USD). */
  readonly web: {
    readonly searched: boolean
    readonly sources: readonly { readonly url: string; readonly title: string }[]
    readonly searchMicrocents: number
    readonly fetchMicrocents: number
  }
}

/**
 * The one way from a screened ask to a prepared one: here the web and prompt enhancement join a request. Neither is part
 * of this version, so what the caller wrote goes on as it is.
 */
export async function enrich(_deps: unknown, screened: Screened): Promise<Prepared> {
  const web = { searched: false, sources: [], searchMicrocents: 0, fetchMicrocents: 0 }
  return { ask: screened.ask, web } as unknown as Prepared
}
