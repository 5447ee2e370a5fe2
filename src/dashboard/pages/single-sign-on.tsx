import { useEffect } from 'preact/hooks'
import { FailureNotice, Loading, Notice } from '../parts/notice.tsx'
import { useAction } from '../state/action.ts'
import { callOpen } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { begin } from '../state/session.ts'
import { failureText } from '../state/single-sign-on-text.ts'
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
