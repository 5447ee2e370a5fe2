/** Settings of single sign-on as the configuration has them, for owners of its account. They are read-only. */

import type { SingleSignOnConfig } from '../../core/accounts/single-sign-on.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, sessionRoute, sessionRoutes } from '../routes.ts'
import type { IdentityProvider } from './identity-provider.ts'
import { type SingleSignOnSettings, singleSignOnSettingsShape } from './schemas.ts'
import { getIsAccount } from './stores/single-sign-on.ts'

/** `GET /api/v1/auth/oidc/settings`. */
export function singleSignOnSettings(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('single-sign-on-settings', identify, [
    sessionRoute({
      method: 'GET',
      path: '/api/v1/auth/oidc/settings',
      action: 'account.secure',
      summary: 'Get the settings of single sign-on',
      description:
        'Reads the metadata of the identity provider, at most every 10 s. The state is that of the responding process.',
      answer: singleSignOnSettingsShape,
      async handle({ principal: { accountId }, database }) {
        const { config, identityProvider: provider } = deps
        const { singleSignOn } = config
        const isOwn =
          singleSignOn !== null &&
          provider !== null &&
          (await getIsAccount(database, accountId, singleSignOn.accountId))
        return { single_sign_on: isOwn ? await shownSettings(singleSignOn, provider) : null }
      },
    }),
  ])
}

async function shownSettings(
  config: SingleSignOnConfig,
  provider: Pick<IdentityProvider, 'status'>,
): Promise<NonNullable<SingleSignOnSettings['single_sign_on']>> {
  const { checkedAtMs, sinceMs, error, canSignOut } = await provider.status()
  return {
    label: config.label,
    issuer: config.issuer,
    client_id: config.clientId,
    redirect_uri: config.redirectUri,
    sign_out_uri: `${new URL(config.redirectUri).origin}/`,
    scopes: config.scope,
    groups_claim: config.groupsClaim,
    roles: [...config.roles].map(([group, role]) => ({ group, role })),
    default_role: config.defaultRole,
    domains: config.domains === null ? null : [...config.domains],
    trusts_email: config.trustsEmail,
    only: config.isOnly,
    session_hours: config.sessionHours,
    provider: {
      reachable: error === null,
      failure: error?.failure ?? null,
      detail: error?.detail ?? null,
      since: new Date(sinceMs).toISOString(),
      checked_at: new Date(checkedAtMs).toISOString(),
      can_sign_out: canSignOut,
    },
  }
}
