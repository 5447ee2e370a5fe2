import { Elysia } from 'elysia'
import { attributions } from '../../core/models/catalog.ts'
import {
  autoModel,
  type Catalog,
  type Deprecation,
  deprecationOf,
  fullName,
  type Model,
  type Prices,
} from '../../core/models/models.ts'
import type { HealthState } from '../../core/routing/circuit-breaker.ts'
import { dayMs, formatDay } from '../../core/text/utc-days.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { policies } from '../../http/policies.ts'
import { type RouteDocs, withRouteDocs } from '../../http/route-docs.ts'
import {
  type CompatibleModel,
  compatibleModelListShape,
  compatibleModelShape,
  modelHealthListShape,
  modelListShape,
  type ShownModel,
} from './schemas.ts'

export type ModelsDeps = {
  readonly catalogue: Catalog
  readonly simulatedProviders: ReadonlySet<string>
  /** `model` is `provider/model`; `since` an ISO time, null = always so. */
  readonly health: {
    report(): readonly { readonly model: string; readonly state: HealthState; readonly since: string | null }[]
  }
  readonly clock: { now(): number }
}

/** A body that many will ask for, written once, with the tag by which a client says that it has it already. */
type Page = { readonly body: string; readonly etag: string }

/**
 * The lists of models: `GET /api/v1/models` with prices and capabilities, `GET /v1/models[/{id}]` in the compatible shape,
 * `GET /api/v1/models/health`. All without a key, readable from any web page, served from memory.
 */
export function models({ catalogue, simulatedProviders, health, clock }: ModelsDeps) {
  const today = pagesOfToday(catalogue, simulatedProviders, clock)

  return new Elysia({ name: 'models' })
    .get(
      '/api/v1/models',
      ({ request }) => send(request, today().own),
      route({ summary: 'Models and their prices', answer: modelListShape, isTagged: true }),
    )
    .get(
      '/api/v1/models/health',
      () => Response.json({ data: health.report() }, { headers: notKept }),
      route({ summary: 'Health of the models', answer: modelHealthListShape }),
    )
    .get(
      '/v1/models',
      ({ request }) => send(request, today().compatible),
      route({
        summary: 'Models, in the compatible shape',
        description: '`gateway-ai`, which lets the prompt choose, comes first.',
        answer: compatibleModelListShape,
        isTagged: true,
      }),
    )
    .get(
      '/v1/models/*',
      ({ request }) => send(request, today().one(nameIn(request.url))),
      route({
        summary: 'One model, in the compatible shape',
        description: 'By its id, an alias or `provider/model`, with the slash as it is or as `%2F`.',
        answer: compatibleModelShape,
        isTagged: true,
        errors: ['model_not_found'],
      }),
    )
}

function route(told: RouteDocs) {
  return withRouteDocs(policies.open, told)
}

const notKept = { 'cache-control': 'no-store', 'access-control-allow-origin': '*' }

/** The pages depend on the day alone, since a model's deprecation does: they are written at its first request. */
function pagesOfToday(catalogue: Catalog, simulated: ReadonlySet<string>, clock: { now(): number }) {
  let built: { readonly day: number; readonly pages: ReturnType<typeof pagesOf> } | null = null
  return () => {
    const day = formatDay(clock.now())
    if (built?.day !== day) built = { day, pages: pagesOf(catalogue, simulated, new Date(day * dayMs).toISOString()) }
    return built.pages
  }
}

function pagesOf(catalogue: Catalog, simulated: ReadonlySet<string>, today: string) {
  const served = catalogue.list.filter(model => deprecationOf(model, today) !== 'retired')
  const auto = compatibleEntry(autoModel, autoModel, firstReleaseDate, null)
  const entries = new Map(catalogue.list.map(model => [model, compatibleModel(model, catalogue)]))
  const single = new Map<unknown, Page>([...entries].map(([model, entry]) => [model, page(entry)]))
  const autoPage = page(auto)
  return {
    own: page({
      data: catalogue.list.map(model => shown(model, deprecationOf(model, today), simulated.has(model.provider))),
      attributions,
    }),
    compatible: page({ object: 'list', data: [auto, ...served.map(model => entries.get(model))] }),
    one(name: string): Page {
      const found = name.toLowerCase() === autoModel ? autoPage : single.get(catalogue.resolve(name))
      if (found !== undefined) return found
      throw new GatewayError('model_not_found', 'There is no such model. GET /v1/models lists those there are.', {
        param: 'model',
      })
    },
  }
}

function page(content: unknown): Page {
  const body = JSON.stringify(content)
  return { body, etag: `"${Bun.hash(body).toString(36)}"` }
}

/** The page, or 304 where the client holds it. */
function send(request: Request, { body, etag }: Page): Response {
  const headers = { etag, 'cache-control': 'public, max-age=60', 'access-control-allow-origin': '*' }
  if (holds(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers })
  return new Response(body, { headers: { ...headers, 'content-type': 'application/json' } })
}

function holds(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  return ifNoneMatch.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

/** What follows `/v1/models/` in the address: ids hold slashes, which clients write as they are or as `%2F`. */
function nameIn(url: string): string {
  const path = new URL(url).pathname
  try {
    return decodeURIComponent(path.slice('/v1/models/'.length))
  } catch {
    return ''
  }
}

/** When `gateway-ai` first answered. */
const firstReleaseDate = '2026-02-10'

function compatibleModel(model: Model, catalogue: Catalog): CompatibleModel {
  // A bare id that two providers share belongs to the first; the other is listed by its full name.
  const id = catalogue.resolve(model.id) === model ? model.id : fullName(model)
  return compatibleEntry(id, model.provider, model.releaseDate, model.deprecationDate)
}

function compatibleEntry(
  id: string,
  owner: string,
  releaseDate: string | null,
  deprecationDate: string | null,
): CompatibleModel {
  const created = releaseDate === null ? 0 : Date.parse(releaseDate) / 1000
  return { id, object: 'model', created, owned_by: owner, shutdown_date: deprecationDate }
}

function shown(model: Model, status: Deprecation, simulated: boolean): ShownModel {
  const { capabilities, pricing, evidence, figures } = model
  const speed = evidence?.speed ?? null
  return {
    id: model.id,
    name: fullName(model),
    provider: model.provider,
    display_name: model.displayName,
    tier: model.tier,
    pricing: {
      currency: 'USD',
      ...shownPrices(pricing),
      long_context: pricing.longContext && {
        above_input_tokens: pricing.longContext.aboveInputTokens,
        ...shownPrices(pricing.longContext),
      },
    },
    context_window: model.contextWindow,
    max_input_tokens: model.maxInputTokens,
    max_output_tokens: model.maxOutputTokens,
    capabilities: {
      vision: capabilities.vision,
      files: capabilities.files,
      tools: capabilities.tools,
      json_schema: capabilities.jsonSchema,
      reasoning: capabilities.reasoning,
      streaming: capabilities.streaming,
      web_search: capabilities.webSearch,
    },
    reasoning_efforts: [...model.parameters.efforts],
    aliases: [...model.aliases],
    deprecated: model.deprecated,
    deprecation_date: model.deprecationDate,
    status,
    successor: model.successor,
    release_date: model.releaseDate,
    quality_scores: model.qualityScores.map(score => ({ ...score, attribution: attributions[score.metric] })),
    speed: speed && {
      output_tokens_per_second: speed.tokensPerSecond,
      time_to_first_token_seconds: speed.firstTokenSeconds,
      variant: speed.variant,
      source: speed.source,
      date: speed.date,
      attribution: attributions.artificial_analysis_intelligence_index,
    },
    routing: {
      quality: Number(figures.quality.toFixed(4)),
      output_tokens_per_second: figures.tokensPerSecond,
      time_to_first_token_seconds: figures.firstTokenMs / 1000,
      estimated: figures.estimated || speed === null,
    },
    ...(simulated ? { simulated } : {}),
  }
}

function shownPrices(prices: Prices) {
  return {
    input_per_mtok: prices.input,
    output_per_mtok: prices.output,
    cached_input_per_mtok: prices.cachedInput,
    cache_write_per_mtok: prices.cacheWrite,
  }
}
