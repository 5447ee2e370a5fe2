import { useState } from 'preact/hooks'
import type { ShownProject } from '../../console/projects/schemas.ts'
import { outranks, type ProjectRole, projectRoles } from '../../core/accounts/roles.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { humanize } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { may, user } from '../state/session.ts'
import { Badge } from './badge.tsx'
import { Button } from './button.tsx'
import { FormDialog } from './dialog.tsx'
import { SelectField } from './field.tsx'
import { Empty, FailureNotice } from './notice.tsx'
import { Card } from './page.tsx'
import { Table } from './table.tsx'
import { showToast } from './toast.tsx'

export type ProjectMember = ShownProject['members'][number]

export const projectRoleWords: Readonly<Record<ProjectRole, string>> = {
  viewer: 'Reads the project, changes nothing',
  member: 'Manages own keys in the project',
  admin: 'Manages all keys and the members below admin',
}

type MembersProps = {
  readonly project: ShownProject
  /** False in an archived project, whose members can only be removed. */
  readonly canManage: boolean
  readonly canRemove: boolean
  readonly onChange: () => void
  readonly onAdd: () => void
  readonly onRemove: (member: ProjectMember) => void
}

/** Members of a project; those below the user can be changed. */
export function Members({ project, canManage, canRemove, onChange, onAdd, onRemove }: MembersProps) {
  const rank = rankIn(project)
  const changing = useAction(async ({ user_id, email }: ProjectMember, role: string) => {
    const params = { id: project.id, user: user_id }
    await callApi('PUT /api/v1/projects/:id/members/:user', { params, body: { role } })
    showToast(`Role of ${email} changed to ${role}`)
    onChange()
  })
  const isBelow = (member: ProjectMember) => outranks(rank, member.role)
  return (
    <Card
      title="Members"
      about="Owners and admins of the account have all rights in each project."
      actions={canManage && <Button onClick={onAdd}>Add member</Button>}
    >
      {changing.failure !== null && <FailureNotice failure={changing.failure} />}
      {project.members.length === 0 ? (
        <Empty title="No members yet">Members of the account appear here after you add them.</Empty>
      ) : (
        <Table
          caption="Members of the project"
          rows={project.members}
          keyOf={({ user_id }) => user_id}
          columns={[
            {
              name: 'Email',
              isHeading: true,
              show: ({ email, user_id }) => (
                <>
                  {email} {user_id === user.value?.id && <Badge>you</Badge>}
                </>
              ),
            },
            {
              name: 'Role',
              show: member =>
                canManage && isBelow(member) ? (
                  <select
                    aria-label={`Role of ${member.email}`}
                    value={member.role}
                    disabled={changing.isBusy}
                    onChange={event => void changing.run(member, event.currentTarget.value)}
                  >
                    {projectRoles
                      .filter(role => outranks(rank, role))
                      .map(role => (
                        <option key={role} value={role}>
                          {humanize(role)}
                        </option>
                      ))}
                  </select>
                ) : (
                  humanize(member.role)
                ),
            },
            {
              name: 'Permissions',
              from: 'wide',
              show: ({ role }) => <span class="quiet">{projectRoleWords[role]}</span>,
            },
            {
              name: '',
              show: member =>
                canRemove &&
                isBelow(member) && (
                  <Button
                    text="Remove"
                    look="small danger-text"
                    aria-label={`Remove ${member.email}`}
                    onClick={() => onRemove(member)}
                  />
                ),
            },
          ]}
        />
      )}
    </Card>
  )
}

/** Rank of the signed-in user when changing members: owners and admins of the account change every role. */
function rankIn({ role }: ShownProject) {
  return may('projects.all') ? 'owner' : (role ?? 'viewer')
}

type AddProps = { readonly project: ShownProject; readonly onAdded: () => void; readonly onClose: () => void }

/** Adds a user of the account to a project. */
export function AddMember({ project, onAdded, onClose }: AddProps) {
  const team = useResource('GET /api/v1/team')
  const [userId, setUserId] = useState('')
  const [role, setRole] = useState<ProjectRole>('member')
  const present = new Set(project.members.map(({ user_id }) => user_id))
  const others = team.data?.data.filter(({ id }) => !present.has(id)) ?? []
  const adding = useAction(async () => {
    const params = { id: project.id, user: userId }
    await callApi('PUT /api/v1/projects/:id/members/:user', { params, body: { role } })
    showToast('Member added')
    onAdded()
  })
  return (
    <FormDialog title="Add member" action="Add member" isReady={userId !== ''} doing={adding} onClose={onClose}>
      <SelectField label="User" value={userId} onChoice={setUserId} hint="Users of the account that are not in it yet.">
        <option value="">Choose a user</option>
        {others.map(({ id, email }) => (
          <option key={id} value={id}>
            {email}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Role"
        value={role}
        onChoice={choice => setRole(projectRoles.find(one => one === choice) ?? 'member')}
        hint={projectRoleWords[role]}
      >
        {projectRoles
          .filter(one => outranks(rankIn(project), one))
          .map(one => (
            <option key={one} value={one}>
              {humanize(one)}
            </option>
          ))}
      </SelectField>
    </FormDialog>
  )
}
