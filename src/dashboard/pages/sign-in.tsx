import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Button } from '../parts/button.tsx'
import { TextField } from '../parts/field.tsx'
import { Icon } from '../parts/icon.tsx'
import { Logo } from '../parts/logo.tsx'
import { FailureNotice, Notice } from '../parts/notice.tsx'
import { ProductLinks } from '../parts/product-links.tsx'
import { useAction } from '../state/action.ts'
import { callOpen } from '../state/api.ts'
import { asFailure, type RequestError } from '../state/api-error.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useRegistration } from '../state/registration.ts'
import { begin, endedBecause } from '../state/session.ts'

/** The end of a lockout is never shown, since that would reveal that there is one. The advice is the same. */
const manyTries = 5

type SignInProps = {
  /** Shown above the ways to sign in. */
  readonly notice?: ComponentChildren
}

/** Sign-in page: single sign-on, a password, or both. */
export function SignIn({ notice }: SignInProps) {
  const rules = useRegistration()
  const [wantsPassword, setWantsPassword] = useState(false)
  const signing = usePasswordSignIn()
  const provider = rules?.single_sign_on ?? null
  const hasPassword = rules?.password_sign_in !== false || wantsPassword
  return (
    <AuthPage title="Sign in" onSubmit={() => void signing.run()}>
      {notice}
      {endedBecause.value !== null && <Notice tone="warn">{endedBecause.value}</Notice>}
      {provider !== null && (
        <a class={`button wide ${hasPassword ? '' : 'primary'}`} href="/api/v1/auth/oidc/start">
          Sign in with {provider}
        </a>
      )}
      {hasPassword ? (
        <PasswordFields signing={signing} isOpen={rules?.mode === 'open'} />
      ) : (
        <p class="hint">
          Password sign-in is disabled. If the identity provider fails, the operator can open it for 1 hour with{' '}
          <code>accounts reset-password</code>.{' '}
          <Button text="Use a password" look="link" onClick={() => setWantsPassword(true)} />
        </p>
      )}
    </AuthPage>
  )
}

function usePasswordSignIn() {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  // Stays after a wrong code.
  const [needsCode, setNeedsCode] = useState(false)
  const [tries, setTries] = useState(0)
  const action = useAction(async () => {
    try {
      begin(await callOpen('POST /api/v1/auth/login', { body: { email, password, ...(needsCode ? { code } : {}) } }))
      // The page of a failed single sign-on would stay.
      if (hashRoute.peek().path[0] === 'sso') location.hash = hrefTo('')
    } catch (thrown) {
      if (asFailure(thrown).code === 'two_factor_required') return setNeedsCode(true)
      setTries(tries + 1)
      throw thrown
    }
  })
  const retype = (set: (text: string) => void) => (text: string) => {
    setNeedsCode(false)
    set(text)
  }
  const [setNextEmail, setNextPassword] = [retype(setEmail), retype(setPassword)]
  return { ...action, email, setNextEmail, password, setNextPassword, code, setCode, needsCode, tries }
}

type PasswordFieldsProps = {
  readonly signing: ReturnType<typeof usePasswordSignIn>
  /** Anyone can register. */
  readonly isOpen: boolean
}

function PasswordFields({ signing, isOpen }: PasswordFieldsProps) {
  return (
    <>
      {signing.failure !== null && <FailureNotice failure={signing.failure} />}
      {signing.tries >= manyTries && signing.failure?.code === 'invalid_credentials' && (
        <Notice tone="warn" title="Sign-in still fails?">
          After 10 failed attempts in 15 minutes, sign-in is locked on new networks, even with the correct password. A
          new email address must first be confirmed by the link in the email. Wait 15 minutes, or{' '}
          <a href={hrefTo('reset')}>reset your password</a>.
        </Notice>
      )}
      <EmailField value={signing.email} onText={signing.setNextEmail} />
      <TextField
        label="Password"
        type="password"
        name="password"
        autocomplete="current-password"
        required
        value={signing.password}
        onText={signing.setNextPassword}
      />
      {signing.needsCode && <CodeField value={signing.code} onText={signing.setCode} />}
      <Button
        text={signing.isBusy ? 'Signing in…' : 'Sign in'}
        type="submit"
        look="primary wide"
        disabled={signing.isBusy}
      />
      <p class="hint">
        <a href={hrefTo('reset')}>Forgot your password?</a>
      </p>
      <p class="hint">
        Self-hosting? The first start printed an email address and a password in the terminal.
        {isOpen && (
          <>
            {' '}
            Otherwise <a href={hrefTo('sign-up')}>create an account</a>.
          </>
        )}
      </p>
    </>
  )
}

/** Registration page; signs the owner in at once. */
export function SignUp() {
  const rules = useRegistration()
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const signing = useAction(async () => {
    const body = { email, password, ...(name.trim() === '' ? {} : { name: name.trim() }) }
    begin(await callOpen('POST /api/v1/auth/register', { body }))
    location.hash = hrefTo('')
  })
  const { failure } = signing
  if (rules !== null && rules.mode !== 'open')
    return (
      <AuthPage title="Create account" onSubmit={() => {}}>
        <Notice tone="warn" title="Registration is closed">
          Ask an owner of an account to invite you, or the operator of this gateway for an account.
        </Notice>
        <p class="hint">
          Have an account already? <a href={hrefTo('')}>Sign in</a>.
        </p>
      </AuthPage>
    )
  return (
    <AuthPage title="Create account" onSubmit={() => void signing.run()}>
      <p class="about">Free, on the evaluation plan: the same models and endpoints, with smaller limits.</p>
      {rules !== null && (rules.domains !== null || rules.verifies_email) && (
        <p class="about">
          {rules.domains !== null && `Only for email addresses at ${rules.domains.join(', ')}. `}
          {rules.verifies_email && 'We send a link to confirm your address.'}
        </p>
      )}
      {failure !== null && failure.param === null && <FailureNotice failure={failure} />}
      <EmailField value={email} onText={setEmail} failure={failure} />
      <NewPassword label="Password" value={password} onText={setPassword} param="password" failure={failure} />
      <TextField
        label="Account name"
        name="organization"
        autocomplete="organization"
        maxLength={64}
        hint="Optional, such as a team or project. Defaults to your email address."
        value={name}
        onText={setName}
        param="name"
        failure={failure}
      />
      <Button
        text={signing.isBusy ? 'Creating…' : 'Create account'}
        type="submit"
        look="primary wide"
        disabled={signing.isBusy}
      />
      <p class="hint">
        Have one already? <a href={hrefTo('')}>Sign in</a>.
      </p>
    </AuthPage>
  )
}

/** Page of the link in an invitation. */
export function InvitationPage({ token }: { readonly token: string }) {
  const [password, setPassword] = useState('')
  const accepting = useAction(async () => {
    const started = await callOpen('POST /api/v1/team/invitations/:token/accept', {
      params: { token },
      body: { password },
    })
    begin(started)
    location.hash = hrefTo('')
  })
  const { failure } = accepting
  const isGone = failure?.code === 'not_found'
  return (
    <AuthPage title="Accept invitation" onSubmit={() => void accepting.run()}>
      <p class="about">Choose a password to join. You sign in with the invited email address.</p>
      {isGone && (
        <Notice tone="bad" isUrgent title="This invitation has expired or was used">
          Invitations expire after 7 days. Request a new one.
        </Notice>
      )}
      {failure !== null && !isGone && failure.param === null && <FailureNotice failure={failure} />}
      <NewPassword label="Your new password" value={password} onText={setPassword} param="password" failure={failure} />
      <Button
        text={accepting.isBusy ? 'Joining…' : 'Join the team'}
        type="submit"
        look="primary wide"
        disabled={accepting.isBusy}
      />
    </AuthPage>
  )
}

type EmailFieldProps = {
  readonly value: string
  readonly onText: (text: string) => void
  readonly failure?: RequestError | null
}

/** Input for the sign-in email address. */
export function EmailField({ value, onText, failure = null }: EmailFieldProps) {
  return (
    <TextField
      label="Email"
      type="email"
      name="email"
      autocomplete="username"
      required
      value={value}
      onText={onText}
      param="email"
      failure={failure}
    />
  )
}

/** Input for a code of two-factor sign-in. */
export function CodeField({ value, onText }: Pick<EmailFieldProps, 'value' | 'onText'>) {
  return (
    <TextField
      label="Two-factor code"
      name="code"
      autocomplete="one-time-code"
      required
      minLength={6}
      maxLength={40}
      hint="6 digits of your authenticator app, or a recovery code."
      value={value}
      onText={onText}
    />
  )
}

type NewPasswordProps = {
  readonly label: string
  readonly value: string
  readonly onText: (text: string) => void
  readonly param: string
  readonly failure: RequestError | null
}

/** Input for a new password. */
export function NewPassword({ label, value, onText, param, failure }: NewPasswordProps) {
  return (
    <TextField
      label={label}
      type="password"
      name="new-password"
      autocomplete="new-password"
      required
      minLength={8}
      maxLength={128}
      hint="8 to 128 characters. Use several words."
      value={value}
      onText={onText}
      param={param}
      failure={failure}
    />
  )
}

type DoorProps = { readonly title: string; readonly onSubmit: () => void; readonly children: ComponentChildren }

/** Page for unauthenticated users: one form with an introduction. */
export function AuthPage({ title, onSubmit, children }: DoorProps) {
  document.title = `${title} · gateway-ai`
  return (
    <main class="door">
      <p class="brand">
        <Logo /> gateway-ai
      </p>
      <form
        class="card"
        onSubmit={event => {
          event.preventDefault()
          onSubmit()
        }}
      >
        <h1>{title}</h1>
        {children}
      </form>
      <p class="hint door-foot">
        <Icon name="check" size={14} /> Prompts and outputs are never stored.
      </p>
      <ProductLinks />
    </main>
  )
}
