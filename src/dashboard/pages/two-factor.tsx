import { useState } from 'preact/hooks'
import type { TwoFactorSetup, TwoFactorState } from '../../console/auth/schemas.ts'
import { Button, Door, Snippet } from '../parts/controls.tsx'
import { InlineForm, ownPassword, useForm } from '../parts/form.tsx'
import { signOut } from '../parts/navigation.tsx'
import { Badge, Loaded, Notice } from '../parts/notice.tsx'
import { Card, showToast } from '../parts/page.tsx'
import { callApi } from '../state/api.ts'
import { useResource } from '../state/resource.ts'
import { renew } from '../state/session.ts'
import { codeField } from './sign-in.tsx'

/** Settings of two-factor sign-in. */
export function TwoFactor() {
  const state = useResource('GET /api/v1/auth/two-factor')
  return (
    <Card
      title="Two-factor sign-in"
      about="A password sign-in also needs a code of your authenticator app. Single sign-on and API keys do not."
    >
      <Loaded resource={state} what="two-factor sign-in">
        {found => (found.enabled ? <Enabled state={found} onChange={state.reload} /> : <SetUp onDone={state.reload} />)}
      </Loaded>
    </Card>
  )
}

/** Only page of a user whose account requires two-factor sign-in. */
export function TwoFactorFirst() {
  document.title = 'Set up two-factor sign-in · gateway-ai'
  return (
    <Door>
      <section class="card">
        <h1>Set up two-factor sign-in</h1>
        <p class="about">Your account requires it.</p>
        <SetUp onDone={() => void renew()} />
        <p class="hint">
          <Button text="Sign out" look="link" onClick={() => void signOut('Signed out')} />
        </p>
      </section>
    </Door>
  )
}

/** Asks for the password, shows the secret, takes the first code, shows the recovery codes. */
function SetUp({ onDone }: { readonly onDone: () => void }) {
  const [setup, setSetup] = useState<TwoFactorSetup | null>(null)
  const [codes, setCodes] = useState<readonly string[] | null>(null)
  const starting = useForm({ password: '' }, async body =>
    setSetup(await callApi('POST /api/v1/auth/two-factor', { body })),
  )
  const confirming = useForm({ code: '' }, async body => {
    setCodes((await callApi('POST /api/v1/auth/two-factor/confirm', { body })).recovery_codes)
    showToast('Two-factor sign-in enabled')
  })
  if (codes !== null) return <RecoveryCodes codes={codes} onDone={onDone} />
  if (setup === null) return <InlineForm form={starting} fields={[ownPassword]} submit={['Set up', 'Checking…']} />
  return (
    <InlineForm form={confirming} fields={[codeField]} submit={['Enable', 'Checking…']}>
      <p>Scan the code with your authenticator app, or enter the secret. Then enter the code that the app shows.</p>
      <img class="qr" src={setup.qr_code} alt="QR code with the secret below" width={180} height={180} />
      <Snippet text={setup.secret} what="secret" />
    </InlineForm>
  )
}

function RecoveryCodes({ codes, onDone }: { readonly codes: readonly string[]; readonly onDone: () => void }) {
  return (
    <>
      <Notice tone="warn" title="Store these recovery codes">
        Each signs you in once without the app. They are not shown again.
      </Notice>
      <Snippet text={codes.join('\n')} what="recovery codes" />
      <div class="actions">
        <Button text="I have them" look="primary" onClick={onDone} />
      </div>
    </>
  )
}

type EnabledProps = { readonly state: TwoFactorState; readonly onChange: () => void }

function Enabled({ state, onChange }: EnabledProps) {
  const disabling = useForm({ password: '', code: '' }, async body => {
    await callApi('POST /api/v1/auth/two-factor/disable', { body })
    showToast('Two-factor sign-in disabled')
    await renew()
    onChange()
  })
  return (
    <>
      <p>
        <Badge tone="good">enabled</Badge> {state.recovery_codes_left} recovery codes left. For new ones, disable it and
        set it up again.
      </p>
      <InlineForm
        form={disabling}
        fields={[ownPassword, codeField]}
        submit={['Disable', 'Checking…']}
        look="danger-text"
      />
    </>
  )
}
