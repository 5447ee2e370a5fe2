/** Audit log, webhooks, alerts and sign-in settings in a real browser: their dialogs, their states, accessibility. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { freePort } from '../harness/free-port.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { singleSignOnEnvironment } from '../harness/identity-provider.ts'
import { addMember, signIn } from '../harness/users.ts'
import { appearanceOnly, axeProblems, settled } from './axe.ts'
import { firstOwner, newOwner, newVisitor, openBrowser, testInBrowser, type Visitor } from './browser.ts'

const widths = [390, 820, 1440] as const
const themes = ['light', 'dark'] as const
const views = widths.flatMap(width => themes.map(colorScheme => ({ width, colorScheme })))
/** Dialogs have the same parts at all widths between these. */
const dialogViews = [views[0], views.at(-1)].filter(view => view !== undefined)

testInBrowser('team control: works in a browser', withBrowser)

function withBrowser(path: string) {
  let gateway: Gateway
  let receiver: Bun.Server<undefined>
  let browser: Browser
  beforeAll(async () => {
    receiver = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(null, { status: 500 }) })
    const port = freePort()
    const away = `http://127.0.0.1:${freePort()}`
    ;[gateway, browser] = await Promise.all([
      startGateway(
        {
          ...singleSignOnEnvironment(away, port),
          OIDC_ROLES: 'engineers=member',
          WEBHOOKS_PRIVATE_HOSTS: 'allow',
          TRUSTED_PROXIES: '127.0.0.1',
        },
        // Reports about models at their own times would be further deliveries.
        { port, ...withoutTimer },
      ),
      openBrowser(path),
    ])
  })
  afterAll(async () => {
    await gateway.stop()
    await receiver.stop(true)
  })

  async function ownerAt(path: string, heading: string): Promise<Visitor> {
    const visitor = await newOwner(browser, gateway)
    await visitor.go(path, heading)
    return visitor
  }

  test('Pages: show empty, loading, failed and forbidden states, and recover by a retry', async () => {
    const visitor = await ownerAt('webhooks', 'Webhooks')
    const { page } = visitor
    await page.getByText('Create a webhook to receive events at a URL').waitFor()
    await page.getByRole('link', { name: 'Alerts' }).first().click()
    await page.getByText('Create an alert on budgets').waitFor()
    for (const [hash, heading, route, what] of [
      ['audit', 'Audit log', '**/api/v1/audit', 'the audit log'],
      ['webhooks', 'Webhooks', '**/api/v1/webhooks', 'the webhooks'],
      ['alerts', 'Alerts', '**/api/v1/alerts', 'the alerts'],
      ['settings', 'Settings', '**/api/v1/auth/oidc/settings', 'single sign-on'],
      ['settings', 'Settings', '**/api/v1/auth/two-factor', 'two-factor sign-in'],
    ] as const) {
      let answer: (isFailure: boolean) => void = () => {}
      const decision = new Promise<boolean>(resolve => {
        answer = resolve
      })
      await page.route(route, async call => {
        const error = { type: 'api_error', code: 'service_unavailable', message: 'The database is away.' }
        if (await decision) await call.fulfill({ status: 503, json: { error: { ...error, request_id: 'req_1' } } })
        else await call.continue()
      })
      await visitor.goFresh(hash, heading)
      await page.getByText(`Loading ${what}`, { exact: true }).waitFor({ state: 'attached' })
      answer(true)
      await page.getByText(`Could not load ${what}.`).waitFor()
      await page.getByText('The database is away.').waitFor()
      await page.unroute(route)
      await page.getByRole('button', { name: 'Retry' }).click()
      await page.getByText(`Could not load ${what}.`).waitFor({ state: 'detached' })
      await page.getByText('The database is away.').waitFor({ state: 'detached' })
    }
    const boss = await signIn(gateway, firstOwner(gateway))
    if (boss === null) throw new Error('the first owner signs in')
    const member = await addMember(gateway, boss, 'member')
    const other = await newVisitor(browser, gateway)
    await other.signIn(member)
    for (const hash of ['audit', 'alerts', 'webhooks']) await other.go(hash, 'Permission denied')
    await other.go('settings', 'Settings')
    await other.page.getByRole('heading', { name: 'Two-factor sign-in' }).waitFor()
    expect(await other.page.getByRole('heading', { name: 'Single sign-on' }).count()).toBe(0)
    await Promise.all([visitor.leave(), other.leave()])
  })

  test(`Accessibility: has no axe violations and no horizontal scrolling at ${widths.join(', ')} px in both themes`, async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    const wrong: string[] = []
    const look = async (name: string, at: readonly (typeof views)[number][] = dialogViews) => {
      await page.evaluate(settled)
      for (const [index, { width, colorScheme }] of at.entries()) {
        await page.setViewportSize({ width, height: 900 })
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        const problems = await axeProblems(visitor, name, index === 0 ? '' : appearanceOnly)
        wrong.push(...problems.map(problem => `${width} px, ${colorScheme}: ${problem}`))
      }
    }
    const button = (name: string | RegExp) => page.getByRole('button', { name })
    const opened = async (name: string | RegExp, title: string) => {
      await button(name).first().click()
      await page.getByRole('dialog', { name: title }).waitFor()
      await look(title)
    }
    const close = async () => {
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    const { email, password } = firstOwner(gateway)
    await go('', 'Sign in')
    await page.getByRole('link', { name: 'Sign in with Keycloak' }).waitFor()
    await look('Sign in', views)
    await go('sso?error=unavailable', 'Sign in')
    await look('Failed single sign-on', views)
    await visitor.signIn({ email, password })

    await go('webhooks', 'Webhooks')
    await opened('Create webhook', 'Create webhook')
    await page.getByLabel('URL').fill(`http://127.0.0.1:${receiver.port}/a-long-path-of-a-receiver/with/several/parts`)
    await button('Create').last().click()
    await page.getByRole('dialog', { name: 'Signing secret' }).waitFor()
    await look('Signing secret')
    await button('Done').click()
    await button(/^Send test/).click()
    // Another delivery may tell of a model that is deprecated.
    await page.getByText('Pending · 500').first().waitFor()
    await opened(/^Details of webhook.test/, 'Delivery')
    await page.getByText('"type":"webhook.test"').waitFor()
    expect(await button(/^Send again: webhook.test/).count()).toBe(0)
    await close()
    await opened(/^Rotate/, 'Rotate the signing secret?')
    await close()
    await opened(/^Delete http/, 'Delete http')
    await close()
    await look('Webhooks', views)
    await go('alerts', 'Alerts')
    expect(await page.getByText('No alert can reach you').count()).toBe(0)
    await opened('Create alert', 'Create alert')
    await page.getByLabel('Budgets').selectOption('key')
    await page.getByLabel('Period').selectOption('month')
    await button('Create').last().click()
    await page.getByRole('row', { name: /Budget: key, per month 80 % period/ }).waitFor()
    await button('Send test: Budget: key, per month').click()
    await page.getByText('1 webhook called').waitFor()
    await opened('Create alert', 'Create alert')
    await page.getByLabel('Metric').selectOption('error_rate')
    await page.getByLabel('Threshold in %').fill('7')
    await button('Create').last().click()
    await page.getByRole('row', { name: /Failed requests 7 % 15 min/ }).waitFor()
    await opened('Change the alert on Failed requests', 'Change alert: Failed requests')
    await page.getByLabel('Threshold in %').fill('12.5')
    await page.getByLabel('Window in minutes, 5 to 60').fill('4')
    await button('Save').click()
    await page.getByText('`window_minutes` must be').waitFor()
    await page.getByLabel('Window in minutes, 5 to 60').fill('30')
    await button('Save').click()
    await page.getByRole('row', { name: /Failed requests 12.5 % 30 min/ }).waitFor()
    await opened('Delete the alert on Failed requests', 'Delete the alert on Failed requests?')
    await close()
    await look('Alerts', views)
    await go('webhooks', 'Webhooks')
    await button(/^Disable: /).click()
    await button(/^Enable: /).waitFor()
    await go('alerts', 'Alerts')
    await page.getByText('No alert can reach you').waitFor()
    await look('Alerts without a receiver', views)
    await go('webhooks', 'Webhooks')
    await button(/^Enable: /).click()
    await button(/^Disable: /).waitFor()

    const { database } = gateway.deps
    await database.run(({ sql }) => sql`update webhook_deliveries set status = 'failed'`)
    await go('webhooks', 'Webhooks')
    await button(/^Deliveries/).click()
    await page.getByText('Failed · 500').first().waitFor()
    await button(/^Send again: webhook.test/).click()
    await page.getByText('Delivery queued').waitFor()
    await page.getByText('Pending · 500').first().waitFor()

    await go('audit', 'Audit log')
    await page.getByRole('row', { name: /Webhook redelivered/ }).waitFor()
    await look('Audit log', views)
    await go('settings', 'Settings')
    await page.getByText('The identity provider does not respond').waitFor()
    await look('Settings', views)
    await page.getByLabel('Your password').fill(password)
    await page.getByRole('button', { name: 'Set up', exact: true }).click()
    await page.getByRole('img', { name: 'QR code with the secret below' }).waitFor()
    await look('Two-factor set-up', views)
    expect(wrong).toEqual([])
    await visitor.leave()
  })
}
