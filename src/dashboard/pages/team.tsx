import { useState } from 'preact/hooks'
import type { ShownInvitation, ShownTeam } from '../../console/team/schemas.ts'
import { isAllowed, outranks, type Role, roles } from '../../core/accounts/roles.ts'
import type { ShownUser } from '../../http/schemas.ts'
import { Badge } from '../parts/badge.tsx'
import { Button } from '../parts/button.tsx'
import { Confirm } from '../parts/dialog.tsx'
import { Invite, projectText, roleWords } from '../parts/invite.tsx'
import { FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { useProjects } from '../parts/project-field.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateOf, humanize, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { user } from '../state/session.ts'

export function Team() {
  const team = useResource('GET /api/v1/team')
  const { names } = useProjects()
  const [isInviting, setInviting] = useState(false)
  const [leaving, setLeaving] = useState<ShownUser | null>(null)
  const [withdrawn, setWithdrawn] = useState<ShownInvitation | null>(null)
  const own = user.value?.role ?? 'member'
  return (
    <Page
      title="Team"
      about="All members share this account’s limits and billing."
      actions={
        isAllowed(own, 'team.invite') && <Button text="Invite user" look="primary" onClick={() => setInviting(true)} />
      }
    >
      <Loaded resource={team} what="the team">
        {list => (
          <>
            <Card title="Members">
              <People list={list} own={own} onChange={team.reload} onRemove={setLeaving} />
            </Card>
            {isAllowed(own, 'team.invite') && list.invitations.length > 0 && (
              <Card
                title="Pending invitations"
                about="Links expire after 7 days. A new invitation replaces the old link."
              >
                <Table
                  caption="Pending invitations"
                  rows={list.invitations}
                  keyOf={({ id }) => id}
                  columns={[
                    { name: 'Email', isHeading: true, show: one => one.email },
                    { name: 'Role', show: one => humanize(one.role) },
                    { name: 'Project', from: 'middle', show: one => projectText(one, names) },
                    { name: 'Expires', from: 'middle', show: one => relativeTime(one.expires_at) },
                    {
                      name: '',
                      show: one => <Button text="Withdraw" look="small" onClick={() => setWithdrawn(one)} />,
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
            await callApi('DELETE /api/v1/team/invitations/:id', { params: { id: withdrawn.id } })
            team.reload()
            showToast(`Invitation of ${withdrawn.email} withdrawn`)
          }}
          onClose={() => setWithdrawn(null)}
        >
          <p>The link stops working.</p>
        </Confirm>
      )}
      {leaving !== null && (
        <Confirm
          title={`Remove ${leaving.email}?`}
          action="Remove"
          isDangerous
          perform={async () => {
            await callApi('DELETE /api/v1/team/:id', { params: { id: leaving.id } })
            team.reload()
            showToast(`${leaving.email} removed`)
          }}
          onClose={() => setLeaving(null)}
        >
          <p>Their keys and sessions are revoked within 1 s. Their usage stays in the log.</p>
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
    await callApi('PATCH /api/v1/team/:id', { params: { id: person.id }, body: { role } })
    showToast(`Role of ${person.email} changed to ${role}`)
    onChange()
  })
  const isOneself = (person: ShownUser) => person.id === user.value?.id
  return (
    <>
      {changing.failure !== null && <FailureNotice failure={changing.failure} />}
      <Table
        caption="Members of the account"
        rows={list.data}
        keyOf={({ id }) => id}
        columns={[
          {
            name: 'Email',
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
          { name: 'Permissions', from: 'wide', show: person => <span class="quiet">{roleWords[person.role]}</span> },
          { name: 'Joined', from: 'middle', show: person => dateOf(person.created_at) },
          {
            name: '',
            show: person =>
              isAllowed(own, 'team.remove') &&
              !isOneself(person) &&
              outranks(own, person.role) && (
                <Button
                  text="Remove"
                  look="small danger-text"
                  aria-label={`Remove ${person.email}`}
                  onClick={() => onRemove(person)}
                />
              ),
          },
        ]}
      />
    </>
  )
}
