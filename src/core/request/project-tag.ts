/**
 * The project of a request is a tag that only the gateway sets: no header and no `metadata` field can have its name. So the
 * limits, the daily totals and the filters of tags serve projects as well, and a record keeps the project of its time.
 */
import { tagScopeName } from '../limits/scopes.ts'

/** Not a name that `tagNamePattern` allows. */
export const projectTagName = '$project'

/** Returns the tag of a project's requests in the form of the daily totals. */
export const projectTag = (projectId: string) => `${projectTagName}=${projectId}`

/** Returns true if the scope of a limit is a project. */
export const isProjectScope = (scope: string) => scope.startsWith(`${tagScopeName(projectTagName, '')}`)

type Labels = Readonly<Record<string, string>>

/** Returns the project of stored tags, and the tags that the client knows; null = none. */
export function splitProject(tags: Labels | null): { readonly projectId: string | null; readonly tags: Labels | null } {
  if (tags === null || !Object.hasOwn(tags, projectTagName)) return { projectId: null, tags }
  const { [projectTagName]: projectId = null, ...others } = tags
  return { projectId, tags: Object.keys(others).length === 0 ? null : others }
}
