/** Projects in a real browser: as an owner, as an admin of one project, and as a user without any. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { createProject, setMember } from '../../src/console/projects/store.ts'
import { unlimitedScope } from '../../src/core/limits/scopes.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, owner, type Person } from '../harness/users.ts'
import { axeProblems, settled } from './axe.ts'
import { newVisitor, openBrowser, testInBrowser } from './browser.ts'

testInBrowser('projects: work in a browser', withBrowser)

function withBrowser(path: string) {
  let gateway: Gateway
  let browser: Browser
  let boss: Person
  let guest: Person
  beforeAll(async () => {
    ;[gateway, browser] = await Promise.all([startGateway({ TRUSTED_PROXIES: '127.0.0.1' }), openBrowser(path)])
    boss = await owner(gateway)
    guest = await addMember(gateway, boss, 'viewer')
  })
  afterAll(async () => {
    await gateway.stop()
  })

  test('Projects: an owner creates one with a limit, adds a member, and its admin creates a key in it', async () => {
    const first = await newVisitor(browser, gateway)
    await first.signIn(boss)
    const { page } = first
    await first.go('projects', 'Projects')
    await page.getByText('No projects yet').waitFor()
    await page.getByRole('button', { name: 'Create project' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Search')
    await dialog.getByLabel('Monthly cost in USD').fill('400')
    await dialog.getByRole('button', { name: 'Create project' }).click()
    // The users arrive after the dialog is open, and appear in it.
    const isDialogOpen = Promise.withResolvers<void>()
    await page.route('**/api/v1/team', route => isDialogOpen.promise.then(() => route.continue()))
    await page.getByRole('row').filter({ hasText: '$0.00 of $400.00 this month' }).getByRole('link').click()
    await page.getByRole('heading', { level: 2, name: 'Search' }).waitFor()
    await page.getByRole('heading', { level: 1, name: 'Project', exact: true }).waitFor()
    await page.getByText('No members yet').waitFor()
    await page.getByRole('button', { name: 'Add member' }).click()
    await page.getByLabel('User').waitFor()
    isDialogOpen.resolve()
    await page.getByLabel('User').selectOption({ label: guest.email })
    await page.getByLabel('Role', { exact: true }).selectOption('admin')
    await page.getByRole('dialog').getByRole('button', { name: 'Add member' }).click()
    await page.getByLabel(`Role of ${guest.email}`).waitFor()
    await page.getByRole('button', { name: 'Change project' }).click()
    await dialog.getByLabel('Constraints on receivers').fill('no_training, region=eu')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Constraints: no_training, region=eu').waitFor()

    const second = await newVisitor(browser, gateway)
    await second.signIn(guest)
    await second.go('keys', 'Keys')
    await second.page.getByRole('button', { name: 'Create API key' }).click()
    const creation = second.page.getByRole('dialog')
    await creation.getByLabel('Name').fill('of the guest')
    await creation.getByLabel('Project').selectOption({ label: 'Search' })
    await creation.getByRole('button', { name: 'Create API key' }).click()
    await second.page.getByRole('button', { name: 'Done' }).click()
    await second.go('projects', 'Projects')
    // A project's admin sets no limits, creates no project, and removes no admin.
    expect(await second.page.getByRole('button', { name: 'Create project' }).count()).toBe(0)
    await second.page.getByRole('link', { name: 'Search' }).click()
    await second.page.getByRole('row').filter({ hasText: 'of the guest' }).waitFor()
    expect(await second.page.getByRole('button', { name: `Remove ${guest.email}` }).count()).toBe(0)
    await second.page.getByRole('button', { name: 'Change project' }).click()
    expect(await second.page.getByLabel('Monthly cost in USD').count()).toBe(0)
    await second.page.getByRole('button', { name: 'Cancel' }).click()
    await second.page.getByText('No alerts').waitFor()
    await second.page.getByRole('button', { name: 'Create alert' }).click()
    await second.page.getByLabel('Metric').selectOption('spend')
    await second.page.getByLabel('Threshold in USD').waitFor()
    expect(await second.page.getByRole('dialog').getByLabel('Project').count()).toBe(0)
    await second.page.getByLabel('Threshold in USD').fill('5')
    await second.page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await second.page.getByRole('row', { name: /Spend per UTC day 5 USD/ }).waitFor()
    await first.go('alerts', 'Alerts')
    await page.getByRole('row', { name: /Spend per UTC day Search 5 USD/ }).waitFor()

    await first.go('', 'Overview')
    await page.getByText('By project', { exact: true }).click()
    await page.getByRole('radio', { name: 'By project', checked: true }).waitFor({ state: 'attached' })
    await first.go('team', 'Team')
    await page.getByRole('button', { name: 'Invite user' }).click()
    const invitation = page.getByRole('dialog')
    await invitation.getByLabel('Email').fill('grace@example.com')
    await invitation.getByLabel('Project', { exact: true }).selectOption({ label: 'Search' })
    await invitation.getByLabel('Role in the project').selectOption('viewer')
    await invitation.getByRole('button', { name: 'Invite' }).click()
    await page.getByRole('heading', { name: 'Share this link' }).waitFor()
    await page.getByText('with the role viewer in the project Search').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('row').filter({ hasText: 'Search (Viewer)' }).waitFor()
    await first.go('projects', 'Projects')
    await page.getByRole('link', { name: 'Search' }).click()

    // The key must be revoked first; the dialog shows the error, and the project stays.
    await page.getByRole('button', { name: 'Archive project' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
    await page.getByRole('alert').filter({ hasText: 'has valid API keys' }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: `Remove ${guest.email}` }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No members yet').waitFor()
    // The removal has revoked the key.
    await page.getByText('No active keys').waitFor()
    await page.getByRole('button', { name: 'Archive project' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
    await page.getByRole('button', { name: 'Archive project' }).waitFor({ state: 'detached' })
    await page.getByText('It accepts no keys and no changes.').waitFor()

    // The guest has no project any more: the page says so, and its link answers like a missing one.
    await second.page.reload()
    await second.page.getByText('No such project').waitFor()
    await second.go('projects', 'Projects')
    await second.page.getByText('No projects yet').waitFor()
    await first.leave()
    await second.leave()
  })

  test('Accessibility: project pages have no axe violations and no horizontal scrolling, 3 widths × 2 themes', async () => {
    const { database } = gateway.deps
    const limits = { ...unlimitedScope, dailyTokens: 500_000, monthlyCostMicrocents: 40_000_000_000 }
    const project = { id: 'prj_seen', name: 'Retrieval', createdAt: new Date(), limits }
    expect(await createProject(database, boss.accountId, project)).toBe(true)
    const member = { projectId: project.id, userId: guest.id, role: 'member' } as const
    expect(await setMember(database, boss.accountId, boss.id, member)).toBe('done')
    const wrong: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const visitor = await newVisitor(browser, gateway, { colorScheme })
      await visitor.signIn(boss)
      for (const width of [360, 768, 1440]) {
        await visitor.page.setViewportSize({ width, height: 800 })
        const look = async (name: string) => {
          await visitor.page.evaluate(settled)
          wrong.push(...(await axeProblems(visitor, `${name}, ${colorScheme} at ${width} px`)))
        }
        await visitor.go('projects', 'Projects')
        await look('Projects')
        await visitor.go(`projects/${project.id}`, 'Project')
        await visitor.page.getByRole('heading', { level: 2, name: 'Retrieval' }).waitFor()
        await look('Project')
        await visitor.page.getByRole('button', { name: 'Add member' }).click()
        await look('Add member')
        await visitor.page.getByRole('button', { name: 'Cancel' }).click()
      }
      await visitor.leave()
    }
    expect(wrong).toEqual([])
  })
}
