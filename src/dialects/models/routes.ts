import { Elysia } from 'elysia'
import type { EmbeddingCatalog, EmbeddingModel } from '../../core/models/embedding-models.ts'
import { type Catalog, fullName, getDeprecation, type Model } from '../../core/models/models.ts'
import type { Clock } from '../../core/ports.ts'
import { dayMs, formatDay } from '../../core/text/utc-days.ts'
import type { Callers } from '../../http/authentication.ts'
import { toGatewayError } from '../../http/error-response.ts'
import { policies, type RouteDocs, withRouteDocs } from '../../http/route-docs.ts'
import { isModelAllowed, unknownModel } from '../../models/allowed-models.ts'
import { attributions } from '../../models/catalog.ts'
import { refusals } from '../gemini/errors.ts'
import { messagesRefusal } from '../messages/errors.ts'
import { listModels, modelListBody, modelListForm, modelListVary } from './client-lists.ts'
import {
  compatibleModelListShape,
  compatibleModelShape,
  geminiModelListQuery,
  geminiModelListShape,
  geminiModelSchema,
  type ModelHealth,
  modelHealthListShape,
  modelListQuery,
  modelListShape,
} from './schemas.ts'
import { toEmbeddingModelResponse, toShownModel } from './shown-models.ts'

type ModelsDeps = {
  readonly catalog: Catalog
  readonly embeddingCatalog: EmbeddingCatalog
  readonly newRequestId: () => string
  /** Returns the caller if the request shows a key that exists. */
  readonly recall: Callers['recall']
  readonly isSimulated: () => boolean
  readonly health: { report(): ModelHealth[] }
  readonly clock: Pick<Clock, 'now'>
}

/** A shared response body, serialized once, with its `etag`. */
type Page = { readonly body: string; readonly etag: string }

/**
 * The lists of models: `GET /api/v1/models` with prices and capabilities, `GET /v1/models[/{id}]` in the client's form,
 * `GET /api/v1/models/health`. All without a key, readable from any web page, served from memory. With a key that may use some
 * models only, the lists have those.
 */
export function models(deps: ModelsDeps) {
  const { health } = deps
  const listFor = async ({ request }: { readonly request: Request }) =>
    inForm(deps, request, await pagesFor(request.headers), (pages, query) => pages.clients(request, query))
  const modelFor = async ({ request }: { readonly request: Request }) =>
    inForm(deps, request, await pagesFor(request.headers), (pages, query) =>
      pages.one(nameIn(request.url), request, query),
    )
  const today = pagesOfToday(deps)
  const pagesFor = async (headers: Headers): Promise<Shelf> => {
    // The list is open: it does not depend on Postgres, which may have to look up the key.
    const caller = await Promise.resolve(deps.recall(headers)).catch(() => null)
    const patterns = caller?.models
    return patterns === undefined
      ? { pages: today(), isPrivate: false }
      : { pages: allowedPages(deps, patterns), isPrivate: true }
  }

  return new Elysia({ name: 'models' })
    .get(
      '/api/v1/models',
      async ({ request }) => {
        const { pages, isPrivate } = await pagesFor(request.headers)
        return send(request, pages.own, isPrivate ? ownHeaders : {})
      },
      route({ summary: 'List models with prices', answer: modelListShape, isTagged: true }),
    )
    .get(
      '/api/v1/models/health',
      () => Response.json({ data: health.report() }, { headers: notKept }),
      route({ summary: 'Get model health', answer: modelHealthListShape }),
    )
    .get(
      '/v1/models',
      listFor,
      route({
        summary: 'List models in the client’s form',
        description:
          "OpenAI's form. With `anthropic-version`, `x-api-key` or a paging parameter: Anthropic's keys in addition, and pages. With " +
          "`client_version`: Codex's catalog as `models` in addition. `gateway-ai` (automatic routing) comes first.",
        query: modelListQuery,
        answer: compatibleModelListShape,
        isTagged: true,
      }),
    )
    .get(
      '/v1/models/*',
      modelFor,
      route({
        summary: 'Get a model in the client’s form',
        description: 'By its ID, an alias or `provider/model`, with the slash unchanged or as `%2F`.',
        answer: compatibleModelShape,
        isTagged: true,
        errors: ['model_not_found'],
      }),
    )
    .get(
      '/v1beta/models',
      listFor,
      route({
        summary: 'List models in Google’s form',
        description: 'Also of `GET /v1/models` with `x-goog-api-key`. Pages have `pageSize` models, otherwise all.',
        query: geminiModelListQuery,
        refusals,
        answer: geminiModelListShape,
        isTagged: true,
      }),
    )
    .get(
      '/v1beta/models/*',
      modelFor,
      route({
        summary: 'Get a model in Google’s form',
        refusals,
        answer: geminiModelSchema,
        isTagged: true,
        errors: ['model_not_found'],
      }),
    )
}

function route(told: RouteDocs) {
  return withRouteDocs(policies.open, told)
}

/** A list for one key is in no shared cache. */
const ownHeaders = { 'cache-control': 'private, no-cache' }
const notKept = { 'cache-control': 'no-store', 'access-control-allow-origin': '*' }

/**
 * The pages depend on the catalog, which can be replaced, and on the day, as a model's deprecation does. They are written at
 * the first request after a change.
 */
function pagesOfToday({ catalog, embeddingCatalog, isSimulated, clock }: ModelsDeps) {
  type Built = { readonly day: number; readonly list: Catalog['list']; readonly pages: ReturnType<typeof getPages> }
  let built: Built | null = null
  return () => {
    const day = formatDay(clock.now())
    const today = new Date(day * dayMs).toISOString()
    const { list } = catalog
    if (built?.day !== day || built.list !== list)
      built = { day, list, pages: getPages(catalog, embeddingCatalog, isSimulated(), today) }
    return built.pages
  }
}

type Pages = ReturnType<typeof getPages>
type Shelf = { readonly pages: Pages; readonly isPrivate: boolean }

/** The pages of a key that may use some models only; few keys are like that, so they are not kept. */
function allowedPages(deps: ModelsDeps, patterns: readonly string[]): Pages {
  const { catalog, embeddingCatalog, isSimulated, clock } = deps
  const allowed = <M extends Model | EmbeddingModel>({ list, resolve, findDisabled }: Catalog<M>): Catalog<M> => ({
    list: list.filter(model => isModelAllowed(patterns, fullName(model))),
    resolve,
    ...(findDisabled === undefined ? {} : { findDisabled }),
  })
  return getPages(allowed(catalog), allowed(embeddingCatalog), isSimulated(), new Date(clock.now()).toISOString())
}

function getPages(catalog: Catalog, embeddingCatalog: EmbeddingCatalog, simulated: boolean, today: string) {
  const listed = listModels(catalog, embeddingCatalog, today)
  const none = new URLSearchParams()
  const whole = {
    openai: page(modelListBody('openai', listed, none)),
    anthropic: page(modelListBody('anthropic', listed, none)),
    codex: page(modelListBody('codex', listed, none)),
    gemini: page(modelListBody('gemini', listed, none)),
  }
  return {
    own: page({
      data: catalog.list.map(model => toShownModel(model, getDeprecation(model, today), simulated)),
      embedding_models: embeddingCatalog.list.map(model => toEmbeddingModelResponse(model, simulated)),
      attributions,
    }),
    clients(request: Request, query: URLSearchParams): Page {
      const form = modelListForm(request, query)
      const isWhole = form === 'openai' || form === 'codex' || query.size === 0
      return isWhole ? whole[form] : page(modelListBody(form, listed, query))
    },
    one(name: string, request: Request, query: URLSearchParams): Page {
      const found = listed.find(name)
      const form = modelListForm(request, query)
      if (found !== null) return page(form === 'anthropic' || form === 'gemini' ? found[form] : found.openai)
      throw unknownModel(name, catalog, embeddingCatalog)
    },
  }
}

/**
 * Returns the page, or the error in the client's form: Anthropic's clients expect `type` and `request_id` at the top
 * level.
 */
function inForm(
  deps: ModelsDeps,
  request: Request,
  { pages, isPrivate }: Shelf,
  find: (pages: Pages, query: URLSearchParams) => Page,
): Response {
  const query = new URL(request.url).searchParams
  try {
    return send(request, find(pages, query), { vary: modelListVary, ...(isPrivate ? ownHeaders : {}) })
  } catch (thrown) {
    if (modelListForm(request, query) !== 'anthropic') throw thrown
    return messagesRefusal(toGatewayError(thrown), deps.newRequestId())
  }
}

function page(content: unknown): Page {
  const body = JSON.stringify(content)
  return { body, etag: `"${Bun.hash(body).toString(36)}"` }
}

/** Returns the page, or 304 if the client has the current one. */
function send(request: Request, { body, etag }: Page, more: Readonly<Record<string, string>> = {}): Response {
  const headers = { etag, 'cache-control': 'public, max-age=60', 'access-control-allow-origin': '*', ...more }
  if (holds(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers })
  return new Response(body, { headers: { ...headers, 'content-type': 'application/json' } })
}

function holds(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  return ifNoneMatch.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

/** Returns the part of the path after `/models/`: IDs contain slashes, which clients send unchanged or as `%2F`. */
function nameIn(url: string): string {
  const path = new URL(url).pathname
  try {
    return decodeURIComponent(path.replace(/^\/v1(?:beta)?\/models\//, ''))
  } catch {
    return ''
  }
}
