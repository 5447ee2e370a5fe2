/** `projects …`: projects of an account. */
import { randomBytes } from 'node:crypto'
import { createProject, listProjects, type NamedProject } from '../console/projects/store.ts'
import { randomBase62 } from '../core/accounts/api-keys.ts'
import { shownScopeLimits, shownScopeUsed } from '../http/schemas.ts'
import { shellCommand } from '../server/shell-command.ts'
import { CommandFailure, columns, command, json, print, printJson, UsageError } from './command.ts'
import { limitsIn } from './key-options.ts'
import { withAccount } from './open-database.ts'

const email = '<email>'
const maximumNameCharacters = 100

const create = command({
  name: 'projects create',
  about: 'Create a project',
  operands: { email },
  options: {
    name: { type: 'string', value: 'TEXT', about: 'its name, required' },
    limits: { type: 'string', value: 'LIST', about: 'its limits: requests_per_minute=60,monthly_cost_usd=400' },
    json,
  },
  run({ operands, options }) {
    const name = options.name?.trim() ?? ''
    if (name === '' || name.length > maximumNameCharacters)
      throw new UsageError(`--name must have 1 to ${maximumNameCharacters} characters.`)
    const createdAt = new Date()
    const project = {
      id: `prj_${randomBase62(20, randomBytes)}`,
      name,
      createdAt,
      limits: limitsIn(options.limits, createdAt),
    }
    return withAccount(operands.email, async (database, { account }) => {
      if (!(await createProject(database, account.id, project)))
        throw new CommandFailure('The account has the maximum number of projects. Archive unused ones first.')
      const limits = project.limits && shownScopeLimits(project.limits)
      if (options.json) return printJson({ id: project.id, name, created_at: createdAt.toISOString(), limits })
      print(
        ...columns([
          ['id', project.id],
          ['name', name],
        ]),
      )
    })
  },
})

const list = command({
  name: 'projects list',
  about: "List an account's projects with their usage, newest first",
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account }) => {
      const projects = (await listProjects(database, account.id, null)).map(one => ({
        id: one.id,
        name: one.name,
        created_at: new Date(one.createdAt).toISOString(),
        archived_at: one.archivedAt === null ? null : new Date(one.archivedAt).toISOString(),
        limits: one.limits && shownScopeLimits(one.limits),
        used: shownScopeUsed(one.used),
        active_keys: one.activeKeys,
        members: one.members,
      }))
      if (options.json) return printJson({ data: projects })
      if (projects.length === 0) return print('No projects.')
      print(
        ...columns([
          ['ID', 'CREATED', 'STATE', 'KEYS', 'MEMBERS', 'USD THIS MONTH', 'NAME'],
          ...projects.map(one => [
            one.id,
            one.created_at.slice(0, 10),
            one.archived_at === null ? 'active' : 'archived',
            String(one.active_keys),
            String(one.members.length),
            String(one.used.monthly_cost_usd),
            one.name,
          ]),
        ]),
      )
    }),
})

export const projectCommands = [create, list]

/**
 * Returns the active project that a name or ID means. An active project precedes archived ones of the same name. Throws a
 * `CommandFailure` if there is none, or if several active projects have the name.
 */
export function meantProject<T extends NamedProject>(projects: readonly T[], text: string, owner: string): T {
  const byId = projects.filter(({ id }) => id === text)
  const found = byId.length > 0 ? byId : projects.filter(({ name }) => name === text.trim())
  const [project, ...others] = found.filter(({ archivedAt }) => archivedAt === null)
  const list = `See:  ${shellCommand(`projects list ${owner}`)}`
  if (found.length === 0) throw new CommandFailure(`${owner} has no project with this name or ID. ${list}`)
  if (project === undefined) throw new CommandFailure(`This project is archived. Name an active one. ${list}`)
  if (others.length === 0) return project
  const ids = [project, ...others].map(({ id }) => id).join(', ')
  throw new CommandFailure(`${others.length + 1} projects have this name. Name one by its ID: ${ids}.`)
}
