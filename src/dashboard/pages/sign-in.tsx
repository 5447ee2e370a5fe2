import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Button, Door, Icon } from '../parts/controls.tsx'
import {
  type Field,
  type FieldsProps,
  FormFailure,
  FormFields,
  ownPassword,
  submitForm,
  useForm,
  type Values,
} from '../parts/form.tsx'
import { ProductLinks } from '../parts/navigation.tsx'
import { Notice } from '../parts/notice.tsx'
import { callOpen } from '../state/api.ts'
import { asFailure, type RequestError } from '../state/api-error.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useRegistration } from '../state/resource.ts'
import { begin, endedBecause } from '../state/session.ts'

/** The end of a lockout is never shown, since that would reveal that there is one. The advice is the same. */
const manyTries = 5

export const emailField: Field<'email'> = {
  param: 'email',
  label: 'Email',
  type: 'email',
  name: 'email',
  autocomplete: 'username',
  required: true,
}

/** A code of two-factor sign-in. */
export const codeField: Field<'code'> = {
  param: 'code',
  label: 'Two-factor code',
  name: 'code',
  autocomplete: 'one-time-code',
  required: true,
  minLength: 6,
  maxLength: 40,
  hint: '6 digits of your authenticator app, or a recovery code.',
}

export const newPasswordField = <Param extends string>(param: Param, label: string): Field<Param> => ({
  param,
  label,
  type: 'password',
  name: 'new-password',
  autocomplete: 'new-password',
  required: true,
  minLength: 8,
  maxLength: 128,
  hint: '8 to 128 characters. Use several words.',
})

type SignInProps = {
  /** Shown above the ways to sign in. */
  readonly notice?: ComponentChildren
}

/** Sign-in page: single sign-on, a password, or both. */
export function SignIn({ notice }: SignInProps) {
  const rules = useRegistration()
  const [wantsPassword, setWantsPassword] = useState(false)
  const { form, needsCode, tries } = usePasswordSignIn()
  const provider = rules?.single_sign_on ?? null
  const hasPassword = rules?.password_sign_in !== false || wantsPassword
  const isWrong = tries >= manyTries && form.failure?.code === 'invalid_credentials'
  return (
    <AuthPage
      title="Sign in"
      form={form}
      fields={hasPassword ? [emailField, passwordField, ...(needsCode ? [codeField] : [])] : []}
      submit={hasPassword && ['Sign in', 'Signing in…']}
      advice={isWrong && <LockoutAdvice />}
      foot={hasPassword && <SignInHints isOpen={rules?.mode === 'open'} />}
    >
      {notice}
      {endedBecause.value !== null && <Notice tone="warn">{endedBecause.value}</Notice>}
      {provider !== null && (
        <a class={`button wide ${hasPassword ? '' : 'primary'}`} href="/api/v1/auth/oidc/start">
          Sign in with {provider}
        </a>
      )}
      {!hasPassword && (
        <p class="hint">
          Password sign-in is disabled. If the identity provider fails, the operator can open it for 1 hour with{' '}
          <code>accounts reset-password</code>.{' '}
          <Button text="Use a password" look="link" onClick={() => setWantsPassword(true)} />
        </p>
      )}
    </AuthPage>
  )
}

const passwordField = { ...ownPassword, label: 'Password' }

function usePasswordSignIn() {
  // Stays after a wrong code.
  const [needsCode, setNeedsCode] = useState(false)
  const [tries, setTries] = useState(0)
  const form = useForm({ email: '', password: '', code: '' }, async ({ email, password, code }) => {
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
  const set = (change: Partial<typeof form.values>) => {
    // Another user may not need a code.
    if (change.code === undefined) setNeedsCode(false)
    form.set(change)
  }
  return { form: { ...form, set }, needsCode, tries }
}

function LockoutAdvice() {
  return (
    <Notice tone="warn" title="Sign-in still fails?">
      After 10 failed attempts in 15 minutes, sign-in is locked on new networks, even with the correct password. A new
      email address must first be confirmed by the link in the email. Wait 15 minutes, or{' '}
      <a href={hrefTo('reset')}>reset your password</a>.
    </Notice>
  )
}

/** `isOpen` = anyone can register. */
function SignInHints({ isOpen }: { readonly isOpen: boolean }) {
  return (
    <>
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
  const form = useForm({ email: '', password: '', name: '' }, async ({ name, ...body }) => {
    const named = name.trim() === '' ? {} : { name: name.trim() }
    begin(await callOpen('POST /api/v1/auth/register', { body: { ...body, ...named } }))
    location.hash = hrefTo('')
  })
  const isClosed = rules !== undefined && rules.mode !== 'open'
  return (
    <AuthPage
      title="Create account"
      form={form}
      fields={isClosed ? [] : [emailField, newPasswordField('password', 'Password'), nameField]}
      submit={!isClosed && ['Create account', 'Creating…']}
      foot={
        <p class="hint">
          Have {isClosed ? 'an account' : 'one'} already? <a href={hrefTo('')}>Sign in</a>.
        </p>
      }
    >
      {isClosed ? (
        <Notice tone="warn" title="Registration is closed">
          Ask an owner of an account to invite you, or the operator of this gateway for an account.
        </Notice>
      ) : (
        <p class="about">Free, on the evaluation plan: the same models and endpoints, with smaller limits.</p>
      )}
      {rules !== undefined && !isClosed && (rules.domains !== null || rules.verifies_email) && (
        <p class="about">
          {rules.domains !== null && `Only for email addresses at ${rules.domains.join(', ')}. `}
          {rules.verifies_email && 'We send a link to confirm your address.'}
        </p>
      )}
    </AuthPage>
  )
}

const nameField = {
  param: 'name',
  label: 'Account name',
  name: 'organization',
  autocomplete: 'organization',
  maxLength: 64,
  hint: 'Optional, such as a team or project. Defaults to your email address.',
} as const

type AuthPageProps = {
  readonly title: string
  /** Text of the button, and the one while it sends; false = there is nothing to send. */
  readonly submit: readonly [text: string, busy: string] | false
  /** Nothing is left to send. */
  readonly isDone?: boolean
  /** Explains errors by their code. */
  readonly explained?: Readonly<Partial<Record<RequestError['code'], ComponentChildren>>>
  readonly advice?: ComponentChildren
  /** Between fields and button. */
  readonly tools?: ComponentChildren
  readonly foot?: ComponentChildren
  readonly children?: ComponentChildren
}

/** Page for unauthenticated users: one form with an introduction. */
export function AuthPage<V extends Values>(props: AuthPageProps & FieldsProps<V>) {
  const { title, form, fields, submit, isDone = false, explained = {}, advice, tools, foot, children } = props
  document.title = `${title} · gateway-ai`
  return (
    <Door>
      <form class="card" onSubmit={event => submitForm(event, form)}>
        <h1>{title}</h1>
        {children}
        {(form.failure && explained[form.failure.code]) ?? <FormFailure form={form} fields={fields} />}
        {advice}
        <FormFields form={form} fields={fields} />
        {tools}
        {submit !== false && (
          <Button
            type="submit"
            look="primary wide"
            disabled={form.isBusy || isDone}
            text={submit[form.isBusy ? 1 : 0]}
          />
        )}
        {foot}
      </form>
      <p class="hint door-foot">
        <Icon name="check" size={14} /> Prompts and outputs are never stored.
      </p>
      <ProductLinks />
    </Door>
  )
}
