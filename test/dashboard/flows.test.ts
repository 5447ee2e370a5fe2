/** The dashboard in a real browser as a new user sees it, from sign-in to deleting learning data. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import packageJson from '../../package.json'
import { plans } from '../../src/core/limits/plans.ts'
import { shellCommand } from '../../src/core/validation/errors.ts'
import { changeAccount, findAccountByEmail } from '../../src/database/repositories/accounts.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { sendRequest, signIn, upgraded } from '../harness/users.ts'
import { drawerClosed, firstOwner, newVisitor, openBrowser, testInBrowser, type Visitor } from './browser.ts'

testInBrowser('dashboard: works in a browser', withBrowser)

function withBrowser(path: string) {
  let gateway: Gateway
  let browser: Browser
  let owner: Visitor
  beforeAll(async () => {
    ;[gateway, browser] = await Promise.all([startGateway(), openBrowser(path)])
    owner = await newVisitor(browser, gateway)
  })
  afterAll(async () => {
    await gateway.stop()
  })

  describe('Sign-in', () => {
    test('rejects a wrong password with a message that does not name the wrong field', async () => {
      const { page, go } = owner
      await go('', 'Sign in')
      await page.getByLabel('Email').fill(firstOwner(gateway).email)
      await page.getByLabel('Password').fill('not the password')
      await page.getByRole('button', { name: 'Sign in' }).click()
      expect(await page.getByRole('alert').textContent()).toContain('Sign-in failedWrong email or password')
    })

    test('promises no reset email where email is not configured', async () => {
      const { page, go } = owner
      await go('reset', 'Reset password')
      await page.getByText('Email is not configured').waitFor()
      expect(await page.getByRole('button', { name: 'Send reset link' }).count()).toBe(0)
      await page.getByRole('link', { name: 'Docs' }).waitFor()
      await page.getByRole('link', { name: 'Back to sign-in' }).click()
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    })

    test('accepts the printed credentials, survives a reload, and ends with the tab', async () => {
      const { email, password } = firstOwner(gateway)
      await owner.signIn({ email, password })
      await owner.page.reload()
      await owner.page.getByRole('heading', { name: 'Make your first request' }).waitFor()
      expect(await owner.page.evaluate('Object.keys(localStorage).concat(document.cookie).join("")')).toBe('')
      // No JWT; a refresh token may contain its first letters.
      expect(await owner.page.evaluate('JSON.stringify(sessionStorage)')).not.toMatch(/eyJ[\w-]*\./)
    })

    test('shares the session between tabs, and sign-out ends it in both', async () => {
      const visitor = await newVisitor(browser, gateway)
      const { email, password } = firstOwner(gateway)
      await visitor.signIn({ email, password })
      const other = await visitor.page.context().newPage()
      // A tab waits 120 ms for the session of another one, which a busy machine can make it miss.
      const heading = other.getByRole('heading', { level: 1, name: /^(Keys|Sign in)$/ })
      for (let asked = 0; asked < 20; asked++) {
        await other.goto('about:blank')
        await other.goto(`${gateway.url}/#/keys`)
        await heading.waitFor()
        if ((await heading.textContent()) === 'Keys') break
      }
      expect(await heading.textContent()).toBe('Keys')
      await other.getByRole('button', { name: 'Sign out' }).click()
      await visitor.page.getByRole('heading', { name: 'Sign in' }).waitFor()
      await visitor.leave()
    })
  })

  test('First-request card: turns green after the shown command runs', async () => {
    const { page, go } = owner
    await go('', 'Overview')
    await page.getByRole('button', { name: 'Create API key and show command' }).click()
    const command = (await page.locator('.first-run pre').textContent()) ?? ''
    const key = /Bearer (gw_live_\w+)/.exec(command)?.[1] ?? ''
    const body = /-d '(.*)'/s.exec(command)?.[1] ?? ''
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(/curl (\S+)/.exec(command)?.[1] ?? '', { method: 'POST', headers, body })
    expect(answer.status).toBe(200)
    await answer.text()
    await page.getByRole('heading', { name: 'First request succeeded' }).waitFor()
    await page.locator('.first-run.done').waitFor()
  })

  test('Getting started: shows the steps that the data leaves open, and stays dismissed', async () => {
    const { page, go } = owner
    await go('keys', 'Keys')
    await go('', 'Overview')
    const steps = page.getByRole('region', { name: 'Getting started' })
    await steps.getByText('2 of 4 steps done').waitFor()
    expect(await steps.getByRole('link').allTextContents()).toEqual(['Add a provider', 'Invite a member'])
    await steps.getByRole('button', { name: 'Dismiss' }).click()
    await page.reload()
    await page.getByRole('heading', { name: 'Saved by routing and caching' }).waitFor()
    expect(await steps.count()).toBe(0)
  })

  test('Overview: shows how often routing matched the baseline, once a judge compared', async () => {
    const { page, go } = owner
    const heading = page.getByRole('heading', { name: 'Matched or better' })
    expect(await heading.count()).toBe(0)
    await gateway.deps.database.run(
      ({ sql }) => sql`
        insert into shadow_comparisons
        select 'req_' || verdict, id, now(), null, 'light', 'a/b', null, 'c/d', 'e/f', verdict, 1, 1
        from accounts, unnest('{win,tie,loss,none}'::text[]) as verdict where id = ${gateway.accountId}`,
    )
    await go('keys', 'Keys')
    await go('', 'Overview')
    await heading.waitFor()
    await page.getByText('2 of 3, 95% interval 21%–94%').waitFor()
  })

  test('Navigation: groups the pages, links the reference, the status and the version, and changes the theme by keyboard', async () => {
    expect(await owner.page.getByRole('list', { name: 'Organization' }).getByRole('link').count()).toBe(4)
    const links = owner.page.locator('.product-links')
    await links.getByText(`v${packageJson.version}`).waitFor()
    expect(await links.getByRole('link', { name: 'Docs' }).getAttribute('href')).toBe('/docs')
    expect(await links.getByRole('link', { name: 'Status' }).getAttribute('href')).toBe('#/status')
    await owner.page.getByRole('button', { name: 'Next: light' }).press('Enter')
    await owner.page.locator('html[data-theme="light"]').waitFor({ state: 'attached' })
  })

  test('Playground: streams an output with model, routing and cost, accepts a rating, and revokes its key', async () => {
    const { page, go } = owner
    await go('playground', 'Playground')
    await page
      .getByLabel('Your message')
      .fill('[[sim:tokens=120, chunk=20, pace_ms=40]] Write a function that reverses a list.')
    await page.keyboard.press('Enter')
    // Text is shown while more is to come.
    await page.locator('.answer[aria-busy="true"] p:not([role])').waitFor()
    const about = page.getByRole('list', { name: 'About this response' })
    expect(await about.textContent()).toMatch(
      /\w+\/[\w.-]+[\s\S]*\d+ input, \d+ output tokens[\s\S]*\$0\.\d+[\s\S]*TTFT/,
    )
    await page.getByRole('radio', { name: '4 stars' }).check({ force: true })
    await page.getByText('Rating saved.').waitFor()
    // The page waits for the record of the request.
    await page.getByRole('link', { name: 'Routing and cost' }).click()
    await page.getByText(/^Chosen because it /).waitFor()
    expect(await page.getByRole('list', { name: 'Attempts' }).textContent()).toContain('Succeeded')
    await page.getByRole('list', { name: 'Cost by part' }).getByText('$0.').waitFor()

    await go('team', 'Team')
    await go('keys', 'Keys')
    await page.getByLabel('Show revoked and expired').check()
    const used = page.getByRole('row').filter({ hasText: 'playground' })
    await used.getByText('revoked').waitFor()
  })

  test('Playground: shows the request as code in each API form', async () => {
    const { page, go } = owner
    await go('playground', 'Playground')
    await page.getByRole('button', { name: 'View code' }).click()
    const code = page.locator('dialog pre')
    expect(await code.textContent()).toContain(`curl ${gateway.url}/v1/chat/completions`)
    await page.getByRole('radio', { name: 'Messages' }).check({ force: true })
    await page.getByRole('radio', { name: 'Python' }).check({ force: true })
    expect(await code.textContent()).toContain('from anthropic import Anthropic')
    await page.getByRole('button', { name: 'Close' }).click()
    await drawerClosed(page)
  })

  test('Playground: stops a running response', async () => {
    const { page, go } = owner
    await go('playground', 'Playground')
    await page.getByLabel('Your message').fill('[[sim:tokens=2000, chunk=40, pace_ms=50]] Tell me a long story.')
    await page.keyboard.press('Enter')
    await page.locator('.answer p:not([role])').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped. Received output is billed.').waitFor()
    // The cost of a stopped response comes from the log.
    await page
      .getByRole('listitem')
      .filter({ hasText: /^\d+ input, \d+ output tokens$/ })
      .last()
      .waitFor()
    await page.getByRole('link', { name: 'Routing and cost' }).last().waitFor()
  })

  test('Playground: compares models side by side, keeps them across pages, and asks again', async () => {
    const { page, go } = owner
    await go('playground', 'Playground')
    await page.getByRole('button', { name: 'Clear conversation' }).click()
    await page.getByLabel('Compare with').selectOption({ label: 'Cost: lowest cost' })
    await page.getByLabel('Your message').fill('[[sim:tokens=20]] Hello to both.')
    await page.getByRole('button', { name: 'Send' }).click()
    const answers = page.getByRole('list', { name: 'About this response' })
    await answers.nth(1).waitFor()
    await page.getByLabel('Your message').fill('A draft')
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
    await page.getByRole('link', { name: 'Playground' }).click()
    await answers.nth(1).waitFor()
    expect(await answers.count()).toBe(2)
    expect(await page.getByLabel('Your message').inputValue()).toBe('A draft')
    await page.getByRole('button', { name: 'Regenerate' }).first().click()
    await answers.nth(1).waitFor()
    await page.getByLabel('Your message').fill('[[sim:status=400]] An error.')
    await page.keyboard.press('Enter')
    const alert = page.getByRole('alert').last()
    await alert.waitFor()
    const [error, composer] = [await alert.boundingBox(), await page.locator('.composer').boundingBox()]
    expect((error?.y ?? 0) + (error?.height ?? 0)).toBeLessThanOrEqual(composer?.y ?? 0)
    await page.getByRole('button', { name: 'Retry' }).last().waitFor()
    await page.getByRole('button', { name: 'Remove model 2' }).click()
    await page.getByRole('button', { name: 'Clear conversation' }).click()
  })

  test('Playground: creates one key for all conversations, and revokes it on leaving and on signing out', async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    const { email, password } = firstOwner(gateway)
    await visitor.signIn({ email, password })
    const person = await signIn(gateway, firstOwner(gateway))
    const earlier = new Set<string>()
    const keys = async () => {
      const { body } = await sendRequest<{ data: readonly { id: string; name: string; revoked_at: string | null }[] }>(
        gateway,
        'GET',
        '/api/v1/keys?limit=100',
        { token: person?.token },
      )
      return body.data.filter(({ id, name }) => name === 'playground' && !earlier.has(id))
    }
    const valid = async () => (await keys()).filter(({ revoked_at }) => revoked_at === null).length
    // The pages of other tests have keys of their own.
    for (const { id } of await keys()) earlier.add(id)
    await go('playground', 'Playground')
    await page.getByLabel('Compare with').selectOption({ label: 'Automatic' })
    const send = async () => {
      await page.getByLabel('Your message').fill('[[sim:tokens=5]] Hello to all.')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByRole('list', { name: 'About this response' }).nth(1).waitFor()
    }
    await send()
    expect([(await keys()).length, await valid()]).toEqual([1, 1])
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await eventually(async () => (await valid()) === 0, 60_000)
    await go('playground', 'Playground')
    await page.getByRole('button', { name: 'Clear conversation' }).click()
    await send()
    expect(await valid()).toBe(1)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await eventually(async () => (await valid()) === 0, 60_000)
    await visitor.leave()
  })

  test('Keys: shows a new key once and revokes it', async () => {
    const { page, go } = owner
    await go('keys', 'Keys')
    await page.getByRole('button', { name: 'Create API key' }).click()
    await page.getByLabel('Name').fill('second')
    await page.getByRole('dialog').getByRole('button', { name: 'Create API key' }).click()
    const shown = page.locator('dialog pre')
    const key = (await shown.textContent()) ?? ''
    // A browser closes a dialog at the second Escape in a row, unless the key itself is ignored.
    for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    await page.keyboard.press('Escape')
    expect(await shown.textContent()).toBe(key)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(await page.content()).not.toContain(key)
    const headers = { authorization: `Bearer ${key}` }
    expect((await gateway.post('/api/v1/chat', { prompt: 'Hi' }, headers)).status).toBe(200)
    await page.getByRole('button', { name: 'Revoke second' }).click()
    await page.getByRole('button', { name: 'Revoke', exact: true }).click()
    await page.getByRole('button', { name: 'Revoke second' }).waitFor({ state: 'detached' })
    const status = async () => (await gateway.post('/api/v1/chat', { prompt: 'Hi' }, headers)).status
    await eventually(async () => (await status()) === 401)
  })

  test('Playground: shows a reached limit with a link to plans', async () => {
    const { page, go } = owner
    await changeAccount(gateway.deps.database, gateway.accountId, { ...plans.usage, dailyTokens: 1 })
    await go('playground', 'Playground')
    await page.getByRole('button', { name: 'Compare Postgres' }).click()
    await page.getByText('Daily tokens exceeded', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'View plans' }).click()
    await page.getByRole('heading', { level: 1, name: 'Billing' }).waitFor()
    await page.getByText('Enforced for this account').waitFor()
    await gateway.deps.rejections.flush()
    await go('requests', 'Requests')
    await page.getByText('Rejected', { exact: true }).click()
    await page.getByText('daily_tokens_exceeded').first().waitFor()
    await go('', 'Overview')
    await page.locator('.meter.full', { hasText: 'tokens today' }).getByText('Reached').waitFor()
    await changeAccount(gateway.deps.database, gateway.accountId, { ...plans.usage, requestsPerMinute: 10_000 })
  })

  test("Billing and Settings: show the operator's upgrade and no payment method without Stripe, and delete the account", async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await go('sign-up', 'Create account')
    await page.getByLabel('Email').fill('new@example.test')
    await page.getByLabel('Password').fill('short')
    await page.getByLabel('Account name').fill('<b>Newcomers</b>')
    await page.getByLabel('Password').fill('a long enough password')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    // Names are text.
    expect(await page.locator('.who').textContent()).toContain('<b>Newcomers</b>')

    await go('billing', 'Billing')
    await page.getByText(`${shellCommand('accounts plan')} new@example.test usage`).waitFor()
    expect(await page.getByRole('button', { name: 'Upgrade' }).count()).toBe(0)
    const found = await findAccountByEmail(gateway.deps.database, 'new@example.test')
    await upgraded(gateway, { accountId: found?.account.id ?? '' })
    await page.reload()
    await page.getByText('Usage (current)').waitFor()
    await page.getByLabel('US dollars per month').fill('20')
    await page.getByRole('button', { name: 'Save soft cap' }).click()
    await page.getByRole('meter', { name: 'This billing cycle' }).waitFor()
    expect(await page.getByText('Payment method').count()).toBe(0)
    expect(await page.getByRole('button', { name: /^(Add|Replace|Remove$)/ }).count()).toBe(0)

    await go('settings', 'Settings')
    await page.getByRole('button', { name: 'Delete account' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Your password').fill('a long enough password')
    await dialog.getByLabel('Type the account name').fill('Newcomers')
    expect(await dialog.getByRole('button', { name: 'Delete account' }).isDisabled()).toBe(true)
    await dialog.getByLabel('Type the account name').fill('<b>Newcomers</b>')
    await dialog.getByRole('button', { name: 'Delete account' }).click()
    await page.getByText('Account deleted').waitFor()
    expect(await findAccountByEmail(gateway.deps.database, 'new@example.test')).toBeNull()
    await visitor.leave()
  })

  test('Team: accepts an invitation by link with the permissions of its role', async () => {
    const { page, go } = owner
    await go('team', 'Team')
    await page.getByRole('button', { name: 'Invite user' }).click()
    await page.getByLabel('Email').fill('colleague@example.test')
    await page.getByRole('button', { name: 'Invite', exact: true }).click()
    const link = (await page.locator('dialog pre').textContent()) ?? ''
    await page.getByRole('button', { name: 'Done' }).click()

    const visitor = await newVisitor(browser, gateway)
    await visitor.page.goto(link)
    await visitor.page.getByLabel('Your new password').fill('a password of my own')
    await visitor.page.getByRole('button', { name: 'Join the team' }).click()
    await visitor.page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(await visitor.page.getByRole('link', { name: 'Billing' }).count()).toBe(0)
    await visitor.go('billing', 'Permission denied')
    await visitor.page.goto(link)
    await visitor.page.getByLabel('Your new password').fill('another password')
    await visitor.page.getByRole('button', { name: 'Join the team' }).click()
    await visitor.page.getByText('This invitation has expired or was used').waitFor()
    await visitor.leave()

    await page.reload()
    await page.getByRole('row', { name: /colleague@example.test/ }).waitFor()
  })

  test('Requests: filters, updates live, shows details, and exports the filtered rows', async () => {
    const { page, go } = owner
    await go('requests?streamed=true&status=completed', 'Requests')
    await page.getByRole('button', { name: 'Clear filters' }).waitFor()
    await page.getByLabel('Live updates').check()
    await page.locator('tr.request').first().waitFor()
    const before = await page.locator('tr.request').count()
    expect((await gateway.post('/api/v1/chat', { prompt: 'Hi', stream: true })).status).toBe(200)
    await page.locator('tr.request').nth(before).waitFor()
    const newest = page.locator('tr.request').first()
    expect(await newest.textContent()).toMatch(
      /Completed.*\w+\/[\w.-]+Stream\. Automatic routing\. .*\d → \d.*\$0\.\d.*\d m?s/,
    )
    await newest.getByRole('link').click()
    await page.getByText('Response type').waitFor()
    const told = async (name: string) => page.locator('.pairs > div', { hasText: name }).first().textContent()
    expect(await told('Response type')).toBe('Response typeStream')
    expect(await told('Query type')).toMatch(/^Query type\w/)
    expect(await told('Token counts')).toMatch(/estimated|reported/)
    await page.getByText(/^Time to first token: [\d.]+ m?s\. Total latency: [\d.]+ m?s\.$/).waitFor()
    await page.getByText(/^Chosen because it /).waitFor()
    expect(
      await page.getByRole('list', { name: 'Scores of the candidates' }).getByRole('listitem').count(),
    ).toBeGreaterThan(1)
    await page.getByRole('list', { name: 'Cost by part' }).getByText('$0.').waitFor()
    expect(await page.getByRole('list', { name: 'Attempts' }).textContent()).toMatch(/\w+\/[\w.-]+Succeeded \d/)
    await page.goBack()
    await page.waitForURL(({ hash }) => hash.startsWith('#/requests?streamed=true&status=completed'))
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toMatch(/^requests-\d{4}-\d\d-\d\d\.csv$/)
    const lines = (await Bun.file(await download.path()).text()).trim().split('\n')
    expect(lines[0]).toContain('request_id')
    expect(lines.length).toBeGreaterThanOrEqual(before + 2)
  })

  test('Models: explains a degraded model, and blames no model that the account does not use', async () => {
    const { page, goFresh } = owner
    const { health } = gateway.deps
    const [used] = await gateway.deps.database.run(
      ({ sql }) => sql<{ model: string }[]>`
        select model from usage_daily where account_id = ${gateway.accountId} and completed > 0 and model like '%/%' limit 1`,
    )
    const unused = 'openai/gpt-4.1'
    for (const model of [used?.model ?? '', unused]) health.report(model, { outcome: 'soft_failure', cause: 'timeout' })
    health.report('google/gemini-2.5-flash', { outcome: 'unhealthy', cause: 'overloaded' })
    await goFresh('models', 'Models')
    const row = (model: string) =>
      page
        .getByRole('row')
        .filter({ has: page.getByText(model, { exact: true }) })
        .first()
    await row(used?.model ?? '')
      .getByText(/^Timeout, .+ · probe: next request$/)
      .last()
      .waitFor()
    await row(used?.model ?? '')
      .getByRole('img', { name: /failed or blocked on 0 of \d+ days/ })
      .waitFor()
    expect(await row(unused).textContent()).toContain('No requests')
    expect(await row(unused).textContent()).not.toContain('Degraded')
    // Routing skips it for all accounts.
    await row('google/gemini-2.5-flash')
      .getByText(/Unhealthy/)
      .last()
      .waitFor()
    await page.getByLabel('Model', { exact: true }).selectOption(used?.model ?? '')
    await page.getByRole('slider', { name: /^Latency per hour/ }).waitFor()
    await page.locator('.model-map button').first().click()
    await page.getByRole('dialog').getByText('Price per million tokens').waitFor()
    await page.keyboard.press('Escape')
    await drawerClosed(page)
    for (const model of [used?.model ?? '', unused, 'google/gemini-2.5-flash']) health.report(model, { outcome: 'ok' })
  })

  test('Filters: carry from the overview to the log, and return as a saved view', async () => {
    const { page, go } = owner
    await go('?range=24h', 'Overview')
    const chart = page.getByRole('slider')
    await chart.focus()
    await page.keyboard.press('End')
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor()
    await page.waitForURL(/#\/requests\?from=\d{4}-\d\d-\d\dT\d\d%3A00&to=/)
    await go('?range=24h', 'Overview')
    await page.locator('.legend').getByRole('link', { name: 'completed' }).click()
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor()
    await page.getByRole('cell', { name: 'Completed' }).first().waitFor()
    await page.getByRole('button', { name: 'Save view' }).click()
    await page.getByLabel('Name').fill('Completed today')
    await page.getByRole('dialog').getByRole('button', { name: 'Save view' }).click()
    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByRole('heading', { level: 2, name: 'Usage by key' }).waitFor()
    const hasFilters = ({ hash }: URL) => hash.startsWith('#/keys?range=24h&status=completed')
    await page.waitForURL(hasFilters)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.waitForURL(({ hash }) => !hash.includes('status='))
    await page.getByLabel('Saved view').selectOption('Completed today')
    await page.waitForURL(hasFilters)
    await page.getByRole('button', { name: 'Delete view' }).click()
    expect(await page.evaluate('localStorage.getItem("gateway-ai.views")')).toBeNull()
    // Dragging over the chart of the log, or arrow keys with Shift, choose a span.
    await go('requests?range=24h', 'Requests')
    const box = await chart.boundingBox()
    const at = (hour: number) => ((box?.x ?? 0) + (box?.width ?? 0) * ((hour + 0.5) / 25)) as number
    await page.mouse.move(at(2), (box?.y ?? 0) + 20)
    await page.mouse.down()
    await page.mouse.move(at(5), (box?.y ?? 0) + 20)
    await page.mouse.up()
    const getHours = ({ hash }: URL) => {
      const query = new URLSearchParams(hash.split('?')[1])
      return (Date.parse(`${query.get('to')}Z`) - Date.parse(`${query.get('from')}Z`)) / 3_600_000
    }
    await page.waitForURL(url => getHours(url) === 4)
    await go('requests?range=24h', 'Requests')
    await chart.focus()
    for (const key of ['Home', 'ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowRight', 'Enter'])
      await page.keyboard.press(key)
    await page.waitForURL(url => getHours(url) === 3)
    // A custom range without an end.
    await go('requests?from=2020-01-01T00:00', 'Requests')
    await page.getByRole('cell', { name: 'Completed' }).first().waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  test('Overview: counts the rejected requests that the log shows, whose page names the accepted values', async () => {
    const { page } = owner
    await eventually(async () => {
      expect((await gateway.post('/api/v1/chat', { prompt: 'Hi', temperature: 9 })).status).toBe(400)
      await gateway.deps.rejections.flush()
      const [row] = await gateway.deps.database.run(
        ({ sql }) => sql<{ count: number }[]>`
          select count(*)::int as count from rejected_requests
            where account_id = ${gateway.accountId} and param = 'temperature'`,
      )
      return (row?.count ?? 0) > 0
    }, 240_000)
    // A new document: the page keeps what it has loaded before.
    await owner.goFresh('?range=24h', 'Overview')
    const figure = page.locator('.attention li', { hasText: 'Rejected' }).getByRole('link')
    const count = Number.parseInt((await figure.textContent()) ?? '', 10)
    await figure.click()
    await page.getByText(`${count} shown`, { exact: true }).waitFor()
    expect(await page.locator('tbody tr').count()).toBe(count)
    await page.locator('tr.request a').first().click()
    await page.getByText('sent as a number. It accepts a number from 0 to 2.').waitFor()
  })

  test('Overview: splits the chart by model and key and shows latency, errors and the selected day', async () => {
    const { page, go } = owner
    await go('', 'Overview')
    const legend = page.locator('.legend')
    for (const [measure, told] of [
      ['Latency', /p50 \d+ ms|p50 [\d.]+ s/],
      ['Failed or blocked', /failed or blocked \d+/],
    ] as const) {
      await page.locator('.tabs label', { hasText: measure }).click()
      expect(await legend.textContent()).toMatch(told)
    }
    await page.locator('.tabs label', { hasText: /^Requests$/ }).click()
    await page.locator('.tabs label', { hasText: 'By key' }).click()
    await legend.getByText('second').waitFor()
    await page.locator('.tabs label', { hasText: 'By model' }).click()
    await legend
      .getByText(/^\w+\/[\w.-]+ \d+$/)
      .first()
      .waitFor()
    await page.getByRole('slider').focus()
    await page.keyboard.press('Home')
    // On the first day there was no gateway.
    expect(new Set(await legend.locator('.legend-value').allTextContents())).toEqual(new Set(['0']))
  })

  test('Notices: show a lost connection once, with a retry button, and load again when it returns', async () => {
    const { page, go } = owner
    await go('team', 'Team')
    await page.context().setOffline(true)
    await page.getByRole('link', { name: 'Billing' }).click()
    await page.getByText('Gateway unreachable').waitFor()
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('Gateway unreachable').waitFor()
    // The plan and the invoices failed of one cause.
    expect(await page.getByRole('alert').count()).toBe(1)
    // The browser's return to the network loads everything again.
    await page.context().setOffline(false)
    await page.getByRole('heading', { name: 'Plan', exact: true }).waitFor()
  })

  test('Insights: deletes learning data after confirmation', async () => {
    const { page, go } = owner
    await go('insights', 'Insights')
    await page.getByText(/^\d+ requests?$/).waitFor()
    await page.getByRole('button', { name: 'Delete learning data' }).click()
    const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete learning data' })
    expect(await confirm.isDisabled()).toBe(true)
    await page.getByLabel('Type “erase” to confirm').fill('erase')
    await confirm.click()
    await page.getByText('No learning data yet').waitFor()
  })

  test('Browser: reports no errors', () => {
    expect(owner.complaints).toEqual([])
  })
}
