/**
 * The list of models in the four forms that clients read, from one set of entries: OpenAI's, Anthropic's and Google's with paging,
 * and the one of Codex. The request shows which form the client reads.
 */
import type { EmbeddingCatalog, EmbeddingModel } from '../../core/models/embedding-models.ts'
import { autoModel, type Catalog, fullName, getDeprecation, type Model } from '../../core/models/models.ts'
import { invalidField } from '../../core/validation/validate.ts'
import { isGeminiForm } from '../../http/endpoints.ts'
import { codexModels } from './codex-list.ts'
import type { AnthropicModel, CodexModel, CompatibleModel, GeminiModel } from './schemas.ts'

type ModelListForm = 'openai' | 'anthropic' | 'codex' | 'gemini'

const pagingParameters = ['limit', 'after_id', 'before_id'] as const

/** Codex sends `client_version`; Anthropic's and Google's clients send a header or paging. A header that decides is in `vary`. */
export function modelListForm(
  request: Pick<Request, 'url' | 'method' | 'headers'>,
  query: URLSearchParams,
): ModelListForm {
  const { headers } = request
  if (isGeminiForm(request)) return 'gemini'
  if (query.has('client_version')) return 'codex'
  const isAnthropic =
    headers.has('anthropic-version') || headers.has('x-api-key') || pagingParameters.some(name => query.has(name))
  return isAnthropic ? 'anthropic' : 'openai'
}

export const modelListVary = 'anthropic-version, x-api-key, x-goog-api-key'

/**
 * A model in these forms. Anthropic's form includes OpenAI's keys, so that a client that reads those finds them with any
 * header.
 */
type ListedModel = {
  readonly openai: CompatibleModel
  readonly anthropic: AnthropicModel
  readonly gemini: GeminiModel
}

type ListedModels = {
  /** Models that are not retired, `gateway-ai` first and embedding models last. */
  readonly list: readonly ListedModel[]
  /** The catalog for Codex. */
  readonly codex: readonly CodexModel[]
  /** Returns a model by any of its names, also a retired one; null = unknown. */
  find(name: string): ListedModel | null
}

/** `today` is an ISO time: a retired model is not listed. */
export function listModels(catalog: Catalog, embeddingCatalog: EmbeddingCatalog, today: string): ListedModels {
  const auto = listed({
    id: autoModel,
    displayName: 'gateway-ai: automatic routing',
    provider: autoModel,
    // Its first release.
    releaseDate: '2026-02-10',
    deprecationDate: null,
    maxInputTokens: null,
    maxTokens: null,
  })
  const chat = new Map(catalog.list.map(model => [model, listedChatModel(model, catalog)]))
  const embedding = new Map(
    embeddingCatalog.list.map(model => [model, listedEmbeddingModel(model, embeddingCatalog, catalog)]),
  )
  const served = catalog.list.filter(model => getDeprecation(model, today) !== 'retired')
  return {
    list: [auto, ...served.flatMap(model => chat.get(model) ?? []), ...embedding.values()],
    codex: codexModels(served),
    find(name) {
      if (name.toLowerCase() === autoModel) return auto
      const model = catalog.resolve(name)
      if (model !== null) return chat.get(model) ?? null
      const embedded = embeddingCatalog.resolve(name)
      return embedded === null ? null : (embedding.get(embedded) ?? null)
    },
  }
}

type Listable = Pick<Model, 'provider' | 'displayName' | 'releaseDate' | 'deprecationDate'> & {
  /** Returns the name in the list. */
  readonly id: string
  readonly maxInputTokens: number | null
  readonly maxTokens: number | null
}

function listedChatModel(model: Model, catalog: Catalog): ListedModel {
  // A bare ID that two providers share belongs to the first; the other is listed by its full name.
  const id = catalog.resolve(model.id) === model ? model.id : fullName(model)
  return listed({
    ...model,
    id,
    maxInputTokens: model.maxInputTokens ?? model.contextWindow,
    maxTokens: model.maxOutputTokens,
  })
}

function listedEmbeddingModel(model: EmbeddingModel, own: EmbeddingCatalog, chat: Catalog): ListedModel {
  const isOwnName = own.resolve(model.id) === model && chat.resolve(model.id) === null
  return listed({
    ...model,
    id: isOwnName ? model.id : fullName(model),
    deprecationDate: null,
    maxInputTokens: model.contextWindow,
    maxTokens: null,
  })
}

/** Anthropic's API returns this time if the release date is unknown. */
const unknownRelease = '1970-01-01'

function listed(model: Listable): ListedModel {
  const { id, releaseDate, provider } = model
  const openai: CompatibleModel = {
    id,
    object: 'model',
    created: releaseDate === null ? 0 : Date.parse(releaseDate) / 1000,
    owned_by: provider,
    shutdown_date: model.deprecationDate,
  }
  const anthropic: AnthropicModel = {
    ...openai,
    type: 'model',
    display_name: model.displayName,
    created_at: new Date(releaseDate ?? unknownRelease).toISOString().replace('.000Z', 'Z'),
    max_input_tokens: model.maxInputTokens,
    max_tokens: model.maxTokens,
    capabilities: null,
  }
  const embeds = model.maxTokens === null && provider !== autoModel
  const gemini: GeminiModel = {
    name: `models/${id}`,
    baseModelId: id,
    version: releaseDate ?? unknownRelease,
    displayName: model.displayName,
    description: `${model.displayName}, served by ${provider}`,
    inputTokenLimit: model.maxInputTokens ?? 0,
    outputTokenLimit: model.maxTokens ?? 0,
    supportedGenerationMethods: embeds
      ? ['embedContent', 'batchEmbedContents']
      : ['generateContent', 'streamGenerateContent', 'countTokens'],
  }
  return { openai, anthropic, gemini }
}

/** Returns the body of a list in a form. Throws `invalid_request` for paging parameters without a match. */
export function modelListBody(form: ModelListForm, { list, codex }: ListedModels, query: URLSearchParams): object {
  if (form === 'anthropic') return anthropicPage(list, query)
  if (form === 'gemini') return geminiPage(list, query)
  const body = { object: 'list', data: list.map(({ openai }) => openai) }
  return form === 'codex' ? { ...body, models: codex } : body
}

/** Without `limit`, one page holds all models. */
const mostPerPage = 1_000

function anthropicPage(list: readonly ListedModel[], query: URLSearchParams): object {
  const limit = getLimit(query.get('limit'))
  const [after, before] = [query.get('after_id'), query.get('before_id')]
  if (after !== null && before !== null) throw invalidField('before_id', 'cannot be combined with `after_id`')
  const from = after === null ? 0 : getPlace(list, 'after_id', after) + 1
  const to = before === null ? list.length : getPlace(list, 'before_id', before)
  const range = list.slice(from, to)
  // Before an ID, the page is the last one in front of it.
  const page = before === null ? range.slice(0, limit) : range.slice(-limit)
  const data = page.map(({ anthropic }) => anthropic)
  return {
    object: 'list',
    data,
    has_more: range.length > page.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

/** The token of a page is the number of models before it. */
function geminiPage(list: readonly ListedModel[], query: URLSearchParams): object {
  const [size, token] = [query.get('pageSize') ?? String(mostPerPage), query.get('pageToken') ?? '0']
  if (!/^\d{1,4}$/.test(size)) throw invalidField('pageSize', `must be an integer from 0 to ${mostPerPage}`)
  if (!/^\d{1,6}$/.test(token)) throw invalidField('pageToken', 'must be the `nextPageToken` of a page')
  const end = Number(token) + (Number(size) || mostPerPage)
  const models = list.slice(Number(token), end).map(({ gemini }) => gemini)
  return { models, ...(end < list.length ? { nextPageToken: String(end) } : {}) }
}

function getLimit(sent: string | null): number {
  if (sent === null) return mostPerPage
  const limit = /^\d{1,4}$/.test(sent) ? Number(sent) : 0
  if (limit < 1 || limit > mostPerPage) throw invalidField('limit', `must be an integer from 1 to ${mostPerPage}`)
  return limit
}

function getPlace(list: readonly ListedModel[], parameter: string, id: string): number {
  const place = list.findIndex(({ openai }) => openai.id === id)
  if (place === -1) throw invalidField(parameter, 'must be the ID of a listed model')
  return place
}
