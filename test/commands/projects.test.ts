/** Which project the text of `keys create --project` means. */
import { describe, expect, test } from 'bun:test'
import { meantProject } from '../../src/commands/projects.ts'
import { shellCommand } from '../../src/core/validation/errors.ts'

const archived_at = '2026-01-01T00:00:00.000Z'
const projects = [
  { id: 'prj_search', name: 'search', archived_at: null },
  { id: 'prj_mail_new', name: 'mail', archived_at: null },
  { id: 'prj_mail_old', name: 'mail', archived_at: null },
  { id: 'prj_named_like_an_id', name: 'prj_search', archived_at: null },
  { id: 'prj_search_before', name: 'search', archived_at },
  { id: 'prj_ended', name: 'ended', archived_at },
]
const meant = (text: string) => meantProject(projects, text, 'ann@example.com').id

describe('meantProject', () => {
  test.each([
    ['search', 'prj_search'],
    [' search ', 'prj_search'],
    ['prj_search', 'prj_search'],
    ['prj_mail_old', 'prj_mail_old'],
  ])('finds the project of %p', (text, id) => {
    expect(meant(text)).toBe(id)
  })

  test.each([
    [
      'Search',
      `ann@example.com has no project with this name or ID. See:  ${shellCommand('projects list ann@example.com')}`,
    ],
    ['', 'has no project with this name or ID.'],
    ['ended', 'This project is archived. Name an active one.'],
    ['prj_search_before', 'This project is archived.'],
    ['mail', '2 projects have this name. Name one by its ID: prj_mail_new, prj_mail_old.'],
  ])('rejects %p with the reason', (text, message) => {
    expect(() => meant(text)).toThrow(message)
  })
})
