import { useState } from 'preact/hooks'
import { isAllowed, outranks, type Role, roles } from '../../core/accounts/roles.ts'
import type { ShownUser } from '../../http/schemas.ts'
import type { ShownInvitation, ShownTeam } from '../../routes/team/schemas.ts'
import { Badge } from '../parts/badge.tsx'
import { Snippet } from '../parts/copy.tsx'
import { Confirm, Dialog, FormDialog } from '../parts/dialog.tsx'
import { SelectField, TextField } from '../parts/field.tsx'
import { FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { call } from '../state/api.ts'
import { dateOf, humanize, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/hash-route.ts'
import { useResource } from '../state/resource.ts'
import type { NewInvitation } from '../state/routes.ts'
import { user } from '../state/session.ts'

const roleWords: Readonly<Record<Role, string>> = {
  member: 'Own keys, own requests',
  admin: 'All keys and requests, invites members',
  owner: 'Everything, billing too',
}

export function Team() {
  const team = useResource('GET /api/v1/team')
  const [isInviting, setInviting] = useState(false)
  const [leaving, setLeaving] = useState<ShownUser | null>(null)
  const [withdrawn, setWithdrawn] = useState<ShownInvitation | null>(null)
  const own = user.value?.role ?? 'member'
  return (
    <Page
      title="Team"
      about="Everybody here shares the account, its limits and its bill."
      actions={
        isAllowed(own, 'team.invite') && (
          <button type="button" class="button primary" onClick={() => setInviting(true)}>
            Invite somebody
          </button>
        )
      }
    >
      <Loaded resource={team} what="the team">
        {list => (
          <>
            <Card title="People">
              <People list={list} own={own} onChange={team.reload} onRemove={setLeaving} />
            </Card>
            {isAllowed(own, 'team.invite') && list.invitations.length > 0 && (
              <Card title="Invited" about="A link is good for seven days. Inviting somebody again replaces it.">
                <Table
                  caption="Open invitations"
                  rows={list.invitations}
                  keyOf={({ id }) => id}
                  columns={[
                    { name: 'E-mail', isHeading: true, show: one => one.email },
                    { name: 'Role', show: one => humanize(one.role) },
                    { name: 'Ends', from: 'middle', show: one => relativeTime(one.expires_at) },
                    {
                      name: '',
                      show: one => (
                        <button type="button" class="button small" onClick={() => setWithdrawn(one)}>
                          Withdraw
                        </button>
                      ),
                    },
                  ]}
                />
              </Card>
            )}
          </>
        )}
      </Loaded>
      {isInviting && <Invite own={own} onInvited={team.reload} onClose={() => setInviting(false)} />}
      {withdrawn !== null && (
        <Confirm
          title={`Withdraw the invitation of ${withdrawn.email}?`}
          action="Withdraw"
          isDangerous
          perform={async () => {
            await call('DELETE /api/v1/team/invitations/:id', { params: { id: withdrawn.id } })
            team.reload()
            showToast(`The invitation of ${withdrawn.email} is withdrawn.`)
          }}
          onClose={() => setWithdrawn(null)}
        >
          <p>Its link works no more.</p>
        </Confirm>
      )}
      {leaving !== null && (
        <Confirm
          title={`Remove ${leaving.email}?`}
          action="Remove"
          isDangerous
          perform={async () => {
            await call('DELETE /api/v1/team/:id', { params: { id: leaving.id } })
            team.reload()
            showToast(`${leaving.email} is removed.`)
          }}
          onClose={() => setLeaving(null)}
        >
          <p>Their keys and sessions end within a second. What they used stays in the log.</p>
        </Confirm>
      )}
    </Page>
  )
}

type PeopleProps = {
  readonly list: ShownTeam
  readonly own: Role
  readonly onChange: () => void
  readonly onRemove: (person: ShownUser) => void
}

function People({ list, own, onChange, onRemove }: PeopleProps) {
  const changing = useAction(async (person: ShownUser, role: string) => {
    await call('PATCH /api/v1/team/:id', { params: { id: person.id }, body: { role } })
    showToast(`${person.email} is ${role} now.`)
    onChange()
  })
  const isOneself = (person: ShownUser) => person.id === user.value?.id
  return (
    <>
      {changing.failure !== null && <FailureNotice failure={changing.failure} />}
      <Table
        caption="People of the account"
        rows={list.data}
        keyOf={({ id }) => id}
        columns={[
          {
            name: 'E-mail',
            isHeading: true,
            show: person => (
              <>
                {person.email} {isOneself(person) && <Badge>you</Badge>}
              </>
            ),
          },
          {
            name: 'Role',
            show: person =>
              isAllowed(own, 'team.change_roles') ? (
                <select
                  aria-label={`Role of ${person.email}`}
                  value={person.role}
                  disabled={changing.isBusy}
                  onChange={event => void changing.run(person, event.currentTarget.value)}
                >
                  {roles.map(role => (
                    <option key={role} value={role}>
                      {humanize(role)}
                    </option>
                  ))}
                </select>
              ) : (
                humanize(person.role)
              ),
          },
          { name: 'May', from: 'wide', show: person => <span class="quiet">{roleWords[person.role]}</span> },
          { name: 'Since', from: 'middle', show: person => dateOf(person.created_at) },
          {
            name: '',
            show: person =>
              isAllowed(own, 'team.remove') &&
              !isOneself(person) &&
              outranks(own, person.role) && (
                <button
                  type="button"
                  class="button small danger-text"
                  aria-label={`Remove ${person.email}`}
                  onClick={() => onRemove(person)}
                >
                  Remove
                </button>
              ),
          },
        ]}
      />
    </>
  )
}

type InviteProps = { readonly own: Role; readonly onInvited: () => void; readonly onClose: () => void }

function Invite({ own, onInvited, onClose }: InviteProps) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState('member')
  const [made, setMade] = useState<NewInvitation | null>(null)
  const inviting = useAction(async () => {
    setMade(await call('POST /api/v1/team/invitations', { body: { email, role } }))
    onInvited()
  })
  if (made !== null && made.token === undefined)
    return (
      <Dialog title="The invitation is on its way" onClose={onClose}>
        <p>
          A letter with the link goes to {made.email}, who joins as {made.role}. It works once, until{' '}
          {dateOf(made.expires_at)}.
        </p>
        <div class="actions end">
          <button type="button" class="button primary" onClick={onClose}>
            Done
          </button>
        </div>
      </Dialog>
    )
  if (made !== null)
    return (
      <Dialog title="Send this link" onClose={onClose}>
        <p>
          To {made.email}, and to nobody else: whoever opens it joins as {made.role}. It works once, until{' '}
          {dateOf(made.expires_at)}, and is shown only now.
        </p>
        <Snippet text={`${location.origin}/${hrefTo(`invitation/${made.token}`)}`} what="link" />
        <div class="actions end">
          <button type="button" class="button primary" onClick={onClose}>
            Done
          </button>
        </div>
      </Dialog>
    )
  return (
    <FormDialog title="Invite somebody" action="Invite" doing={inviting} fields={['email']} onClose={onClose}>
      <TextField
        label="E-mail"
        type="email"
        required
        value={email}
        onText={setEmail}
        param="email"
        failure={inviting.failure}
      />
      <SelectField label="Role" value={role} onChoice={setRole} hint={roleWords[role === 'admin' ? 'admin' : 'member']}>
        <option value="member">Member</option>
        {outranks(own, 'admin') && <option value="admin">Admin</option>}
      </SelectField>
    </FormDialog>
  )
}
