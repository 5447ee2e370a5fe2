import { timingSafeEqual } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { getDigest } from '../core/accounts/api-keys.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { policies, withRouteDocs } from '../http/route-docs.ts'

type MetricsDeps = {
  /** All metrics in the Prometheus format, with its content type. */
  readonly exposition: () => Promise<string>
  readonly expositionType: string
  /** Token for clients on other machines; null = no access from there. */
  readonly token: string | null
}

/** `GET /metrics`: for clients on this machine, and for clients with the token. */
export function metrics({ exposition, expositionType, token }: MetricsDeps) {
  const headers = { 'content-type': expositionType, 'cache-control': 'no-store' }
  return new Elysia({ name: 'metrics' }).get(
    '/metrics',
    async ({ request, server }) => {
      if (!isOwnMachine(request, server?.requestIP(request)?.address ?? null)) checkToken(request.headers, token)
      return new Response(await exposition(), { headers })
    },
    withRouteDocs(policies.operator, {
      summary: 'Get Prometheus metrics',
      description: 'Available on the gateway’s own machine; from other machines with `METRICS_TOKEN`, if set.',
      answer: null,
      alsoAs: { 'text/plain': Type.String({ description: 'Prometheus text format' }) },
      errors: ['forbidden', 'invalid_token'],
    }),
  )
}

const loopbackPeer = /^(::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/
const loopbackHost = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i
const forwarding = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via']

/**
 * The peer's address is not sufficient: a proxy on this machine forwards other clients and adds its headers, and a page
 * that rebinds its name to loopback sends that name as `Host`.
 */
function isOwnMachine({ headers }: Request, peer: string | null): boolean {
  return (
    peer !== null &&
    loopbackPeer.test(peer) &&
    loopbackHost.test(headers.get('host') ?? '') &&
    forwarding.every(name => !headers.has(name))
  )
}

function checkToken(headers: Headers, token: string | null): void {
  if (token === null)
    throw new GatewayError('forbidden', 'Metrics are only available from the gateway host unless METRICS_TOKEN is set.')
  const [, shown = ''] = /^bearer +(\S+)\s*$/i.exec(headers.get('authorization') ?? '') ?? []
  if (!timingSafeEqual(Buffer.from(getDigest(shown)), Buffer.from(getDigest(token))))
    throw new GatewayError('invalid_token', 'Send METRICS_TOKEN as "Authorization: Bearer <token>".')
}
