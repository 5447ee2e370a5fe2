/** Opens everything that needs no database: catalogs, prompt analysis, moderation and web access. */
import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { discoveredModel, presets } from '../config/presets.ts'
import { knownModels } from '../config/providers.ts'
import type { SearchSettings } from '../config/services.ts'
import type { Message } from '../core/chat/chat.ts'
import { webLimits } from '../core/chat/web-sources.ts'
import { toModel } from '../core/models/configured-models.ts'
import { type EmbeddingCatalog, publishedEmbeddingModels, toEmbeddingModel } from '../core/models/embedding-models.ts'
import {
  buildCatalog,
  type Catalog,
  fullName,
  getDeprecation,
  type Model,
  unknownPrices,
} from '../core/models/models.ts'
import type { SwitchesByModel } from '../core/models/switches.ts'
import { noPolicy, withPolicy } from '../core/policy/constraints.ts'
import type { Log } from '../core/ports.ts'
import { createKeyedDigests } from '../core/text/keyed-digests.ts'
import { createAnalysisCache } from '../learning/recent-prompts.ts'
import { type DiscoveryDeps, discoverModels, type LocalServer } from '../models/discover-models.ts'
import { withHostChoices, withHosts } from '../models/model-hosts.ts'
import { ownProcess } from '../models/receivers.ts'
import type { ConfiguredProvider, Endpoints } from '../providers/configured-provider.ts'
import { modelsUrl } from '../providers/openai/request.ts'
import { completeInternally, findModelBreach } from '../request/internal-completion.ts'
import type { Simulator } from '../simulator/simulator.ts'
import { createModeration, type Moderation, type ModerationParts } from '../text/moderation/layers/moderation.ts'
import { openPromptAnalyzer } from '../text/readers.ts'
import { createTokenizer } from '../text/tokens/tokenizer.ts'
import { createHop, createResolver } from '../web/hop.ts'
import { createPageReader } from '../web/page-fetcher.ts'
import { brave, braveBaseUrl, createSearch, type SearchBackEnd, searxng, tavily, tavilyBaseUrl } from '../web/search.ts'
import type { Web } from '../web/web-plan.ts'
import type { Process } from './process.ts'
import { isSimulated } from './providers.ts'

/** The part of the configuration that decides which models the gateway offers. */
type CatalogConfig = Pick<Config, 'publishedModels' | 'modelChanges' | 'extraModels' | 'embeddingModels' | 'hosts'>

/** Returns the configured servers whose models are discovered, with their current keys, which a reload replaces. */
export function localServers(
  { providers }: Pick<Config, 'providers'>,
  endpoints: ReadonlyMap<string, Pick<ConfiguredProvider, 'access'>>,
): readonly LocalServer[] {
  return providers.flatMap(({ id, baseUrl, discovers }) => {
    const preset = discovers ? presets.find(other => other.id === id) : undefined
    if (preset === undefined) return []
    return {
      id,
      url: modelsUrl(baseUrl),
      apiKey: () => endpoints.get(id)?.access.apiKey ?? null,
      toModel: (name, contextWindow) => toModel(id, discoveredModel(preset, name, contextWindow), unknownPrices),
    }
  })
}

/**
 * Opens the model catalog: the published models with the changes of the configuration, plus configured models of known
 * providers, each with its hosts, and the models that local servers list. `undo` receives the end of the discovery.
 */
export async function openCatalog(
  config: Config,
  { endpoints, ...deps }: Omit<DiscoveryDeps, 'timeoutMs'> & { readonly endpoints: Endpoints },
  undo: AsyncDisposableStack,
) {
  let used: CatalogConfig = config
  let discovered: () => readonly Model[] = () => []
  let switches: SwitchesByModel = new Map()
  const isEnabled = (model: Pick<Model, 'id' | 'provider'>) => switches.get(fullName(model))?.enabled !== false
  const findModels = () => withHosts([...knownModels(used), ...discovered()], used.hosts, id => endpoints.has(id))
  const build = () => buildCatalog(withHostChoices(findModels(), switches), isEnabled)
  const embeds = ({ provider }: Pick<Model, 'provider'>) => endpoints.get(provider)?.provider.embeddings !== undefined
  const findEmbeddingModels = () => {
    const configured = used.embeddingModels.map(({ provider, row }) => toEmbeddingModel(provider, row))
    return [...publishedEmbeddingModels, ...configured].filter(embeds)
  }
  const buildEmbeddings = () => buildCatalog(findEmbeddingModels(), isEnabled)
  let current = build()
  let embeddings = buildEmbeddings()
  const renew = (): Catalog => {
    const before = current
    current = build()
    embeddings = buildEmbeddings()
    return before
  }
  const servers = localServers(config, endpoints)
  if (servers.length > 0) {
    const discovery = await discoverModels({ ...deps, timeoutMs: config.serviceDeadlines.discoveryMs }, servers, renew)
    undo.defer(discovery.stop)
    discovered = discovery.models
    renew()
  }
  /** Its models can be replaced while the gateway runs. Requests in progress keep the models they chose. */
  const catalog: Catalog = {
    get list() {
      return current.list
    },
    resolve: name => current.resolve(name),
    findDisabled: name => current.findDisabled?.(name) ?? null,
  }
  const embeddingCatalog: EmbeddingCatalog = {
    get list() {
      return embeddings.list
    },
    resolve: name => embeddings.resolve(name),
    findDisabled: name => embeddings.findDisabled?.(name) ?? null,
  }
  return {
    catalog,
    embeddingCatalog,
    /** Returns all models as configured, also those that are switched off; embedding models last. */
    configuredModels: (): readonly Model[] => [...findModels(), ...findEmbeddingModels()],
    useSwitches(next: SwitchesByModel): void {
      switches = next
      renew()
    },
    /** Replaces the models by those of another configuration. Returns the previous catalog. */
    reload(next: CatalogConfig): Catalog {
      used = next
      return renew()
    },
  }
}

/** Logs the models of a new catalog that were not deprecated in the one before. `todayIso` is an ISO time. */
export function announceDeprecations(
  log: Pick<Log, 'warn'>,
  { before, after, todayIso }: { readonly before: Catalog; readonly after: Catalog; readonly todayIso: string },
): void {
  for (const model of after.list) {
    const state = getDeprecation(model, todayIso)
    const old = before.resolve(fullName(model))
    if (state === 'current' || (old !== null && getDeprecation(old, todayIso) === state)) continue
    log.warn('model_deprecated', {
      model: fullName(model),
      state,
      until: model.deprecationDate,
      successor: model.successor,
    })
  }
}

type ContentParts = Pick<Process, 'clock' | 'network' | 'log' | 'pages'> & {
  readonly catalog: Catalog
  readonly endpoints: Endpoints
  readonly simulator: Simulator | null
}

/** Opens prompt analysis, moderation and web access. `undo` receives the functions that close them. */
export function openContent(config: Config, parts: ContentParts, undo: AsyncDisposableStack) {
  const { clock, network, log } = parts
  const tokenizer = createTokenizer(config.serviceDeadlines.tokenizerMs, clock)
  undo.defer(() => tokenizer.close())
  const digests = createKeyedDigests(randomBytes(32))
  const readers = openPromptAnalyzer()
  const { read, explain, classifier } = readers
  const resolve = createResolver(config.serviceDeadlines.nameResolutionMs)
  const moderationParts = (from: Config): ModerationParts => ({
    fetch: network.fetch,
    hop: createHop({ fetch: network.fetch, resolve }),
    monotonic: clock.monotonic,
    after: clock.after,
    log,
    digests,
    classifier,
    findModelBreach: (name, demands) => findModelBreach(parts, name, demands),
    complete: (model, system, user, signal) =>
      completeInternally(
        { ...parts, deadlines: from.deadlines },
        model,
        // Requests whose constraints exclude the model are rejected before.
        { system, user, outputCap: longestJudgementTokens, demands: null },
        signal,
      ),
  })
  const moderation = createModeration(moderationParts(config), config.moderation)
  undo.defer(() => moderation.close())
  const web = openWeb(config, { ...parts, moderation })
  undo.defer(() => web.pages.close())
  let settings = config.moderation
  const replaceModeration = (next: Config) => {
    if (Bun.deepEquals(settings, next.moderation)) return
    settings = next.moderation
    moderation.replace(moderationParts(next), settings)
  }
  const prompts = createAnalysisCache(readers, digests)
  return { content: { tokenizer, read, explain, moderation, web, prompts }, replaceModeration }
}

const longestJudgementTokens = 64

/** Opens page fetches and web search. Moderation applies to pages as it does to prompts. */
function openWeb(
  config: Config,
  { network, clock, log, endpoints, simulator, moderation, pages }: ContentParts & { readonly moderation: Moderation },
): Web {
  const deadlines = config.serviceDeadlines
  const isListed = pages.isListed ?? moderation.isListed
  const simulated = simulator === null ? [] : [searxng(simulator.urls.search)]
  const configured = config.web.search.map(getBackEnd)
  const isSimulation = () => configured.length === 0 && isSimulated(endpoints)
  const policy = withPolicy(noPolicy, config.web.policy)
  const isAllowed = (message: Message) => moderation.screenMessages([message]).verdict === 'allow'
  return {
    search: createSearch({
      get backEnds() {
        return isSimulation() ? simulated : configured
      },
      get policy() {
        return isSimulation() ? ownProcess : policy
      },
      fetch: network.fetch,
      clock,
      log,
      isListed,
      budgetMs: deadlines.searchMs,
    }),
    pages: createPageReader({
      resolve: createResolver(deadlines.nameResolutionMs),
      clock,
      deadlines,
      maximumCharacters: webLimits.pageCharacters,
      ...pages,
      isListed,
    }),
    prices: config.web.prices,
    screenPage: text => isAllowed({ role: 'tool', callId: '', text }),
    screen: text => isAllowed({ role: 'user', content: [{ type: 'text', text }], name: null }),
  }
}

function getBackEnd(settings: SearchSettings): SearchBackEnd {
  switch (settings.id) {
    case 'searxng':
      return searxng(settings.baseUrl)
    case 'brave':
      return brave({ apiKey: settings.apiKey, baseUrl: settings.baseUrl ?? braveBaseUrl })
    case 'tavily':
      return tavily({ apiKey: settings.apiKey, baseUrl: settings.baseUrl ?? tavilyBaseUrl })
  }
}
