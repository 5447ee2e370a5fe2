import { useState } from 'preact/hooks'
import { Button } from '../parts/button.tsx'
import { Switch } from '../parts/field.tsx'
import { FailureNotice, Notice } from '../parts/notice.tsx'
import { useAction } from '../state/action.ts'
import { callOpen } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { useRegistration } from '../state/registration.ts'
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
  // The same mail server sends the emails that confirm an address.
  const rules = useRegistration()
  const sendsNoMail = failure?.code === 'not_found' || rules?.verifies_email === false
  if (sendsNoMail)
    return (
      <AuthPage title="Reset password" onSubmit={() => {}}>
        <Notice tone="warn" title="Email is not configured">
          Ask the operator to reset the password: <code>bun run gateway accounts reset-password {'<email>'}</code>.
        </Notice>
        <BackToSignIn />
      </AuthPage>
    )
  return (
    <AuthPage title="Reset password" onSubmit={() => void asking.run()}>
      {rules !== null && <p class="about">We send a reset link to your address. It expires after 30 minutes.</p>}
      {isAsked && (
        <Notice tone="good" title="Check your email">
          If an account uses this address, we sent a reset link.
        </Notice>
      )}
      {failure !== null && failure.param === null && <FailureNotice failure={failure} />}
      <EmailField value={email} onText={setEmail} failure={failure} />
      <Button
        text={asking.isBusy ? 'Sending…' : 'Send reset link'}
        type="submit"
        look="primary wide"
        disabled={asking.isBusy || isAsked}
      />
      <BackToSignIn />
    </AuthPage>
  )
}

function BackToSignIn() {
  return (
    <p class="hint">
      <a href={hrefTo('')}>Back to sign-in</a>
    </p>
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
        <Notice tone="good" title="Password changed">
          All sessions were ended{revokesKeys && ', and your API keys are revoked'}. <a href={hrefTo('')}>Sign in</a>{' '}
          with the new one.
        </Notice>
      )}
      {isGone && (
        <Notice tone="bad" isUrgent title="This link has expired or was used">
          Links expire after 30 minutes. <a href={hrefTo('reset')}>Request a new one</a>.
        </Notice>
      )}
      {failure !== null && !isGone && failure.param === null && <FailureNotice failure={failure} />}
      <NewPassword label="Your new password" value={password} onText={setPassword} param="password" failure={failure} />
      <Switch
        label="Revoke my API keys too"
        hint="Select this if another person may have used your account. Programs then need new keys."
        isOn={revokesKeys}
        disabled={isChosen}
        onSwitch={setRevokesKeys}
      />
      <Button
        text={choosing.isBusy ? 'Saving…' : 'Change password'}
        type="submit"
        look="primary wide"
        disabled={choosing.isBusy || isChosen}
      />
    </AuthPage>
  )
}
