/** A real OpenID provider (`oidc-provider`) in its own process, and a user who signs in there without a browser. */
import { expect } from 'bun:test'
import { freePort } from './free-port.ts'

const program = new URL('./identity-provider-process.mjs', import.meta.url).pathname
const clientSecret = 'a client secret with = and %'

export type IdentityProviderProcess = {
  readonly issuer: string
  /** Moves the clock of the provider, relative to the real one. */
  moveClock(seconds: number): Promise<void>
  stop(): Promise<void>
}

type Users = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Starts the provider with the gateway's redirect URI. `users` = claims by sign-in name. */
export async function startIdentityProvider(gatewayPort: number, users: Users): Promise<IdentityProviderProcess> {
  const port = freePort()
  const redirectUri = `http://127.0.0.1:${gatewayPort}/api/v1/auth/oidc/callback`
  const child = Bun.spawn([process.execPath, program, `${port}`, redirectUri, JSON.stringify(users)], {
    stdout: 'pipe',
    stderr: 'ignore',
  })
  for await (const piece of child.stdout) if (new TextDecoder().decode(piece).includes('listening')) break
  const issuer = `http://127.0.0.1:${port}`
  return {
    issuer,
    async moveClock(seconds) {
      await fetch(`${issuer}/test/clock?seconds=${seconds}`, { method: 'POST' })
    },
    async stop() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** Environment of a gateway that uses the provider. */
export function singleSignOnEnvironment(issuer: string, gatewayPort: number): Record<string, string> {
  return {
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: 'gateway',
    OIDC_CLIENT_SECRET: clientSecret,
    OIDC_LABEL: 'Keycloak',
    PUBLIC_URL: `http://127.0.0.1:${gatewayPort}`,
    REGISTRATION: 'closed',
  }
}

/** One browser's cookies per origin. */
export type Jar = Map<string, string>

/** Sends a request without following redirects, and keeps the cookies of the response. */
export async function visit(jar: Jar, url: string, init: RequestInit = {}): Promise<Response> {
  const { host } = new URL(url)
  const prefix = `${host} `
  const cookie = [...jar]
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, value]) => `${name.slice(prefix.length)}=${value}`)
    .join('; ')
  const response = await fetch(url, { redirect: 'manual', ...init, headers: { ...init.headers, cookie } })
  for (const line of response.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (value === '') jar.delete(prefix + name)
    else jar.set(prefix + name, value)
  }
  return response
}

/** Returns where a response leads. */
export function target(response: Response, from: string): string {
  expect(response.status).toBeOneOf([302, 303])
  return new URL(response.headers.get('location') ?? '', from).href
}

/** Signs in at the provider and consents; returns the URL of the gateway's callback with its query. */
export async function callbackUrl(jar: Jar, authorizationUrl: string, name: string): Promise<string> {
  let url = authorizationUrl
  for (let steps = 0; steps < 12; steps++) {
    const response = await visit(jar, url)
    if (response.status === 200) {
      const page = await response.text()
      const action = /<form[^>]* action="([^"]+)"/.exec(page)?.[1] ?? url
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? 'consent'
      const body = new URLSearchParams({ prompt, ...(prompt === 'login' ? { login: name, password: 'x' } : {}) })
      const answer = await visit(jar, new URL(action, url).href, { method: 'POST', body })
      url = target(answer, url)
    } else url = target(response, url)
    if (url.includes('/api/v1/auth/oidc/callback')) return url
  }
  throw new Error('the provider did not return to the gateway')
}
