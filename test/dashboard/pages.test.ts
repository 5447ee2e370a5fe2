/** Every page of the dashboard in a real browser: transfer size, content security policy, accessibility, speed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { createProject } from '../../src/console/projects/store.ts'
import { unlimitedScope } from '../../src/core/limits/scopes.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, signIn } from '../harness/users.ts'
import { isLongVariant } from '../harness/variants.ts'
import { appearanceOnly, axeProblems, settled } from './axe.ts'
import { firstOwner, newOwner, newVisitor, openBrowser, testInBrowser, type Visitor } from './browser.ts'
import { fillLog } from './log.ts'

/** Many pages of a table, and a chart without an empty day. */
const loggedRequests = 2_000
const heaviestFirstLoad = 64_000
/** All API responses of a page, uncompressed. */
const heaviestAnswers = 68_000

const projectId = 'prj_search'
/** Widths of a phone, a tablet and a screen. */
const widths = isLongVariant() ? [390, 820, 1440] : [390]

const pages = [
  ['', 'Overview'],
  ['playground', 'Playground'],
  ['requests', 'Requests'],
  [`requests/req_${'50'.padStart(20, '0')}`, 'Request'],
  ['models', 'Models'],
  ['providers', 'Providers'],
  ['insights', 'Insights'],
  ['keys', 'Keys'],
  ['tags', 'Tags'],
  ['projects', 'Projects'],
  ['team', 'Team'],
  ['billing', 'Billing'],
  ['alerts', 'Alerts'],
  ['webhooks', 'Webhooks'],
  ['audit', 'Audit log'],
  ['settings', 'Settings'],
  ['status', 'Status'],
] as const

testInBrowser('pages: work in a browser', withBrowser)

function withBrowser(path: string) {
  let gateway: Gateway
  let browser: Browser
  let owner: Visitor
  beforeAll(async () => {
    ;[gateway, browser] = await Promise.all([startGateway(), openBrowser(path)])
    await fillLog(gateway, loggedRequests)
    owner = await newOwner(browser, gateway)
    const { database } = gateway.deps
    const limits = { ...unlimitedScope, dailyTokens: 500_000, monthlyCostMicrocents: 40_000_000_000 }
    const project = { id: projectId, name: 'Search', createdAt: new Date(), limits }
    expect(await createProject(database, gateway.accountId, project)).toBe(true)
  }, 240_000)
  afterAll(async () => {
    await gateway.stop()
  })

  test(`First load: transfers at most ${heaviestFirstLoad / 1000} KB, all from the gateway`, async () => {
    const visitor = await newVisitor(browser, gateway)
    const session = await visitor.page.context().newCDPSession(visitor.page)
    await session.send('Network.enable')
    let bytes = 0
    const addresses: string[] = []
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    visitor.page.on('request', request => void addresses.push(request.url()))
    await visitor.go('', 'Sign in')
    await visitor.page.waitForLoadState('networkidle')
    process.stdout.write(
      `the first load of the dashboard: ${Math.round(bytes / 1000)} KB in ${addresses.length} requests\n`,
    )
    expect(bytes).toBeWithin(10_000, heaviestFirstLoad)
    expect(addresses.filter(address => !address.startsWith(`${gateway.url}/`) && !address.startsWith('data:'))).toEqual(
      [],
    )
    await visitor.leave()
  })

  test('Content security policy: blocks and reports an injected script', async () => {
    const visitor = await newVisitor(browser, gateway)
    await visitor.go('', 'Sign in')
    await visitor.page.evaluate(
      `document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = "taken"' }))`,
    )
    expect(await visitor.page.title()).not.toBe('taken')
    expect(visitor.complaints.join()).toContain('Content Security Policy')
    await visitor.page.context().close()
  })

  test(`Pages: show their content with ${loggedRequests.toLocaleString('en')} logged requests and responses of at most ${heaviestAnswers / 1000} KB`, async () => {
    const load = async (path: string, heading: string) => {
      await owner.goFresh(path, heading)
      const shownAfter = Number(await owner.page.evaluate(settled))
      // A part without a skeleton may still be on its way.
      await owner.page.waitForLoadState('networkidle')
      return shownAfter
    }
    const times: Record<string, number> = {}
    const bytes: Record<string, number> = {}
    for (const [path, heading] of pages) {
      times[heading] = await load(path, heading)
      bytes[heading] = Number(await owner.page.evaluate(answered))
    }
    process.stdout.write(`from an empty tab to all there is, with a full log, ms: ${JSON.stringify(times)}\n`)
    process.stdout.write(`answers that they are made of, bytes: ${JSON.stringify(bytes)}\n`)
    expect(Object.entries(bytes).filter(([, size]) => size > heaviestAnswers)).toEqual([])
  })

  test.each([['light', 360, ''] as const, ...(isLongVariant() ? [['dark', 1440, appearanceOnly] as const] : [])])(
    'Accessibility: has no axe violations and no horizontal scrolling, %s at %d px',
    async (theme, width, rules) => {
      const visitor = await newVisitor(browser, gateway, { colorScheme: theme, viewport: { width, height: 800 } })
      const { email, password } = firstOwner(gateway)
      const wrong: string[] = []
      const look = async (name: string) => {
        wrong.push(...(await axeProblems(visitor, name, rules)))
      }
      await visitor.go('', 'Sign in')
      await look('Sign in')
      await visitor.go('sign-up', 'Create account')
      await look('Sign up')
      await visitor.go('status', 'Status')
      await visitor.page.getByText('Accepts requests').waitFor()
      await visitor.page.evaluate(settled)
      await look('Status, signed out')
      await visitor.signIn({ email, password })
      for (const [path, heading] of pages) {
        await visitor.go(path, heading)
        await visitor.page.evaluate(settled)
        await look(heading)
      }
      await visitor.go(`projects/${projectId}`, 'Project')
      await visitor.page.getByRole('heading', { level: 2, name: 'Search' }).waitFor()
      await visitor.page.evaluate(settled)
      await look('Project')
      await visitor.page.getByRole('button', { name: 'Change project' }).click()
      await look('Dialog of a project')
      await visitor.go('keys', 'Keys')
      await visitor.page.getByRole('button', { name: 'Create API key' }).click()
      await look('Dialog')
      await visitor.go('requests', 'Requests')
      await visitor.page.locator('tr.request a').first().click()
      await visitor.page.getByRole('heading', { level: 2, name: 'Outcome' }).waitFor()
      await visitor.page.evaluate(settled)
      await look('Request')
      await visitor.go('', 'Overview')
      // The tab of the chart: a card has the same title, and may be there before the chart.
      await visitor.page.locator('.tabs label', { hasText: 'By model' }).click()
      await visitor.page.locator('.legend', { hasText: 'Other' }).waitFor()
      await visitor.page.getByText('Show as table').first().click()
      await look('Chart by model')
      await visitor.page.getByRole('button', { name: 'Filters' }).click()
      await visitor.page.getByLabel('Error code').waitFor()
      await visitor.page.getByLabel('Range (UTC)').selectOption('custom')
      await look('Filters')
      await visitor.go('playground', 'Playground')
      await visitor.page.getByLabel('Compare with').selectOption({ label: 'Automatic' })
      await visitor.page.getByText('Parameters and tools').click()
      await look('Comparison')
      expect(wrong).toEqual([])
      await visitor.leave()
    },
  )

  test('Tags: sets, changes and removes a budget, and leads from usage to requests, by keyboard', async () => {
    await useTags(gateway)
    const { page, go } = owner
    const press = async (name: string) => {
      await page.getByRole('button', { name, exact: true }).last().focus()
      await page.keyboard.press('Enter')
    }
    await go('tags', 'Tags')
    await page.getByText('No budgets').waitFor()
    await press('Set budget')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Tag name').focus()
    await page.keyboard.type('team')
    await page.keyboard.press('Tab')
    await page.keyboard.type('search')
    for (let fields = 0; fields < 5; fields++) await page.keyboard.press('Tab')
    await page.keyboard.type('0.5')
    await page.keyboard.press('Enter')
    const budget = page.getByRole('table', { name: 'Budgets' }).locator('tbody tr')
    await budget.getByText('of $0.50').waitFor()
    await press('Change the budget of team=search')
    await dialog.getByLabel('Monthly cost in USD').focus()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('0')
    await page.keyboard.press('Enter')
    await budget.getByText('Reached').waitFor()
    await press('Remove the budget of team=search')
    await dialog.getByRole('button', { name: 'Remove' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('No budgets').waitFor()

    await page.getByLabel('Tag name').selectOption('team')
    const usage = page.getByRole('table', { name: 'Usage by tag' }).locator('tbody tr')
    await usage.getByText('Without this tag').waitFor()
    expect((await usage.locator('th').allTextContents()).toSorted()).toEqual([
      'Without this tag',
      'team=ads',
      'team=search',
    ])
    await page.getByRole('heading', { name: 'team, by value' }).waitFor()
    const chart = page.getByRole('slider')
    await chart.focus()
    await page.keyboard.press('End')
    expect(await chart.getAttribute('aria-valuetext')).toContain('team=search')
    await page.getByRole('link', { name: '2 requests with team=search' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor()
    const requests = page.locator('tr.request a')
    await requests.nth(1).waitFor()
    expect(await requests.count()).toBe(2)
    await requests.first().focus()
    await page.keyboard.press('Enter')
    await page.getByText('Tag team').waitFor()
    expect(await page.locator('.pairs > div', { hasText: 'Tag team' }).textContent()).toBe('Tag teamsearch')
  })

  test(`Tags: has no axe violations in both themes at ${widths.join(', ')} px`, async () => {
    await useTags(gateway)
    const { page } = owner
    await owner.go('tags?tag=team', 'Tags')
    await page.getByRole('slider').waitFor()
    await page.evaluate(settled)
    const wrong: string[] = []
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of widths) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 900 })
        wrong.push(...(await axeProblems(owner, `Tags, ${colorScheme} at ${width} px`, '')))
      }
    await page.getByRole('button', { name: 'Set budget' }).click()
    wrong.push(...(await axeProblems(owner, 'Set budget', '')))
    expect(wrong).toEqual([])
    await page.keyboard.press('Escape')
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1280, height: 900 })
  })

  test('Viewer: sees budgets without buttons, why the log is empty, an error with a retry, and a denied permission', async () => {
    const inviter = await signIn(gateway, firstOwner(gateway))
    if (inviter === null) throw new Error('the first owner signs in')
    const viewer = await addMember(gateway, inviter, 'viewer')
    const visitor = await newVisitor(browser, gateway)
    const { page } = visitor
    await visitor.signIn(viewer)
    await visitor.go('tags', 'Tags')
    await page.getByText('An admin or owner of the account can set a budget').waitFor()
    await page.getByText('No requests with tags in this range').waitFor()
    expect(await page.getByRole('button', { name: /budget/ }).count()).toBe(0)
    for (const [path, heading] of [
      ['requests', 'Requests'],
      ['keys', 'Keys'],
      ['', 'Overview'],
    ] as const) {
      await visitor.go(path, heading)
      await page.getByText('You have no keys and no projects').waitFor()
    }
    const refuse = (status: number, code: string) =>
      page.route('**/api/v1/usage?*group_by=tag*', route =>
        route.fulfill({ status, json: { error: { code, type: 'x', message: code, param: null } } }),
      )
    for (const [status, code, title] of [
      [503, 'service_unavailable', 'Service unavailable'],
      [403, 'forbidden', 'Permission denied'],
    ] as const) {
      await refuse(status, code)
      await visitor.goFresh('tags', 'Tags')
      await page.getByRole('alert').getByText(title).waitFor()
      await page.getByText('Could not load the usage.').waitFor()
      await page.unrouteAll()
    }
    await visitor.leave()
  })

  test('Keyboard: reaches every page, skips the navigation, and enters a chart', async () => {
    const { page, go } = owner
    await go('', 'Overview')
    await page.evaluate('document.activeElement.blur(); getSelection().removeAllRanges(); document.body.focus()')
    await page.locator('.skip').focus()
    await page.keyboard.press('Enter')
    await page.locator('#main:focus').waitFor()
    await page.getByRole('link', { name: 'Models', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
    await page.locator('h1:focus').waitFor()
    await go('', 'Overview')
    const chart = page.getByRole('slider')
    await chart.focus()
    await page.keyboard.press('Home')
    await page.locator('[role="slider"][aria-valuenow="1"]').waitFor()
    const first = await chart.getAttribute('aria-valuetext')
    await page.keyboard.press('ArrowRight')
    await page.locator('[role="slider"][aria-valuenow="2"]').waitFor()
    expect(await chart.getAttribute('aria-valuetext')).not.toBe(first)
  })
}

/** Sends requests with tags, once, and waits until the totals have them. */
async function useTags(gateway: Gateway): Promise<void> {
  const tagged = async () => {
    const [row] = await gateway.deps.database.run(
      ({ sql }) => sql<{ requests: number }[]>`
        select coalesce(sum(requests), 0)::int as requests from usage_tags_daily where account_id = ${gateway.accountId}`,
    )
    return row?.requests ?? 0
  }
  if ((await tagged()) > 0) return
  const headers = { authorization: `Bearer ${firstOwner(gateway).key}` }
  const body = { model: 'gpt-5.5', prompt: 'Say hello.', max_output_tokens: 5, web: 'off' }
  for (const tags of ['team=search,env=prod', 'team=search', 'team=ads']) {
    const answer = await gateway.post('/api/v1/chat', body, { ...headers, 'x-gateway-tags': tags })
    expect(answer.status).toBe(200)
    await answer.text()
  }
  await eventually(async () => (await tagged()) === 4, 30_000)
}

const answered = `performance.getEntriesByType('resource')
  .filter(({ name }) => new URL(name).pathname.startsWith('/api/'))
  .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0)`
