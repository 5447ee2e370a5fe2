/** Choice of a project, where the user has any. */
import { useEffect } from 'preact/hooks'
import { isAllowed } from '../../core/accounts/roles.ts'
import type { ShownProject } from '../../routes/projects/schemas.ts'
import { useResource } from '../state/resource.ts'
import { user } from '../state/session.ts'
import { SelectField } from './field.tsx'

type ProjectChoices = {
  /** Projects that accept keys of the user. */
  readonly open: readonly ShownProject[]
  readonly names: ReadonlyMap<string, string>
  /** The user may have keys in no project. */
  readonly canOmit: boolean
}

export function useProjects(): ProjectChoices {
  const { data } = useResource('GET /api/v1/projects')
  const all = data?.data ?? []
  const role = user.value?.role ?? 'viewer'
  const allows = (one: ShownProject) => isAllowed(role, 'projects.all') || one.role === 'member' || one.role === 'admin'
  return {
    open: all.filter(one => one.archived_at === null && allows(one)),
    names: new Map(all.map(({ id, name }) => [id, name])),
    canOmit: isAllowed(role, 'keys.own'),
  }
}

type ProjectFieldProps = { readonly value: string | null; readonly onChoice: (id: string | null) => void }

/** The project of a key. Not shown where the user has none to choose. */
export function ProjectField({ value, onChoice }: ProjectFieldProps) {
  const { open, names, canOmit } = useProjects()
  const first = open[0]?.id
  useEffect(() => {
    if (!canOmit && value === null && first !== undefined) onChoice(first)
  }, [canOmit, value, first])
  if (open.length === 0) return null
  const isListed = value === null || open.some(({ id }) => id === value)
  return (
    <SelectField
      label="Project"
      value={value ?? ''}
      onChoice={id => onChoice(id === '' ? null : id)}
      hint="Its requests count in the limits of the project."
    >
      {(canOmit || value === null) && <option value="">None</option>}
      {!isListed && <option value={value}>{names.get(value) ?? value}</option>}
      {open.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </SelectField>
  )
}
