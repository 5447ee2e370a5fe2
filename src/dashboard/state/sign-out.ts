import { callApi } from './api.ts'
import { forgetPlayground } from './playground.ts'
import { currentSession, end } from './session.ts'

const patience = () => new Promise(resolve => setTimeout(resolve, 2_000))

/**
 * Ends the session, in every tab. After single sign-on the browser goes on to the identity provider, which ends its own
 * session and returns; otherwise the next sign-in would need no password. Without such a page it returns at once.
 */
export async function signOut(because: string | null = null): Promise<void> {
  // Signs out locally even if the gateway is unreachable; the session and the key then expire.
  await Promise.race([forgetPlayground(), patience()])
  const ended = callApi('POST /api/v1/auth/logout').catch(() => undefined)
  const isSingleSignOn = currentSession.peek()?.single_sign_on === true
  // A navigation would abort the request.
  if (isSingleSignOn) await Promise.race([ended, patience()])
  end(because)
  if (isSingleSignOn) location.assign('/api/v1/auth/oidc/logout')
}
