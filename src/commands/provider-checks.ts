/** Checks of the providers for `doctor`: their configuration, and on request one short request to each. */

import { localServers } from '../compose/models.ts'
import { openProviders } from '../compose/providers.ts'
import type { Config } from '../config/config.ts'
import { knownModels, offeredModels, type ProviderSettings } from '../config/providers.ts'
import { createRequestAbort } from '../core/chat/request-abort.ts'
import { blendedPrice, type Catalog, fullName, getDeprecation, type Model } from '../core/models/models.ts'
import { systemClock } from '../database/clock.ts'
import { discoverModels } from '../models/discover-models.ts'
import type { Endpoints } from '../providers/configured-provider.ts'
import { completeInternally } from '../request/internal-completion.ts'
import { systemNetwork } from '../web/network.ts'
import { type Check, failedCheck, okCheck, providerFailureCheck, warningCheck } from './checks.ts'

const callMs = 30_000
const outputCap = 64

/** Returns one check for each configured provider. Calls none of them unless `isCalling`. */
export async function providerChecks(config: Config, isCalling: boolean): Promise<Check[]> {
  if (config.providers.length === 0)
    return [
      warningCheck(
        'providers',
        'simulated: no key is configured',
        'Set a key such as OPENAI_API_KEY. See docs/providers.md.',
      ),
    ]
  if (!isCalling)
    return config.providers.map(({ id, baseUrl }) => okCheck(`provider ${id}`, `${baseUrl}; not called (--providers)`))
  const { endpoints } = await openProviders(config, { clock: systemClock, network: systemNetwork })
  const known = [...knownModels(config), ...(await discovered(config, endpoints))]
  return Promise.all(
    config.providers.map(settings => {
      const own = offeredModels([settings], known, config.hosts)
      return providerCheck({ config, endpoints, catalog: own }, settings)
    }),
  )
}

/** Models that local servers list. */
async function discovered(config: Config, endpoints: Endpoints): Promise<readonly Model[]> {
  const log = { info() {}, warn() {} }
  const deps = {
    clock: systemClock,
    network: systemNetwork,
    log,
    timeoutMs: config.serviceDeadlines.discoveryMs,
  }
  const discovery = await discoverModels(deps, localServers(config, endpoints), () => {})
  discovery.stop()
  return discovery.models()
}

async function providerCheck(
  parts: { readonly config: Config; readonly endpoints: Endpoints; readonly catalog: Catalog },
  { id, discovers, baseUrl }: ProviderSettings,
): Promise<Check> {
  const { config, endpoints, catalog } = parts
  const name = `provider ${id}`
  const model = cheapest(catalog.list)
  if (model === null)
    return discovers === true
      ? failedCheck(name, `${baseUrl} lists no models`, 'Start the server and load a model.')
      : okCheck(name, 'not called: it serves no chat model')
  const abort = createRequestAbort()
  const cancel = systemClock.after(callMs, () => abort.abort(new Error('timeout')))
  const startedAt = systemClock.monotonic()
  const deps = { clock: systemClock, network: systemNetwork, catalog, endpoints, deadlines: config.deadlines }
  const question = { system: 'Answer with one word.', user: 'Say: ready', outputCap, demands: null }
  try {
    await completeInternally(deps, fullName(model), question, abort.signal)
    return okCheck(name, `${fullName(model)} answered in ${Math.round(systemClock.monotonic() - startedAt)} ms`)
  } catch (cause) {
    return providerFailureCheck(name, cause instanceof Error ? cause.message : 'unavailable', getDetail(cause))
  } finally {
    cancel()
  }
}

/** Returns the cheapest model that is not deprecated. */
function cheapest(models: readonly Model[]): Model | null {
  const today = new Date().toISOString().slice(0, 10)
  const current = models.filter(model => getDeprecation(model, today) === 'current')
  const [first] = current.toSorted((model, other) => blendedPrice(model.pricing) - blendedPrice(other.pricing))
  return first ?? null
}

/** Returns the status and the code of the provider; never its free text. */
function getDetail(cause: unknown): string {
  const failure: unknown = cause instanceof Error ? cause.cause : null
  return typeof failure === 'object' && failure !== null && 'detail' in failure ? String(failure.detail) : ''
}
