import { useState } from 'preact/hooks'
import type { AccountToday } from '../../console/account/schemas.ts'
import { AccountDeletion } from '../parts/account-deletion.tsx'
import { Badge } from '../parts/badge.tsx'
import { Button } from '../parts/button.tsx'
import { Switch, TextField } from '../parts/field.tsx'
import { Later } from '../parts/later.tsx'
import { FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { RoutingDefaults } from '../parts/routing-defaults.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateOf, humanize, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { currentSession, may, renew, user } from '../state/session.ts'
import { signOut } from '../state/sign-out.ts'
import { NewPassword } from './sign-in.tsx'
import { TestResult } from './single-sign-on-test.tsx'
import { TwoFactor } from './two-factor.tsx'

const loadSingleSignOn = async () => (await import('./single-sign-on-settings.tsx')).SingleSignOnCard

export function Settings() {
  const account = useResource('GET /api/v1/account')
  return (
    <Page title="Settings" about={`${user.value?.email ?? ''}, ${user.value?.role ?? ''}`}>
      <TestResult />
      <Loaded resource={account} what="the account">
        {found => (
          <>
            <AccountCard account={found} onChange={account.set} />
            <RoutingDefaults account={found} mayChange={may('account.change')} onChange={account.set} />
          </>
        )}
      </Loaded>
      <Sessions />
      <Password />
      <TwoFactor />
      {may('account.secure') && <Later load={loadSingleSignOn} what="single sign-on" />}
      {may('account.delete') && account.data !== undefined && <AccountDeletion name={account.data.name} />}
    </Page>
  )
}

type AccountCardProps = { readonly account: AccountToday; readonly onChange: (account: AccountToday) => void }

function AccountCard({ account, onChange }: AccountCardProps) {
  const [name, setName] = useState(account.name)
  const mayChange = may('account.change')
  const maySecure = may('account.secure')
  const change = async (
    body: { readonly name: string } | { readonly web: boolean } | { readonly requires_two_factor: boolean },
  ) => {
    const changed = await callApi('PATCH /api/v1/account', { body })
    onChange(changed)
    const current = currentSession.peek()
    if (current) currentSession.value = { ...current, account: { ...current.account, name: changed.name } }
  }
  const renaming = useAction(async () => {
    await change({ name: name.trim() })
    showToast('Account renamed')
  })
  const webbing = useAction(async (web: boolean) => {
    await change({ web })
    showToast(web ? 'Web access enabled' : 'Web access disabled')
  })
  const securing = useAction(async (requires: boolean) => {
    await change({ requires_two_factor: requires })
    showToast(requires ? 'Two-factor sign-in required' : 'Two-factor sign-in optional')
    // The owner may have to set it up as well.
    await renew()
  })
  return (
    <Card title="Account" about={`Plan ${humanize(account.plan)}, since ${dateOf(account.created_at)}`}>
      <form
        class="row"
        onSubmit={event => {
          event.preventDefault()
          void renaming.run()
        }}
      >
        <TextField
          label="Name"
          required
          maxLength={64}
          disabled={!mayChange}
          value={name}
          onText={setName}
          param="name"
          failure={renaming.failure}
        />
        {mayChange && <Button text="Rename" type="submit" disabled={renaming.isBusy || name.trim() === account.name} />}
      </form>
      {renaming.failure !== null && renaming.failure.param === null && <FailureNotice failure={renaming.failure} />}
      <Switch
        label="Web access"
        hint="Off: no request searches the web or fetches pages."
        isOn={account.web}
        disabled={!mayChange || webbing.isBusy}
        onSwitch={isOn => void webbing.run(isOn)}
      />
      {webbing.failure !== null && <FailureNotice failure={webbing.failure} />}
      <Switch
        label="Require two-factor sign-in"
        hint="Users who sign in with a password must set it up before they can use the account. Owners only."
        isOn={account.requires_two_factor}
        disabled={!maySecure || securing.isBusy}
        onSwitch={isOn => void securing.run(isOn)}
      />
      {securing.failure !== null && <FailureNotice failure={securing.failure} />}
    </Card>
  )
}

function Sessions() {
  const sessions = useResource('GET /api/v1/auth/sessions')
  const ending = useAction(async (id: string, isCurrent: boolean) => {
    if (isCurrent) return signOut('Signed out')
    await callApi('DELETE /api/v1/auth/sessions/:id', { params: { id } })
    sessions.reload()
    showToast('Session ended')
  })
  return (
    <Card title="Active sessions" about="At most 5. A new sign-in ends the oldest.">
      {ending.failure !== null && <FailureNotice failure={ending.failure} />}
      <Loaded resource={sessions} what="sessions">
        {({ data }) => (
          <Table
            caption="Your sessions"
            rows={data}
            rowKey={({ id }) => id}
            columns={[
              {
                name: 'Device',
                isHeading: true,
                show: one => (
                  <>
                    <span title={one.user_agent ?? undefined}>{browserOf(one.user_agent)}</span>{' '}
                    {one.current && <Badge tone="good">current</Badge>}
                  </>
                ),
              },
              { name: 'Last used', show: one => relativeTime(one.last_used_at) },
              { name: 'Started', from: 'middle', show: one => dateOf(one.created_at) },
              { name: 'Expires', from: 'wide', show: one => relativeTime(one.expires_at) },
              {
                name: '',
                show: one => (
                  <Button
                    text={one.current ? 'Sign out' : 'End session'}
                    look="small danger-text"
                    aria-label={one.current ? 'Sign out here' : `End session on ${browserOf(one.user_agent)}`}
                    disabled={ending.isBusy}
                    onClick={() => void ending.run(one.id, one.current)}
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  )
}

const browsers = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari', 'curl'] as const
const browserNames: Readonly<Record<string, string>> = { Edg: 'Edge', OPR: 'Opera' }
const systems = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS X', 'Linux'] as const

/** Returns browser and system of a user agent. The order matters, since user agents also name other browsers. */
function browserOf(agent: string | null): string {
  if (agent === null) return 'Unknown client'
  const browser = browsers.find(one => agent.includes(`${one}/`))
  const system = systems.find(one => agent.includes(one))
  if (browser === undefined) return agent.split(' ')[0] ?? agent
  return `${browserNames[browser] ?? browser}${system === undefined ? '' : ` on ${system.replace('Mac OS X', 'macOS')}`}`
}

function Password() {
  const [current, setCurrent] = useState('')
  const [fresh, setFresh] = useState('')
  const changing = useAction(async () => {
    await callApi('PUT /api/v1/auth/password', { body: { current_password: current, new_password: fresh } })
    setCurrent('')
    setFresh('')
    showToast('Password changed; other sessions ended')
  })
  const { failure } = changing
  return (
    <Card title="Password" about="Changing it ends your other sessions.">
      <form
        class="narrow"
        onSubmit={event => {
          event.preventDefault()
          void changing.run()
        }}
      >
        {failure !== null && failure.param === null && <FailureNotice failure={failure} />}
        <input type="hidden" name="username" autocomplete="username" value={user.value?.email} />
        <TextField
          label="Current password"
          type="password"
          name="password"
          autocomplete="current-password"
          required
          value={current}
          onText={setCurrent}
        />
        <NewPassword label="New password" value={fresh} onText={setFresh} param="new_password" failure={failure} />
        <div class="actions">
          <Button
            text={changing.isBusy ? 'Saving…' : 'Change password'}
            type="submit"
            look="primary"
            disabled={changing.isBusy}
          />
        </div>
      </form>
    </Card>
  )
}
