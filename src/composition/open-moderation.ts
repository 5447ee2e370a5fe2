import type { Config } from '../config.ts'
import type { Catalog } from '../core/models/models.ts'
import type { Clock, Log, Network } from '../core/ports.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import { completeInternally } from '../request/internal-completion.ts'
import { createSafety, type Moderation, type SafetyDeps } from '../text/moderation/layers/moderation.ts'
import { createHop } from '../web/hop.ts'
import { createResolver } from '../web/resolve.ts'

const longestJudgementTokens = 64

/** Opens the moderation layers. Their requests use the same network as all other requests. */
export function openSafety(
  config: Config,
  deps: {
    clock: Clock
    network: Network
    log: Log
    catalogue: Catalog
    endpoints: ReadonlyMap<string, ConfiguredProvider>
  },
  reading: Pick<SafetyDeps, 'digests' | 'classifier'>,
): Moderation {
  const { clock, network, log } = deps
  const asking = { ...deps, deadlines: config.deadlines }
  return createSafety(
    {
      fetch: network.fetch,
      hop: createHop({ fetch: network.fetch, resolve: createResolver(config.serviceDeadlines.nameResolutionMs) }),
      monotonic: clock.monotonic,
      after: clock.after,
      log,
      ...reading,
      complete: (model, system, user, signal) =>
        completeInternally(asking, model, { system, user, outputCap: longestJudgementTokens }, signal),
    },
    config.safety,
  )
}
