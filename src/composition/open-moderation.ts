import type { Config } from '../config.ts'
import type { Catalogue } from '../core/models/models.ts'
import type { Log } from '../observability/log.ts'
import type { Endpoint } from '../pipeline/routing/candidate.ts'
import { complete } from '../pipeline/internal-completion.ts'
import { createSafety, type Safety, type SafetyDeps } from '../moderation/moderation.ts'
import { createHop } from '../web/hop.ts'
import { createResolver } from '../web/resolve.ts'
import type { Clock } from './clock.ts'
import type { Network } from './network.ts'

const longestJudgementTokens = 64

/** The safety layers; what they ask of others goes through the same network as everything else. */
export function openSafety(
  config: Config,
  deps: { clock: Clock; network: Network; log: Log; catalogue: Catalogue; endpoints: ReadonlyMap<string, Endpoint> },
  reading: Pick<SafetyDeps, 'digests' | 'readFeatures'>,
): Safety {
  const { clock, network, log } = deps
  const asking = { ...deps, deadlines: config.deadlines }
  return createSafety(
    {
      fetch: network.fetch,
      hop: createHop({ fetch: network.fetch, resolve: createResolver() }),
      monotonic: clock.monotonic,
      after: clock.after,
      log,
      ...reading,
      complete: (model, system, user, signal) =>
        complete(asking, model, { system, user, outputCap: longestJudgementTokens }, signal),
    },
    config.safety,
  )
}
