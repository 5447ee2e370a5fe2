/** Builds the OpenAPI 3.1 document from the route table. All descriptions live on the routes. */
import { type ErrorCode, errorTable, wireCode } from '../../core/validation/errors.ts'
import { openApiPath } from '../endpoints.ts'
import type { Policy, RouteDocs } from '../route-docs.ts'
import { errorShape } from '../schemas.ts'
import { answerHeaders, headerComponents, refusalHeaders } from './headers.ts'
import { createSchemas, getSample, type JsonSchema, type Schemas } from './schemas.ts'

/** A route as Elysia lists it; `detail` is the result of `documented`. */
export type RouteEntry = {
  readonly method: string
  readonly path: string
  readonly hooks: { readonly detail?: object }
}

type Detail = Policy & { readonly 'x-reference': RouteDocs }
export type Media = {
  readonly schema: JsonSchema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: object }>>
}
export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: JsonSchema
}
export type ResponseDoc = {
  readonly description: string
  readonly headers: Readonly<Record<string, object>>
  readonly content?: Readonly<Record<string, Media>>
}
export type Operation = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: Policy['security']
  readonly 'x-action'?: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, ResponseDoc>>
}
export type ApiDocument = {
  readonly openapi: string
  readonly info: Readonly<Record<'title' | 'version' | 'summary' | 'description', string>> & {
    readonly license: object
  }
  readonly servers: readonly object[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly headers: Readonly<Record<string, object>>
    readonly securitySchemes: Readonly<Record<string, object>>
  }
}

/** Returns the document of these routes. Throws if a route has no description. */
export function getDocument(version: string, routes: readonly RouteEntry[]): ApiDocument {
  const schemas = createSchemas()
  const paths: Record<string, Record<string, Operation>> = {}
  for (const { method, path, hooks } of routes) {
    const at = openApiPath(path)
    const operation = getOperation(method, at, getDetail(method, path, hooks.detail), schemas)
    paths[at] = { ...paths[at], [method.toLowerCase()]: operation }
  }
  const used = new Set(Object.values(paths).flatMap(methods => Object.values(methods).flatMap(({ tags }) => tags)))
  return {
    openapi: '3.1.0',
    info: {
      title: 'gateway-ai',
      version,
      summary: 'One chat gateway in front of many model providers.',
      description: introduction,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'this gateway' }],
    tags: sections.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description })),
    paths,
    components: { schemas: schemas.components(), headers: headerComponents, securitySchemes },
  }
}

const introduction = `
Every response has an \`x-request-id\`. It finds the request in the log, and ratings take it. Times are ISO 8601 in UTC. IDs are opaque
strings with a prefix. Money is in decimal US dollars. Every error has one shape, and its message names the next step. Within a version fields are
only added: a client must ignore unknown fields.

Every 429 and 503 has \`retry-after\`, the time to wait. With \`x-should-retry: false\` a retry cannot succeed.

Streams are \`text/event-stream\`, one JSON object after each \`data: \`; lines that begin with a colon are comments that
keep the connection open. A stream without its terminal event (\`done\` or \`[DONE]\`) is truncated.
`.trim()

/** A path belongs to the section with the longest matching prefix. */
const sections = [
  { name: 'Chat', description: 'Chat, cost estimates and dry runs.', begins: ['/api/v1/chat', '/api/v1/route'] },
  {
    name: 'OpenAI-compatible',
    description: 'OpenAI’s and Anthropic’s APIs, for existing client libraries.',
    begins: ['/v1/'],
  },
  { name: 'Models', description: 'Models, prices and health.', begins: ['/api/v1/models'] },
  { name: 'Insights', description: 'Learning data and ratings.', begins: ['/api/v1/insights'] },
  { name: 'Authentication', description: 'Accounts, sessions and passwords.', begins: ['/api/v1/auth'] },
  {
    name: 'Account',
    description: 'The account, its API keys and its members.',
    begins: ['/api/v1/account', '/api/v1/keys', '/api/v1/team'],
  },
  {
    name: 'Usage',
    description: 'Totals, the request log and its export.',
    begins: ['/api/v1/usage', '/api/v1/requests'],
  },
  {
    name: 'Billing',
    description: 'Plan, payment method, soft cap and invoices, for owners.',
    begins: ['/api/v1/billing'],
  },
  { name: 'Service', description: 'Probes and documents.', begins: ['/'] },
]

const securitySchemes = {
  metricsToken: { type: 'http', scheme: 'bearer', description: 'The operator’s `METRICS_TOKEN`.' },
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `Authorization: Bearer gw_live_…`.' },
  apiKeyHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'The same API key in its own header.',
  },
  session: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'A session token from a sign-in, or a management key of an account. API keys and session tokens are not interchangeable.',
  },
}

/** Error codes of each authentication method. */
const refusalsOfScheme: Readonly<Record<string, readonly ErrorCode[]>> = {
  apiKey: ['invalid_api_key', 'ip_rate_limited'],
  session: ['invalid_token', 'forbidden', 'ip_rate_limited'],
}

/** Errors that any route may return: bad input, a wrong `Host`, an internal failure or an unavailable store. */
const refusalsOfAll: readonly ErrorCode[] = ['invalid_request', 'misdirected', 'service_unavailable']
/** Routes that change state reject pages of other origins. */
const refusalsOfPages: readonly ErrorCode[] = ['forbidden']
const refusalsOfBodies: readonly ErrorCode[] = ['invalid_json', 'body_too_large', 'request_bytes_exceeded']

function getDetail(method: string, path: string, detail: object | undefined): Detail {
  if (detail !== undefined && 'x-reference' in detail) return detail as Detail
  throw new Error(`${method} ${path} has no description: give it \`documented(policy, { summary, answer })\``)
}

function getOperation(method: string, path: string, detail: Detail, schemas: Schemas): Operation {
  const { security, 'x-action': action, 'x-reference': told } = detail
  const { summary, description, body, bodyRequired = true } = told
  const parameters = getParameters(path, told, schemas)
  return {
    operationId: operationId(method, path),
    tags: [getSection(path)],
    summary,
    ...(description === undefined ? {} : { description }),
    security: security.flatMap(way => ('apiKey' in way ? [way, { apiKeyHeader: [] }] : [way])),
    ...(action === undefined ? {} : { 'x-action': action }),
    parameters,
    ...(body === undefined
      ? {}
      : { requestBody: { required: bodyRequired, content: { 'application/json': getBody(body, told, schemas) } } }),
    responses: getAnswers(method, detail, parameters, schemas),
  }
}

function operationId(method: string, path: string): string {
  const words = path.match(/\w+/g)?.filter(word => word !== 'api' && word !== 'v1') ?? []
  const wire = path.startsWith('/v1/') ? ['compatible'] : []
  return [method.toLowerCase(), ...wire, ...words].join('_')
}

function getSection(path: string): string {
  const fits = sections.flatMap(({ name, begins }) =>
    begins.filter(begin => path.startsWith(begin)).map(begin => ({ name, length: begin.length })),
  )
  return fits.toSorted((left, right) => right.length - left.length)[0]?.name ?? 'Service'
}

function getParameters(path: string, { query, requestHeaders = {} }: RouteDocs, schemas: Schemas): Parameter[] {
  return [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
      name,
      in: 'path' as const,
      required: true,
      schema: { type: 'string', minLength: 1 },
    })),
    ...Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'query' as const,
      required: query?.required?.includes(name) ?? false,
      ...(schema.type === 'object' ? { style: 'deepObject', explode: true } : {}),
      schema: schemas.of(schema, 'asked'),
    })),
    ...Object.entries(requestHeaders).map(([name, schema]) => ({
      name,
      in: 'header' as const,
      required: false,
      schema: schemas.of(schema, 'asked'),
    })),
  ]
}

function getBody(body: NonNullable<RouteDocs['body']>, { examples = {} }: RouteDocs, schemas: Schemas): Media {
  const shown = Object.entries(examples).map(([name, value]) => [name, { value }] as const)
  return {
    schema: schemas.of(body, 'asked'),
    ...(shown.length === 0 ? {} : { examples: Object.fromEntries(shown) }),
  }
}

function getAnswers(method: string, detail: Detail, parameters: readonly Parameter[], schemas: Schemas) {
  const { security, 'x-reference': told } = detail
  const { answer, status = 200, alsoAs = {}, alsoWith = {}, body, errors = [], isTagged = false } = told
  const headers = answerHeaders(told.answerHeaders ?? [], isTagged)
  const media = (schema: NonNullable<typeof answer>): Media => ({
    schema: schemas.of(schema, 'answered'),
    example: getSample(schema),
  })
  const whole = answer === null ? {} : { 'application/json': media(answer) }
  const further = Object.entries(alsoAs).map(
    ([type, schema]) =>
      [type, type === 'text/event-stream' ? getEvent(media(schema), told.streamEnd) : media(schema)] as const,
  )
  const content = { ...whole, ...Object.fromEntries(further) }
  const schemes = security.flatMap(way => Object.keys(way))
  const inPath = schemes.includes('session') && parameters.some(parameter => parameter.in === 'path')
  const codes = [
    ...refusalsOfAll,
    ...schemes.flatMap(scheme => refusalsOfScheme[scheme] ?? []),
    ...(body === undefined ? [] : refusalsOfBodies),
    ...(method === 'GET' || detail['x-pages'] === 'any' ? [] : refusalsOfPages),
    ...(inPath ? (['not_found'] as const) : []),
    ...errors,
  ]
  return {
    [answer === null && further.length === 0 && status !== 303 ? 204 : status]: {
      description: 'Done',
      headers,
      ...(Object.keys(content).length === 0 ? {} : { content }),
    },
    ...(isTagged ? { 304: { description: 'Not modified since the `etag` in `if-none-match`', headers } } : {}),
    ...getRefusals(codes, schemes.includes('apiKey'), schemas, told.refusals),
    ...Object.fromEntries(
      Object.entries(alsoWith).map(([also, schema]) => [
        also,
        { description: 'Not ready', headers, content: { 'application/json': media(schema) } },
      ]),
    ),
  }
}

/** One server-sent event as a client reads it; its `data` is JSON. */
function getEvent({ schema, example }: Media, end: string | undefined): Media {
  const event = { type: 'string', contentMediaType: 'application/json', contentSchema: schema }
  const data = end === undefined ? event : { anyOf: [{ const: end }, event] }
  return {
    schema: { type: 'object', description: 'one event of the stream', required: ['data'], properties: { data } },
    example: { data: JSON.stringify(example) },
  }
}

/** Errors of a request after at least one attempt. */
const afterAttempts: ReadonlySet<ErrorCode> = new Set(['upstream_failed', 'no_model_available', 'upstream_timeout'])

const usualRefusals: NonNullable<RouteDocs['refusals']> = {
  shape: errorShape,
  getStatus: code => errorTable[code].status,
}

/** One response per status, with the error codes that it can have. */
function getRefusals(
  codes: readonly ErrorCode[],
  showsQuotaStatus: boolean,
  schemas: Schemas,
  { shape, getStatus }: NonNullable<RouteDocs['refusals']> = usualRefusals,
): Record<string, ResponseDoc> {
  const byStatus = Map.groupBy(new Set(codes), getStatus)
  return Object.fromEntries(
    [...byStatus].map(([status, shared]) => [
      status,
      {
        description: [...new Set(shared.map(code => `\`${wireCode(code)}\``))].join(', '),
        headers: refusalHeaders(status, {
          showsQuotaStatus,
          showsAttempts: shared.some(code => afterAttempts.has(code)),
        }),
        content: { 'application/json': { schema: schemas.of(shape, 'answered') } },
      },
    ]),
  )
}
