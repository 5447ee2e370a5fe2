import { useState } from 'preact/hooks'
import { Button } from '../parts/button.tsx'
import { TextField } from '../parts/field.tsx'
import { FailureNotice, Notice } from '../parts/notice.tsx'
import { useAction } from '../state/action.ts'
import { callOpen } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { begin } from '../state/session.ts'
import { AuthPage } from './sign-in.tsx'

/** Page of the link in a confirmation email. The password proves that the reader of the mailbox also registered. */
export function Verify({ token }: { readonly token: string }) {
  const [password, setPassword] = useState('')
  const verifying = useAction(async () => {
    begin(await callOpen('POST /api/v1/auth/verify/:token', { params: { token }, body: { password } }))
    location.hash = hrefTo('')
  })
  const { failure } = verifying
  const isGone = failure?.code === 'not_found'
  const isWrong = failure?.code === 'invalid_credentials'
  return (
    <AuthPage title="Confirm your email address" onSubmit={() => void verifying.run()}>
      <p class="about">Enter the password that you chose when you registered.</p>
      {isGone && (
        <Notice tone="bad" isUrgent title="This link has expired or was used">
          Links expire after 24 hours. <a href={hrefTo('')}>Sign in</a>, or{' '}
          <a href={hrefTo('sign-up')}>register again</a>.
        </Notice>
      )}
      {isWrong && (
        <Notice tone="bad" isUrgent title="Wrong password">
          If you did not register, <a href={hrefTo('reset')}>choose your own password</a>: this takes over the address
          over.
        </Notice>
      )}
      {failure !== null && !isGone && !isWrong && failure.param === null && <FailureNotice failure={failure} />}
      <TextField
        label="Password"
        type="password"
        name="password"
        autocomplete="current-password"
        required
        value={password}
        onText={setPassword}
        param="password"
        failure={failure}
      />
      <Button
        text={verifying.isBusy ? 'Confirming…' : 'Confirm email address'}
        type="submit"
        look="primary wide"
        disabled={verifying.isBusy}
      />
    </AuthPage>
  )
}
