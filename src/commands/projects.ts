/** `projects …`: projects of an account, and the rules that projects and keys share. */
import { Value } from '@sinclair/typebox/value'
import { createProject, listProjects, type NamedProject } from '../console/projects/store.ts'
import type { ScopeLimits } from '../core/limits/scopes.ts'
import { dayMs, timeIn } from '../core/text/utc-days.ts'
import { shellCommand } from '../core/validation/errors.ts'
import { changedLimits, scopeLimitsSchema, shownScopeLimits } from '../http/schemas.ts'
import { modelPattern } from '../models/allowed-models.ts'
import { CommandFailure, command, json, newId, print, printJson, printTable, UsageError } from './command.ts'
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
      id: newId('prj'),
      name,
      createdAt,
      limits: limitsIn(options.limits, createdAt),
    }
    return withAccount(operands.email, async (database, { account }) => {
      if (!(await createProject(database, account.id, project)))
        throw new CommandFailure('The account has the maximum number of projects. Archive unused ones first.')
      const limits = project.limits && shownScopeLimits(project.limits)
      if (options.json) return printJson({ id: project.id, name, created_at: createdAt.toISOString(), limits })
      printTable([
        ['id', project.id],
        ['name', name],
      ])
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
      const projects = await listProjects(database, account.id, null)
      if (options.json) return printJson({ data: projects })
      if (projects.length === 0) return print('No projects.')
      printTable([
        ['ID', 'CREATED', 'STATE', 'KEYS', 'MEMBERS', 'USD THIS MONTH', 'NAME'],
        ...projects.map(project => [
          project.id,
          project.created_at.slice(0, 10),
          project.archived_at === null ? 'active' : 'archived',
          String(project.active_keys),
          String(project.members.length),
          String(project.used.monthly_cost_usd),
          project.name,
        ]),
      ])
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
  const [project, ...others] = found.filter(({ archived_at }) => archived_at === null)
  const list = `See:  ${shellCommand(`projects list ${owner}`)}`
  if (found.length === 0) throw new CommandFailure(`${owner} has no project with this name or ID. ${list}`)
  if (project === undefined) throw new CommandFailure(`This project is archived. Name an active one. ${list}`)
  if (others.length === 0) return project
  const ids = [project, ...others].map(({ id }) => id).join(', ')
  throw new CommandFailure(`${others.length + 1} projects have this name. Name one by its ID: ${ids}.`)
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: dayMs }

/** Returns a duration such as `90d` in milliseconds; null = it is not a duration. */
export function durationIn(text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (text === '0') return 0
  return count === undefined ? null : Number(count) * (units[unit] ?? 0)
}

/** Returns the time that a duration or an ISO 8601 time means. Throws a `UsageError` if it is not in the future. */
export function keyExpiryIn(text: string, now: number): Date {
  const duration = durationIn(text)
  const at = duration === null ? timeIn(text) : now + duration
  if (at > now) return new Date(at)
  throw new UsageError(
    '--expires must be a duration such as 90d or 12h, or a future time such as 2030-01-31T00:00:00Z.',
  )
}

const modelShape = new RegExp(modelPattern)

/** Returns the models of `--models`; null = all. Throws a `UsageError`. */
export function modelListIn(text: string | undefined): string[] | null {
  if (text === undefined) return null
  const models = text.split(',').map(part => part.trim())
  if (!models.every(model => modelShape.test(model)))
    throw new UsageError('--models must be a list such as openai/gpt-5.5,anthropic/*.')
  return models
}

const limitNames = 'requests_per_minute, concurrent_requests, daily_tokens, daily_cost_usd, monthly_cost_usd'

/** Returns the limits of `--limits`; null = none. Throws a `UsageError`. */
export function limitsIn(text: string | undefined, now: Date): ScopeLimits | null {
  if (text === undefined) return null
  const sent = Object.fromEntries(
    text.split(',').map(pair => {
      const [name = '', value = ''] = pair.split('=').map(part => part.trim())
      return [name, value === '' ? Number.NaN : Number(value)]
    }),
  )
  if (!Value.Check(scopeLimitsSchema, sent)) throw new UsageError(`--limits must be NAME=NUMBER,… of ${limitNames}.`)
  return changedLimits(null, sent, now.getTime())
}
