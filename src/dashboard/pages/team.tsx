import { useState } from 'preact/hooks'
import { isAllowed, outranks, type ProjectRole, projectRoles, type Role, roles } from '../../core/accounts/roles.ts'
import type { ShownUser } from '../../http/schemas.ts'
import type { ShownInvitation, ShownTeam } from '../../routes/team/schemas.ts'
import { Badge } from '../parts/badge.tsx'
import { Snippet } from '../parts/copy.tsx'
import { Confirm, Dialog, FormDialog } from '../parts/dialog.tsx'
import { SelectField, TextField } from '../parts/field.tsx'
import { FailureNotice, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { useProjects } from '../parts/project-field.tsx'
import { projectRoleWords } from '../parts/project-members.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateOf, humanize, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/hash-route.ts'
import { useResource } from '../state/resource.ts'
import type { CreatedInvitation } from '../state/routes.ts'
import { user } from '../state/session.ts'

const roleWords: Readonly<Record<Role, string>> = {
  viewer: 'Reads what a member reads, changes nothing',
  member: 'Manages own keys and requests',
  admin: 'Manages all keys and requests, invites members',
  owner: 'Full access including billing',
}

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
        isAllowed(own, 'team.invite') && (
          <button type="button" class="button primary" onClick={() => setInviting(true)}>
            Invite user
          </button>
        )
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

type OfProject = Pick<ShownInvitation, 'project_id' | 'project_role'>

/** `Search (Admin)`; empty without a project. */
function projectText({ project_id, project_role }: OfProject, names: ReadonlyMap<string, string>): string {
  if (project_id === null) return ''
  const name = names.get(project_id) ?? project_id
  return project_role === null ? name : `${name} (${humanize(project_role)})`
}

/** `member with the role viewer in the project Search`: everything that the link grants. */
function grantText(made: OfProject & Pick<ShownInvitation, 'role'>, names: ReadonlyMap<string, string>): string {
  const { role, project_id, project_role } = made
  if (project_id === null) return role
  return `${role} with the role ${project_role ?? 'member'} in the project ${names.get(project_id) ?? project_id}`
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
  const [role, setRole] = useState<Role>('member')
  const [project, setProject] = useState('')
  const [projectRole, setProjectRole] = useState<ProjectRole>('member')
  const { open: projects, names } = useProjects()
  const [made, setMade] = useState<CreatedInvitation | null>(null)
  const inviting = useAction(async () => {
    const joined = project === '' ? {} : { project_id: project, project_role: projectRole }
    setMade(await callApi('POST /api/v1/team/invitations', { body: { email, role, ...joined } }))
    onInvited()
  })
  if (made !== null && made.token === undefined)
    return (
      <Dialog title="Invitation sent" onClose={onClose}>
        <p>
          {made.email} receives an email with a link to join as {grantText(made, names)}. It works once and expires on{' '}
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
      <Dialog title="Share this link" onClose={onClose}>
        <p>
          Share this link with {made.email} only. It grants the role {grantText(made, names)}, works once, and expires
          on {dateOf(made.expires_at)}. It is not shown again.
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
    <FormDialog title="Invite user" action="Invite" doing={inviting} fields={['email']} onClose={onClose}>
      <TextField
        label="Email"
        type="email"
        required
        value={email}
        onText={setEmail}
        param="email"
        failure={inviting.failure}
      />
      <SelectField
        label="Role"
        value={role}
        onChoice={choice => setRole(roles.find(one => one === choice) ?? 'member')}
        hint={roleWords[role]}
      >
        <option value="viewer">Viewer</option>
        <option value="member">Member</option>
        {outranks(own, 'admin') && <option value="admin">Admin</option>}
      </SelectField>
      {projects.length > 0 && (
        <SelectField
          label="Project"
          value={project}
          onChoice={setProject}
          hint="A viewer with a project sees only that project."
        >
          <option value="">None</option>
          {projects.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </SelectField>
      )}
      {project !== '' && (
        <SelectField
          label="Role in the project"
          value={projectRole}
          onChoice={choice => setProjectRole(projectRoles.find(one => one === choice) ?? 'member')}
          hint={projectRoleWords[projectRole]}
        >
          {projectRoles.map(one => (
            <option key={one} value={one}>
              {humanize(one)}
            </option>
          ))}
        </SelectField>
      )}
    </FormDialog>
  )
}
