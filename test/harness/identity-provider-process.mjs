/**
 * A certified OpenID provider as its own process. Arguments: port, redirect URI, users as JSON (claims by sign-in name).
 * `POST /test/clock?seconds=N` moves its clock.
 */
import { Provider } from 'oidc-provider'

const [port, redirectUri, users] = process.argv.slice(2)
const claimsByName = JSON.parse(users)
const realNow = Date.now.bind(Date)
let shiftMs = 0
Date.now = () => realNow() + shiftMs

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'gateway',
      client_secret: 'a client secret with = and %',
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [`${new URL(redirectUri).origin}/`],
      response_types: ['code'],
      grant_types: ['authorization_code'],
      scope: 'openid email profile',
    },
  ],
  claims: { openid: ['sub', 'groups', 'realm_access'], email: ['email', 'email_verified'], profile: ['name'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => (Object.hasOwn(claimsByName, id) ? { sub: id, ...claimsByName[id] } : { sub: id }),
  }),
  pkce: { required: () => true },
})
const handle = provider.callback()
const server = (await import('node:http')).createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost')
  if (url.pathname !== '/test/clock') return handle(request, response)
  shiftMs = Number(url.searchParams.get('seconds')) * 1000
  response.end()
})
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\n'))
