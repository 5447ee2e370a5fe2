import { useEffect } from 'preact/hooks'
import type { SingleSignOnFailure } from '../../core/accounts/single-sign-on.ts'
import { FailureNotice, Loading, Notice } from '../parts/notice.tsx'
import { useAction } from '../state/action.ts'
import { callOpen } from '../state/api.ts'
import { hrefTo } from '../state/hash-route.ts'
import { begin } from '../state/session.ts'
import { SignIn } from './sign-in.tsx'

const operator = 'Ask the operator of this gateway.'
const advice: Readonly<Record<SingleSignOnFailure, string>> = {
  denied: 'You or the identity provider canceled the sign-in.',
  expired: 'The sign-in took longer than 10 minutes, was used before, or began in another browser. Sign in again.',
  rejected: `The response of the identity provider failed a security check. Sign in again. ${operator}`,
  unavailable: 'The identity provider does not respond. Sign in again in a few minutes.',
  misconfigured: `The gateway and the identity provider disagree about their configuration. ${operator}`,
  email_unverified: 'The identity provider has not verified your email address. Verify it there and sign in again.',
  domain_not_allowed: `Email addresses of your domain cannot sign in. ${operator}`,
  no_role: 'None of your groups may use this gateway. Ask an owner of the account.',
  other_account: `Your email address belongs to another account of this gateway. ${operator}`,
  removed: 'You were removed from the account. Ask an owner for an invitation.',
}

/** Page to which the identity provider returns: exchanges the cookie for a session, or explains the failure. */
export function SingleSignOn({ failure }: { readonly failure: string | undefined }) {
  const entering = useAction(async () => {
    begin(await callOpen('POST /api/v1/auth/oidc/session', { body: {} }))
    location.hash = hrefTo('')
  })
  useEffect(() => {
    if (failure === undefined) void entering.run()
  }, [failure])
  if (failure !== undefined)
    return (
      <SignIn
        notice={
          <Notice tone="bad" isUrgent title="Single sign-on failed">
            {Object.entries(advice).find(([code]) => code === failure)?.[1] ?? advice.rejected}
          </Notice>
        }
      />
    )
  if (entering.failure !== null) return <SignIn notice={<FailureNotice failure={entering.failure} />} />
  return (
    <main class="door">
      <Loading what="your session" lines={2} />
    </main>
  )
}
