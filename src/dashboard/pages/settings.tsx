import { useState } from 'preact/hooks'
import type { ShownSession } from '../../console/auth/schemas.ts'
import { AccountPolicy, type AccountProps, AccountRules } from '../parts/account-policy.tsx'
import { Button } from '../parts/controls.tsx'
import { Switch, TextField } from '../parts/field.tsx'
import { InlineForm, ownPassword, submitForm, useForm } from '../parts/form.tsx'
import { signOut } from '../parts/navigation.tsx'
import { Badge, FailureNotice, Later, Loaded } from '../parts/notice.tsx'
import { Card, Page, Pairs, showToast } from '../parts/page.tsx'
import { action, ResourceView, useActions } from '../parts/resource.tsx'
import { callApi } from '../state/api.ts'
import { formatDate, humanize, relativeTime } from '../state/format.ts'
import { limitFields, limitLabels, toLimits, toLimitTexts } from '../state/keys.ts'
import { useAction, useRegistration, useResource } from '../state/resource.ts'
import { currentSession, end, may, renew, user } from '../state/session.ts'
import { newPasswordField } from './sign-in.tsx'
import { TestResult } from './single-sign-on.tsx'
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
            <Limits account={found} onChange={account.set} />
            <AccountPolicy account={found} onChange={account.set} />
          </>
        )}
      </Loaded>
      <AccountRules resource={account} />
      <Sessions />
      <Password />
      <TwoFactor />
      {may('account.secure') && <Later load={loadSingleSignOn} what="single sign-on" />}
      {may('account.delete') && account.data !== undefined && <AccountDeletion name={account.data.name} />}
    </Page>
  )
}

/** Changes the account; one at a time, with one error. */
function useAccountChange(onChange: AccountProps['onChange']) {
  return useAction(async (body: Readonly<Record<string, unknown>>, toast: string) => {
    const changed = await callApi('PATCH /api/v1/account', { body })
    onChange(changed)
    const current = currentSession.peek()
    if (current) currentSession.value = { ...current, account: { ...current.account, name: changed.name } }
    showToast(toast)
    // The owner may have to set it up as well.
    if (body.requires_two_factor !== undefined) await renew()
  })
}

function AccountCard({ account, onChange }: AccountProps) {
  const [name, setName] = useState(account.name)
  const mayChange = may('account.change')
  const { run, isBusy, failure } = useAccountChange(onChange)
  return (
    <Card title="Account" about={`Plan ${humanize(account.plan)}, since ${formatDate(account.created_at)}`}>
      <form
        class="row"
        onSubmit={event => submitForm(event, { run: () => run({ name: name.trim() }, 'Account renamed') })}
      >
        <TextField
          label="Name"
          required
          maxLength={64}
          disabled={!mayChange}
          value={name}
          onText={setName}
          param="name"
          failure={failure}
        />
        {mayChange && <Button text="Rename" type="submit" disabled={isBusy || name.trim() === account.name} />}
      </form>
      {failure !== null && failure.param !== 'name' && <FailureNotice failure={failure} />}
      <Switch
        label="Web access"
        hint="Off: no request searches the web or fetches pages."
        isOn={account.web}
        disabled={!mayChange || isBusy}
        onSwitch={web => void run({ web }, web ? 'Web access enabled' : 'Web access disabled')}
      />
      <Switch
        label="Require two-factor sign-in"
        hint="Users who sign in with a password must set it up before they can use the account. Owners only."
        isOn={account.requires_two_factor}
        disabled={!may('account.secure') || isBusy}
        onSwitch={isOn =>
          void run({ requires_two_factor: isOn }, `Two-factor sign-in ${isOn ? 'required' : 'optional'}`)
        }
      />
    </Card>
  )
}

const accountLimitFields = limitFields.filter(({ param }) => param !== 'limits.monthly_cost_usd')

/** The limits of the account with their origin; owners of the operator's account change them. */
function Limits({ account, onChange }: AccountProps) {
  const { plan, limits, own_limits: own, may_change_limits: mayChange } = account
  const form = useForm(toLimitTexts({ ...own, monthly_cost_usd: null }), async texts => {
    const { monthly_cost_usd: _, ...wanted } = toLimits(texts)
    onChange(await callApi('PATCH /api/v1/account', { body: { limits: wanted } }))
    showToast('Limits changed')
  })
  const rules = useRegistration()
  const usd = (value: number) => `$${value.toLocaleString('en')}`
  const getOrigin = (value: number | null) => (value === null ? `of plan ${humanize(plan)}` : 'set for this account')
  return (
    <Card title="Limits" about="Of all requests of the account. Keys, tags and projects can have limits of their own.">
      <Pairs
        look="wide"
        of={(['requests_per_minute', 'concurrent_requests', 'daily_tokens', 'daily_cost_usd'] as const).map(name => [
          limitLabels[name],
          `${name === 'daily_cost_usd' ? usd(limits[name]) : limits[name].toLocaleString('en')}, ${getOrigin(own[name])}`,
        ])}
      />
      {mayChange ? (
        <details>
          <summary>Change limits</summary>
          <p class="hint">This account is the operator’s. An empty field means the limit of the plan.</p>
          <InlineForm form={form} fields={accountLimitFields} submit={['Save limits', 'Saving…']} />
        </details>
      ) : (
        <p class="hint">
          The operator of the gateway changes them:{' '}
          <code>
            {rules?.operator_command} accounts limits {user.value?.email} --rpm {limits.requests_per_minute}
          </code>
        </p>
      )}
    </Card>
  )
}

function Sessions() {
  const sessions = useResource('GET /api/v1/auth/sessions')
  return (
    <ResourceView
      title="Active sessions"
      about="At most 5. A new sign-in ends the oldest."
      caption="Your sessions"
      what="sessions"
      resource={sessions}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        {
          name: 'Device',
          isHeading: true,
          show: ({ user_agent, current }) => (
            <>
              <span title={user_agent ?? undefined}>{browserName(user_agent)}</span>{' '}
              {current && <Badge tone="good">current</Badge>}
            </>
          ),
        },
        { name: 'Last used', show: ({ last_used_at }) => relativeTime(last_used_at) },
        { name: 'Started', from: 'middle', show: ({ created_at }) => formatDate(created_at) },
        { name: 'Expires', from: 'wide', show: ({ expires_at }) => relativeTime(expires_at) },
      ]}
      empty={['No sessions', 'Sign in to see the session here.']}
      actions={[endSession]}
    />
  )
}

const endSession = action<ShownSession>({
  text: ({ current }) => (current ? 'Sign out' : 'End session'),
  label: ({ current, user_agent }) => (current ? 'Sign out here' : `End session on ${browserName(user_agent)}`),
  isDangerous: true,
  perform: async ({ id, current }) => {
    if (!current) await callApi('DELETE /api/v1/auth/sessions/:id', { params: { id } })
    else await signOut('Signed out')
    return current ? null : 'Session ended'
  },
})

const browsers = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari', 'curl'] as const
const browserNames: Readonly<Record<string, string>> = { Edg: 'Edge', OPR: 'Opera' }
const systems = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS X', 'Linux'] as const

/** Returns browser and system of a user agent. The order matters, since user agents also name other browsers. */
function browserName(agent: string | null): string {
  if (agent === null) return 'Unknown client'
  const browser = browsers.find(name => agent.includes(`${name}/`))
  const system = systems.find(name => agent.includes(name))
  if (browser === undefined) return agent.split(' ')[0] ?? agent
  return `${browserNames[browser] ?? browser}${system === undefined ? '' : ` on ${system.replace('Mac OS X', 'macOS')}`}`
}

function Password() {
  const form = useForm({ current_password: '', new_password: '' }, async body => {
    await callApi('PUT /api/v1/auth/password', { body })
    form.set({ current_password: '', new_password: '' })
    showToast('Password changed; other sessions ended')
  })
  return (
    <Card title="Password" about="Changing it ends your other sessions.">
      <InlineForm
        form={form}
        fields={[
          { ...ownPassword, param: 'current_password', label: 'Current password' },
          newPasswordField('new_password', 'New password'),
        ]}
        submit={['Change password', 'Saving…']}
      >
        <input type="hidden" name="username" autocomplete="username" value={user.value?.email} />
      </InlineForm>
    </Card>
  )
}

const needsPassword = () => currentSession.value?.single_sign_on !== true

/** Deletes the account. The owner types its name and, without single sign-on, the password. */
const deletion = action<string, { readonly name: string; readonly password: string }>({
  text: () => 'Delete account',
  isDangerous: true,
  start: () => ({ name: '', password: '' }),
  dialog: (accountName, { name, password }) => ({
    title: 'Delete this account?',
    submit: 'Delete account',
    isReady: name === accountName && (!needsPassword() || password !== ''),
    about: (
      <p>
        All API keys stop working, all users lose access, and names, email addresses, projects, webhooks and alerts are
        erased. A running billing cycle ends now and is invoiced. Usage and invoices stay without names.
      </p>
    ),
    fields: [
      { param: 'name', label: `Type the account name: ${accountName}`, required: true },
      ...(needsPassword() ? [ownPassword] : []),
    ],
  }),
  perform: async (_, { name, password }) => {
    await callApi('DELETE /api/v1/account', { body: { name, ...(needsPassword() ? { password } : {}) } })
    end('Account deleted')
    return null
  },
})

function AccountDeletion({ name }: { readonly name: string }) {
  const { buttons, dialogs } = useActions<string>(() => undefined)
  return (
    <Card title="Delete account" about="Ends all keys, users and settings of the account. This cannot be undone.">
      <div class="actions">{buttons(name, [deletion], '')}</div>
      {dialogs}
    </Card>
  )
}
