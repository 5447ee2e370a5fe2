/** The library in a real browser, on a page served beside the library's files. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openBrowser } from '../dashboard/browser.ts'
import type { Gateway } from '../harness/gateway.ts'
import type { Context, Library } from './checks.ts'

const types = { '.js': 'text/javascript', '.html': 'text/html' } as const

/** Runs the checks on a page whose own server forwards `/api/` to the gateway, as docs/clients/gateway-client.md advises. */
export function checksOnPage(gateway: Gateway, browser: string, library: string, context: Context) {
  return onPage(gateway, browser, library, (page, url) =>
    page.evaluate(
      async ([checks, given]) => {
        const { outcomes }: typeof import('./checks.ts') = await import(checks)
        return outcomes(given)
      },
      ['/checks.js', { ...context, url, specifier: '/gateway.js' }] as const,
    ),
  )
}

/** Tests what a page from another origin may do with this gateway directly. */
export function callsFromElsewhere(gateway: Gateway, browser: string, library: string) {
  return onPage(gateway, browser, library, page =>
    page.evaluate(
      async ([specifier, baseUrl, apiKey]) => {
        const { Gateway, ConnectionError, RateLimitError }: Library = await import(specifier)
        const client = new Gateway({ baseUrl, apiKey, maxRetries: 0 })
        const [models, estimate] = [await client.models(), await client.estimate('Hi')]
        const refused = await Promise.allSettled(Array.from({ length: 8 }, () => client.enhance('fix bug')))
        const hasty = refused.flatMap(settled => (settled.status === 'rejected' ? [settled.reason as unknown] : []))
        const chat = await client.chat('Hi').catch((error: unknown) => error)
        return {
          models: models.length > 10,
          estimate: estimate.estimated_cost_usd > 0,
          waits: hasty.map(error => (error instanceof RateLimitError ? (error.retryAfter ?? 0) : -1)),
          chatIsKeptFromIt: chat instanceof ConnectionError,
        }
      },
      ['/gateway.js', gateway.url, gateway.key] as const,
    ),
  )
}

async function onPage<T>(
  gateway: Gateway,
  browserPath: string,
  library: string,
  work: (page: Page, url: string) => Promise<T>,
): Promise<T> {
  const checks = await bundledChecks()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (pathname.startsWith('/api/')) return passOn(request, gateway.url + pathname + search)
      if (pathname === '/checks.js') return file(checks, '.js')
      if (pathname.endsWith('.js')) return file(readFileSync(join(library, pathname), 'utf8'), '.js')
      return file('<!doctype html><title>A page</title>', '.html')
    },
  })
  const page = await (await openBrowser(browserPath)).newPage()
  try {
    const url = `http://127.0.0.1:${server.port}`
    await page.goto(url)
    return await work(page, url)
  } finally {
    await page.close()
    await server.stop(true)
  }
}

/** Forwards without buffering and passes disconnects on. */
function passOn(request: Request, url: string): Promise<Response> {
  const headers = new Headers(request.headers)
  headers.delete('host')
  headers.set('x-forwarded-for', '10.77.0.1')
  return fetch(url, { method: request.method, headers, body: request.body, signal: request.signal })
}

function file(text: string, kind: keyof typeof types): Response {
  return new Response(text, { headers: { 'content-type': types[kind] } })
}

async function bundledChecks(): Promise<string> {
  const { outputs } = await Bun.build({ entrypoints: [join(import.meta.dir, 'checks.ts')], target: 'browser' })
  const [output] = outputs
  if (output === undefined) throw new Error('the checks cannot be bundled')
  return output.text()
}
