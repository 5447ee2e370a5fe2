/** Roles of users in the account and in projects: words, and the choice of one. */
import type { ProjectRole, Role } from '../../core/accounts/roles.ts'
import { useAction } from '../state/action.ts'
import { humanize } from '../state/format.ts'
import { Options } from './field.tsx'
import { FailureNotice } from './notice.tsx'
import { showToast } from './page.tsx'

export const roleWords: Readonly<Record<Role, string>> = {
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
export const projectRoleWords = (role: string) => Object.entries(wordsInProject).find(([name]) => name === role)?.[1]

export const roleChoices = (roles: readonly string[]) => roles.map(role => [role, humanize(role)] as const)

type RoleSelectProps = {
  readonly email: string
  readonly role: string
  /** Roles that the signed-in user can give; empty = the role is only shown. */
  readonly choices: readonly string[]
  readonly change: (role: string) => Promise<void>
}

/** The role of a user in a table. */
export function RoleSelect({ email, role, choices, change }: RoleSelectProps) {
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
