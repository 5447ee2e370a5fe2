import type { Config } from '../config.ts'
import type { IdentityProvider } from '../console/auth/identity-provider.ts'
import type { Clock, Network } from '../core/ports.ts'

/** Opens the client of the identity provider; its library is loaded only if single sign-on is configured. */
export async function openSingleSignOn(
  { singleSignOn, serviceDeadlines }: Config,
  deps: { readonly clock: Clock; readonly network: Network },
): Promise<IdentityProvider | null> {
  if (singleSignOn === null) return null
  const { createIdentityProvider } = await import('../console/auth/identity-provider.ts')
  return createIdentityProvider(singleSignOn, { ...deps, timeoutMs: serviceDeadlines.identityProviderMs })
}
