/** Every page of the dashboard in a real browser: transfer size, content security policy, accessibility, speed. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { unlimitedScope } from '../../src/core/limits/scopes.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { reportSkipped } from '../harness/needs.ts'
import { settled, violations } from './axe.ts'
import { firstOwner, newVisitor, openBrowser, type Visitor } from './browser.ts'
import { chromiumPath } from './chromium.ts'
import { fillLog } from './log.ts'

// A bound against a hang, for a machine with many other processes.
setDefaultTimeout(240_000)

/** Many pages of a table, and a chart without an empty day. */
const loggedRequests = 2_000
const heaviestFirstLoad = 60_000
/** All API responses of a page, uncompressed. */
const heaviestAnswers = 60_000

const projectId = 'prj_search'

const pages = [
  ['', 'Overview'],
  ['playground', 'Playground'],
  ['requests', 'Requests'],
  [`requests/req_${'50'.padStart(20, '0')}`, 'Request'],
  ['models', 'Models'],
  ['insights', 'Insights'],
  ['keys', 'Keys'],
  ['projects', 'Projects'],
  ['team', 'Team'],
  ['billing', 'Billing'],
  ['webhooks', 'Webhooks'],
  ['audit', 'Audit log'],
  ['settings', 'Settings'],
] as const

const chromium = chromiumPath()
if (chromium === null) reportSkipped('chromium', 'pages: work in a browser')
else withBrowser(chromium)

function withBrowser(path: string) {
  let gateway: Gateway
  let browser: Browser
  let owner: Visitor
  beforeAll(async () => {
    ;[gateway, browser] = await Promise.all([startGateway(), openBrowser(path)])
    await fillLog(gateway, loggedRequests)
    owner = await newVisitor(browser, gateway)
    const { email, password } = firstOwner(gateway)
    await owner.signIn(email, password)
    const { stores, database } = gateway.deps
    const limits = { ...unlimitedScope, dailyTokens: 500_000, monthlyCostMicrocents: 40_000_000_000 }
    const project = { id: projectId, name: 'Search', createdAt: new Date(), limits }
    expect(await stores.projects.createProject(database, gateway.accountId, project)).toBe(true)
  }, 240_000)
  afterAll(async () => {
    await browser.close()
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
    expect(addresses.filter(one => !one.startsWith(`${gateway.url}/`) && !one.startsWith('data:'))).toEqual([])
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
    await visitor.leave()
  })

  test(`Pages: show their content with ${loggedRequests.toLocaleString('en')} logged requests and responses of at most ${heaviestAnswers / 1000} KB`, async () => {
    const load = async (path: string, heading: string) => {
      await owner.page.goto('about:blank')
      await owner.go(path, heading)
      return Number(await owner.page.evaluate(settled))
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

  test.each([
    ['light', 360, ''],
    // The structure is the same in both; only the appearance differs.
    ['dark', 1440, 'runOnly: ["color-contrast", "region", "scrollable-region-focusable"]'],
  ] as const)(
    'Accessibility: has no axe violations and no horizontal scrolling, %s at %d px',
    async (theme, width, rules) => {
      const visitor = await newVisitor(browser, gateway, { colorScheme: theme, viewport: { width, height: 800 } })
      const { email, password } = firstOwner(gateway)
      const wrong: string[] = []
      const look = async (name: string) => {
        wrong.push(...(await violations(visitor, name, rules)))
      }
      await visitor.go('', 'Sign in')
      await look('Sign in')
      await visitor.go('sign-up', 'Create account')
      await look('Sign up')
      await visitor.signIn(email, password)
      for (const [path, heading] of pages) {
        await visitor.go(path, heading)
        await visitor.page.evaluate(settled)
        await look(heading)
      }
      await visitor.go(`projects/${projectId}`, 'Search')
      await visitor.page.evaluate(settled)
      await look('Project')
      await visitor.page.getByRole('button', { name: 'Change project' }).click()
      await look('Dialog of a project')
      await visitor.go('keys', 'Keys')
      await visitor.page.getByRole('button', { name: 'Create API key' }).click()
      await look('Dialog')
      await visitor.go('requests', 'Requests')
      await visitor.page
        .getByRole('button', { name: /details$/ })
        .first()
        .click()
      await look('Request')
      await visitor.go('', 'Overview')
      // The tab of the chart: a card has the same title, and may be there before the chart.
      await visitor.page.locator('.tabs label', { hasText: 'By model' }).click()
      await visitor.page.locator('.legend', { hasText: 'Other' }).waitFor()
      await visitor.page.getByText('Show as table').click()
      await look('Chart by model')
      await visitor.page.getByRole('button', { name: 'Filters' }).click()
      await visitor.page.getByLabel('Error code').waitFor()
      await visitor.page.getByLabel('Range (UTC)').selectOption('custom')
      await look('Filters')
      await visitor.go('playground', 'Playground')
      await visitor.page.getByRole('button', { name: 'Compare', exact: true }).click()
      await visitor.page.getByText('Parameters and tools').click()
      await look('Comparison')
      expect(wrong).toEqual([])
      expect(visitor.complaints).toEqual([])
      await visitor.leave()
    },
  )

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

const answered = `performance.getEntriesByType('resource')
  .filter(({ name }) => new URL(name).pathname.startsWith('/api/'))
  .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0)`
