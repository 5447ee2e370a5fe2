import { useState } from 'preact/hooks'
import { Switch } from '../parts/field.tsx'
import { FailureNotice, Notice } from '../parts/notice.tsx'
import { useAction } from '../state/action.ts'
import { callOpen } from '../state/api.ts'
import { hrefTo } from '../state/hash-route.ts'
import { AuthPage, EmailField, NewPassword } from './sign-in.tsx'

/** Password reset: requests the email, or sets the password after its link was opened. */
export function Reset({ token }: { readonly token: string | undefined }) {
  return token === undefined ? <Ask /> : <Choose token={token} />
}

function Ask() {
  const [email, setEmail] = useState('')
  const [isAsked, setAsked] = useState(false)
  const asking = useAction(async () => {
    await callOpen('POST /api/v1/auth/reset', { body: { email } })
    setAsked(true)
  })
  const { failure } = asking
  const sendsNoMail = failure?.code === 'not_found'
  return (
    <AuthPage title="A new password" onSubmit={() => void asking.run()}>
      <p class="about">A link to choose one is sent to your address. It is good for half an hour.</p>
      {isAsked && (
        <Notice tone="good" title="Look into your mailbox">
          If somebody has this address here, a letter is on its way.
        </Notice>
      )}
      {sendsNoMail && (
        <Notice tone="warn" title="This gateway sends no mail">
          Ask its operator for a new password: <code>accounts reset-password</code>.
        </Notice>
      )}
      {failure !== null && !sendsNoMail && failure.param === null && <FailureNotice failure={failure} />}
      <EmailField value={email} onText={setEmail} failure={failure} />
      <button type="submit" class="button primary wide" disabled={asking.isBusy || isAsked}>
        {asking.isBusy ? 'Asking…' : 'Send the link'}
      </button>
      <p class="hint">
        <a href={hrefTo('')}>Back to signing in</a>
      </p>
    </AuthPage>
  )
}

function Choose({ token }: { readonly token: string }) {
  const [password, setPassword] = useState('')
  const [revokesKeys, setRevokesKeys] = useState(false)
  const [isChosen, setChosen] = useState(false)
  const choosing = useAction(async () => {
    const body = { password, revoke_keys: revokesKeys }
    await callOpen('POST /api/v1/auth/reset/:token', { params: { token }, body })
    setChosen(true)
  })
  const { failure } = choosing
  const isGone = failure?.code === 'not_found'
  return (
    <AuthPage title="Choose a new password" onSubmit={() => void choosing.run()}>
      {isChosen && (
        <Notice tone="good" title="Your password is changed">
          Every session has ended{revokesKeys && ', and your API keys are revoked'}. <a href={hrefTo('')}>Sign in</a>{' '}
          with the new one.
        </Notice>
      )}
      {isGone && (
        <Notice tone="bad" isUrgent title="This link is not valid any more">
          It was used, or is older than half an hour. <a href={hrefTo('reset')}>Ask for another</a>.
        </Notice>
      )}
      {failure !== null && !isGone && failure.param === null && <FailureNotice failure={failure} />}
      <NewPassword label="Your new password" value={password} onText={setPassword} param="password" failure={failure} />
      <Switch
        label="Revoke my API keys too"
        hint="If somebody else may have used your account. Programs need new keys then."
        isOn={revokesKeys}
        disabled={isChosen}
        onSwitch={setRevokesKeys}
      />
      <button type="submit" class="button primary wide" disabled={choosing.isBusy || isChosen}>
        {choosing.isBusy ? 'Changing it…' : 'Change the password'}
      </button>
    </AuthPage>
  )
}
