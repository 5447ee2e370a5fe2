import { useEffect } from 'preact/hooks'
import { roles } from '../../core/accounts/roles.ts'
import type { SingleSignOnFailure } from '../../core/accounts/single-sign-on.ts'
import { FailureNotice, Loading, Notice } from '../parts/notice.tsx'
import { callOpen } from '../state/api.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useAction } from '../state/resource.ts'
import { begin } from '../state/session.ts'
import { SignIn } from './sign-in.tsx'

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
            {failureText(failure)}
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

/** Outcome of a test sign-in, from which the browser returns to the settings. */
export function TestResult() {
  const { sso_test: outcome, role: given } = hashRoute.value.query
  // Anyone can write a link: only known words are shown.
  const role = roles.find(known => known === given)
  if (outcome === undefined) return null
  if (outcome === 'passed')
    return (
      <Notice tone="good" title="Test sign-in passed" isUrgent>
        {role === undefined ? 'This user can sign in.' : `This user signs in as ${role}.`} The test changed nothing.
      </Notice>
    )
  return (
    <Notice tone="bad" title="Test sign-in failed" isUrgent>
      {failureText(outcome)}
    </Notice>
  )
}

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

/** Returns what a failed single sign-on means and what to do. Unknown codes come from a later release. */
function failureText(failure: string): string {
  return Object.entries(advice).find(([code]) => code === failure)?.[1] ?? advice.rejected
}
