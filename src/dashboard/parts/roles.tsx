/** Roles of users in the account and in projects: words, and the choice of one. */
import type { ProjectRole, Role } from '../../core/accounts/roles.ts'
import { humanize } from '../state/format.ts'
import { useAction } from '../state/resource.ts'
import { user } from '../state/session.ts'
import { Options } from './field.tsx'
import { Badge, FailureNotice } from './notice.tsx'
import { showToast } from './page.tsx'
import type { Column } from './table.tsx'

const words: Readonly<Record<Role, string>> = {
  viewer: 'Reads what a member reads, changes nothing',
  member: 'Manages own keys and requests',
  admin: 'Manages all keys and requests, invites members',
  owner: 'Full access including billing',
}

const wordsInProject: Readonly<Record<ProjectRole, string>> = {
  viewer: 'Reads the project, changes nothing',
  member: 'Manages own keys in the project',
  admin: 'Manages all keys and the members below admin',
}
const findWords = (of: Readonly<Record<string, string>>) => (role: string) => of[role]
export const roleWords = findWords(words)
export const projectRoleWords = findWords(wordsInProject)

export const roleChoices = (roles: readonly string[]) => roles.map(role => [role, humanize(role)] as const)

type MemberRow = { readonly email: string; readonly role: string }
type MemberProps<Row> = {
  readonly id: (row: Row) => string
  readonly words: (role: string) => string | undefined
  /** Roles that the signed-in user can give; empty = the role is only shown. */
  readonly choices: (row: Row) => readonly string[]
  readonly change: (row: Row, role: string) => Promise<unknown>
}

/** Columns of the members of the account or of a project, with their roles. */
export const memberColumns = <Row extends MemberRow>(of: MemberProps<Row>): readonly Column<Row>[] => [
  {
    name: 'Email',
    isHeading: true,
    show: row => (
      <>
        {row.email} {of.id(row) === user.value?.id && <Badge>you</Badge>}
      </>
    ),
  },
  {
    name: 'Role',
    show: row => <RoleSelect {...row} choices={of.choices(row)} change={role => of.change(row, role)} />,
  },
  { name: 'Permissions', from: 'wide', show: ({ role }) => <span class="quiet">{of.words(role)}</span> },
]

type RoleSelectProps = MemberRow & {
  readonly choices: readonly string[]
  readonly change: (role: string) => Promise<unknown>
}

/** The role of a user in a table. */
function RoleSelect({ email, role, choices, change }: RoleSelectProps) {
  const changing = useAction(async (chosen: string) => {
    await change(chosen)
    showToast(`Role of ${email} changed to ${chosen}`)
  })
  if (choices.length === 0) return <>{humanize(role)}</>
  return (
    <>
      <select
        aria-label={`Role of ${email}`}
        value={role}
        disabled={changing.isBusy}
        onChange={event => void changing.run(event.currentTarget.value)}
      >
        <Options of={roleChoices(choices)} />
      </select>
      {changing.failure !== null && <FailureNotice failure={changing.failure} />}
    </>
  )
}
