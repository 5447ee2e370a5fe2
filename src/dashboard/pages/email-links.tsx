/** Pages of the links in emails: reset a password, confirm an address, accept an invitation. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Switch } from '../parts/field.tsx'
import { ownPassword, useForm } from '../parts/form.tsx'
import { Notice } from '../parts/notice.tsx'
import { callOpen } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { useRegistration } from '../state/resource.ts'
import { begin } from '../state/session.ts'
import { AuthPage, emailField, newPasswordField } from './sign-in.tsx'

const expired = (what: string, about: ComponentChildren) => (
  <Notice tone="bad" isUrgent title={`This ${what} has expired or was used`}>
    {about}
  </Notice>
)

/** Password reset: requests the email, or sets the password after its link was opened. */
export function Reset({ token }: { readonly token: string | undefined }) {
  return token === undefined ? <RequestReset /> : <ChoosePassword token={token} />
}

function RequestReset() {
  const [isSent, setSent] = useState(false)
  const form = useForm({ email: '' }, async body => {
    await callOpen('POST /api/v1/auth/reset', { body })
    setSent(true)
  })
  // The same mail server sends the emails that confirm an address.
  const rules = useRegistration()
  const sendsNoMail = form.failure?.code === 'not_found' || rules?.verifies_email === false
  return (
    <AuthPage
      title="Reset password"
      form={form}
      fields={sendsNoMail ? [] : [emailField]}
      submit={!sendsNoMail && ['Send reset link', 'Sending…']}
      isDone={isSent}
      explained={{ not_found: <></> }}
      foot={
        <p class="hint">
          <a href={hrefTo('')}>Back to sign-in</a>
        </p>
      }
    >
      {sendsNoMail && (
        <Notice tone="warn" title="Email is not configured">
          Ask the operator to reset the password:{' '}
          <code>
            {rules?.operator_command} accounts reset-password {'<email>'}
          </code>
          .
        </Notice>
      )}
      {rules !== undefined && !sendsNoMail && (
        <p class="about">We send a reset link to your address. It expires after 30 minutes.</p>
      )}
      {isSent && (
        <Notice tone="good" title="Check your email">
          If an account uses this address, we sent a reset link.
        </Notice>
      )}
    </AuthPage>
  )
}

function ChoosePassword({ token }: { readonly token: string }) {
  const [revokesKeys, setRevokesKeys] = useState(false)
  const [isChosen, setChosen] = useState(false)
  const form = useForm({ password: '' }, async ({ password }) => {
    const body = { password, revoke_keys: revokesKeys }
    await callOpen('POST /api/v1/auth/reset/:token', { params: { token }, body })
    setChosen(true)
  })
  return (
    <AuthPage
      title="Choose a new password"
      form={form}
      fields={[newPasswordField('password', 'Your new password')]}
      submit={['Change password', 'Saving…']}
      isDone={isChosen}
      explained={{
        not_found: expired(
          'link',
          <>
            Links expire after 30 minutes. <a href={hrefTo('reset')}>Request a new one</a>.
          </>,
        ),
      }}
      tools={
        <Switch
          label="Revoke my API keys too"
          hint="Select this if another person may have used your account. Programs then need new keys."
          isOn={revokesKeys}
          disabled={isChosen}
          onSwitch={setRevokesKeys}
        />
      }
    >
      {isChosen && (
        <Notice tone="good" title="Password changed">
          All sessions were ended{revokesKeys && ', and your API keys are revoked'}. <a href={hrefTo('')}>Sign in</a>{' '}
          with the new one.
        </Notice>
      )}
    </AuthPage>
  )
}

/** Signs in by the token of a link and a password. */
function useTokenSignIn(
  route: 'POST /api/v1/auth/verify/:token' | 'POST /api/v1/team/invitations/:token/accept',
  token: string,
) {
  return useForm({ password: '' }, async body => {
    begin(await callOpen(route, { params: { token }, body }))
    location.hash = hrefTo('')
  })
}

/** Page of the link in a confirmation email. The password proves that the reader of the mailbox also registered. */
export function Verify({ token }: { readonly token: string }) {
  return (
    <AuthPage
      title="Confirm your email address"
      form={useTokenSignIn('POST /api/v1/auth/verify/:token', token)}
      fields={[{ ...ownPassword, label: 'Password' }]}
      submit={['Confirm email address', 'Confirming…']}
      explained={{
        not_found: expired(
          'link',
          <>
            Links expire after 24 hours. <a href={hrefTo('')}>Sign in</a>, or{' '}
            <a href={hrefTo('sign-up')}>register again</a>.
          </>,
        ),
        invalid_credentials: (
          <Notice tone="bad" isUrgent title="Wrong password">
            If you did not register, <a href={hrefTo('reset')}>choose your own password</a>: this takes over the
            address.
          </Notice>
        ),
      }}
    >
      <p class="about">Enter the password that you chose when you registered.</p>
    </AuthPage>
  )
}

/** Page of the link in an invitation. */
export function InvitationPage({ token }: { readonly token: string }) {
  return (
    <AuthPage
      title="Accept invitation"
      form={useTokenSignIn('POST /api/v1/team/invitations/:token/accept', token)}
      fields={[newPasswordField('password', 'Your new password')]}
      submit={['Join the team', 'Joining…']}
      explained={{
        not_found: expired('invitation', 'Invitations expire after 7 days. Request a new one.'),
      }}
    >
      <p class="about">Choose a password to join. You sign in with the invited email address.</p>
    </AuthPage>
  )
}
