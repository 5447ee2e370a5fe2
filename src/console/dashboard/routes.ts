/** Serves the dashboard: a page at `/` and its files, with headers that allow only resources of this gateway. */

import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { pageHeaders } from '../../http/pages.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { text } from '../../http/schemas.ts'

const welcomeShape = strictObject({
  name: Type.Literal('gateway-ai'),
  version: text('1.5.0'),
  endpoints: Type.Array(text('GET /healthz')),
})

export type SiteFile = {
  /** Content type with its character set. */
  readonly type: string
  readonly bodies: { readonly [Encoding in 'identity' | 'gzip' | 'br']: Uint8Array }
}

export type DashboardBundle = {
  /** Files by name: `index.html`, and its resources as `/assets/<name>`. Built once, in memory. */
  files(): Promise<ReadonlyMap<string, SiteFile>>
}

type DashboardDeps = {
  readonly site: DashboardBundle
  /** Response of `/` for clients that are not browsers. */
  readonly welcome: () => Static<typeof welcomeShape>
  /** Sets the idle timeout of a request's connection, in seconds; null = that of a new connection. */
  readonly setIdleTimeout: (request: Request, seconds: number | null) => void
}

/** The first request builds the page, which takes longer than the usual idle timeout on a busy machine. */
const buildSeconds = 120

/**
 * `GET /`: the page for clients that accept HTML, the list of endpoints for others. `GET /assets/*`: the page's files.
 */
export function dashboard({ site, welcome, setIdleTimeout }: DashboardDeps) {
  const filesFor = async (request: Request) => {
    setIdleTimeout(request, buildSeconds)
    try {
      return await site.files()
    } finally {
      setIdleTimeout(request, null)
    }
  }
  return new Elysia({ name: 'dashboard' })
    .get(
      '/',
      async ({ request }) => {
        if (!acceptsPage(request.headers)) return Response.json(welcome(), { headers: { ...fresh, vary: 'accept' } })
        return send(request, (await filesFor(request)).get('index.html'), { ...fresh, ...pageHeaders, vary: 'accept' })
      },
      withRouteDocs(policies.open, {
        summary: 'Get the dashboard',
        description: 'Clients that accept `text/html` get the page; others get the list of endpoints.',
        answer: welcomeShape,
        alsoAs: { 'text/html': markup },
      }),
    )
    .get(
      '/assets/:name',
      async ({ request, params: { name } }) =>
        send(request, name === 'index.html' ? undefined : (await filesFor(request)).get(name), {
          ...kept,
          ...pageHeaders,
          vary: 'accept-encoding',
        }),
      withRouteDocs(policies.open, {
        summary: 'Get a dashboard file',
        answer: null,
        alsoAs: { 'text/javascript': markup, 'text/css': markup },
        errors: ['not_found'],
      }),
    )
}

const markup = Type.String()

const fresh = { 'cache-control': 'no-store' } as const
/** The name changes with the content. */
const kept = { 'cache-control': 'public, max-age=31536000, immutable' } as const

function acceptsPage(headers: Headers): boolean {
  return /\btext\/html\b/i.test(headers.get('accept') ?? '')
}

function send(request: Request, file: SiteFile | undefined, headers: Record<string, string>): Response {
  if (file === undefined)
    throw new GatewayError('not_found', 'File not found. Reload the dashboard to get the current version.')
  const encoding = encodingFor(request.headers.get('accept-encoding') ?? '')
  return new Response(file.bodies[encoding], {
    headers: {
      'content-type': file.type,
      ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }),
      ...headers,
    },
  })
}

/** Returns the smallest encoding that the client accepts. */
function encodingFor(accepted: string): keyof SiteFile['bodies'] {
  const names = accepted
    .split(',')
    .flatMap(part => (/;\s*q=0(\.0*)?\s*$/.test(part) ? [] : [part.split(';')[0]?.trim()]))
  if (names.includes('br')) return 'br'
  return names.includes('gzip') ? 'gzip' : 'identity'
}
