import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { strictObject } from '../../core/validation/validate.ts'
import { pageHeaders } from '../pages.ts'
import { policies, withRouteDocs } from '../route-docs.ts'
import { text } from '../schemas.ts'
import { getDocument, type RouteEntry } from './document.ts'
import { getPage } from './page.ts'

/**
 * `GET /openapi.json`, and the same as a page at `/docs`. Built at the first request, when all routes are registered.
 */
export function reference(version: string, routes: () => readonly RouteEntry[]) {
  const written = once(() => {
    const document = getDocument(version, routes())
    return { json: JSON.stringify(document), page: getPage(document) }
  })
  return new Elysia({ name: 'reference' })
    .get(
      '/openapi.json',
      () => sent(written().json, 'application/json'),
      withRouteDocs(policies.open, { summary: 'OpenAPI document', answer: documentShape }),
    )
    .get(
      '/docs',
      () => sent(written().page, 'text/html; charset=utf-8'),
      withRouteDocs(policies.open, {
        summary: 'API reference page',
        answer: null,
        alsoAs: { 'text/html': markup },
      }),
    )
    .get(
      '/docs/style.css',
      async () => sent(await style.text(), 'text/css; charset=utf-8'),
      withRouteDocs(policies.open, {
        summary: 'Style sheet of the API reference page',
        answer: null,
        alsoAs: { 'text/css': markup },
      }),
    )
}

const style = Bun.file(new URL('./style.css', import.meta.url))
const markup = Type.String()
const open = { additionalProperties: true } as const
const documentShape = strictObject(
  { openapi: text('3.1.0'), info: Type.Object({}, open), paths: Type.Object({}, open) },
  open,
)

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function sent(body: string, type: string): Response {
  return new Response(body, { headers: { 'content-type': type, 'cache-control': 'no-store', ...pageHeaders } })
}
