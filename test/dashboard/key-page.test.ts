/** The page of a key, the controls of routing, and the search for a request, in a real browser. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { shellCommand } from '../../src/core/validation/errors.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, sendRequest, signIn, owner as tenantOwner } from '../harness/users.ts'
import { appearanceOnly, axeProblems } from './axe.ts'
import { firstOwner, newOwner, newVisitor, openBrowser, testInBrowser, type Visitor } from './browser.ts'

testInBrowser('key page: works in a browser', withBrowser)

type Key = { readonly id: string; readonly key: string; readonly prefix: string }

function withBrowser(path: string) {
  let gateway: Gateway
  let browser: Browser
  let owner: Visitor
  let boss: { readonly token: string; readonly viewer: { readonly email: string; readonly password: string } }
  let first: Key
  let second: Key
  let requestId = ''
  beforeAll(async () => {
    ;[gateway, browser] = await Promise.all([startGateway({ TRUSTED_PROXIES: '127.0.0.1' }), openBrowser(path)])
    const person = await signIn(gateway, firstOwner(gateway))
    if (person === null) throw new Error('the sign-in failed')
    boss = { token: person.token, viewer: await addMember(gateway, person, 'viewer') }
    const limits = { daily_tokens: 100_000, daily_cost_usd: 5, monthly_cost_usd: 50, requests_per_minute: 60 }
    const rules = { limits, models: ['openai/gpt-5.5', 'anthropic/*'], tags: { team: 'search' } }
    const made = await sendRequest<Key>(gateway, 'POST', '/api/v1/keys', {
      token: boss.token,
      body: { name: 'search service', ...rules },
    })
    first = made.body
    const question = { prompt: 'Hi', constraints: { zdr: true } }
    const answer = await gateway.post('/api/v1/chat', question, { authorization: `Bearer ${first.key}` })
    requestId = answer.headers.get('x-request-id') ?? ''
    await answer.text()
    const turned = await sendRequest<Key>(gateway, 'POST', `/api/v1/keys/${first.id}/rotate`, {
      token: boss.token,
      body: { overlap_seconds: 86_400 },
    })
    second = turned.body
    owner = await newOwner(browser, gateway)
  }, 240_000)
  afterAll(async () => {
    await gateway.stop()
  })

  test('Keys: an owner creates a management key, which is shown once and works, and revokes it', async () => {
    const { page, go } = owner
    await go('keys', 'Keys')
    await page.getByText('No management keys').waitFor()
    await page.getByRole('button', { name: 'Create management key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('terraform')
    await dialog.getByLabel('usage:read').check()
    await dialog.getByRole('button', { name: 'Create management key' }).click()
    await dialog.getByText(/^gw_manage_/).waitFor()
    const token = (await dialog.getByText(/^gw_manage_/).textContent()) ?? ''
    await page.getByRole('button', { name: 'Done' }).click()
    expect(await page.getByText(token).count()).toBe(0)
    const see = async () => (await sendRequest(gateway, 'GET', '/api/v1/usage', { token })).status
    expect(await see()).toBe(200)
    await page.getByRole('row').filter({ hasText: 'keys:read usage:read' }).waitFor()
    await page.getByRole('button', { name: 'Revoke terraform' }).click()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('No management keys').waitFor()
    expect(await see()).toBe(401)
  })

  test('Key page: shows limits with their use, rotation, usage and code without the secret', async () => {
    const { page, go } = owner
    await go('keys', 'Keys')
    // The usage of keys below the table has links of the same names, and may be loaded first.
    const table = page.getByRole('table', { name: 'API keys' })
    await table.getByRole('link', { name: 'search service' }).first().click()
    await page.getByRole('heading', { level: 2, name: 'search service' }).waitFor()
    await go(`keys/${first.id}`, 'API key')
    await page.getByText('Replaced. This key works until').waitFor()
    for (const label of ['Daily tokens', 'Daily cost', 'Monthly cost', 'Requests per minute'])
      await page.getByRole('meter', { name: label }).waitFor()
    await page.getByRole('img', { name: /^\$[\d.]+ of \$[\d.,]+ left this month$/ }).waitFor()
    await page.getByText('openai/gpt-5.5, anthropic/*').waitFor()
    await page.getByText('As the account: Any model').waitFor()
    // The account is younger than a day. The chart moves what is below it, which a forced click would miss.
    await page.getByRole('slider', { name: /^Requests per hour/ }).waitFor()
    const code = page.locator('.snippet pre')
    expect(await code.textContent()).toContain(`export OPENAI_BASE_URL='${gateway.url}/v1'`)
    expect(await code.textContent()).toContain(`${first.prefix.replace('…', '')}_YOUR_SECRET`)
    for (const [language, part] of [
      ['curl', `curl ${gateway.url}/v1/chat/completions`],
      ['Python', 'from openai import OpenAI'],
      ['TypeScript', "import OpenAI from 'openai'"],
    ] as const) {
      await page.getByRole('radio', { name: language }).check({ force: true })
      expect(await code.textContent()).toContain(part)
    }
    expect(await page.content()).not.toContain(first.key)
    await page.getByLabel('Range (UTC)').selectOption('7d')
    await page.getByRole('slider', { name: /^Requests per day/ }).waitFor()
    expect(page.url()).toContain(`#/keys/${first.id}?range=7d`)
    await page.getByRole('link', { name: 'Requests of all keys of the rotation' }).click()
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor()
    expect(page.url()).toContain(`range=7d&key=${first.id}`)
  })

  test('Key page: fits three sizes in two themes without axe violations', async () => {
    const wrong: string[] = []
    const rules = { light: '', dark: appearanceOnly }
    const { email, password } = firstOwner(gateway)
    for (const colorScheme of ['light', 'dark'] as const) {
      const visitor = await newVisitor(browser, gateway, { colorScheme, viewport: { width: 1440, height: 900 } })
      await visitor.signIn({ email, password })
      for (const width of [1440, 820, 390]) {
        await visitor.page.setViewportSize({ width, height: 900 })
        await visitor.go(`keys/${first.id}`, 'API key')
        await visitor.page.getByRole('slider').waitFor()
        wrong.push(...(await axeProblems(visitor, `API key ${colorScheme} ${width}`, rules[colorScheme])))
      }
      await visitor.page.getByRole('button', { name: 'Change' }).click()
      wrong.push(...(await axeProblems(visitor, `Dialog ${colorScheme}`, rules[colorScheme])))
      await visitor.leave()
    }
    expect(wrong).toEqual([])
  })

  test('Key page: changes routing by keyboard only', async () => {
    const { page, go } = owner
    await go(`keys/${second.id}`, 'API key')
    const change = page.getByRole('button', { name: 'Change' })
    await change.focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    // The key has tags, so the rare fields are open.
    await dialog.getByLabel('Fallback policy').focus()
    await page.keyboard.press('N')
    await dialog.getByText('One call per request.').waitFor()
    await dialog.getByLabel('Cut texts').focus()
    await page.keyboard.press('N')
    await dialog.getByLabel('Hedging').focus()
    await page.keyboard.press('O')
    await dialog.getByRole('button', { name: 'Save' }).focus()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('No fallback').waitFor()
    await page.getByText('Not continued').waitFor()
    const { body } = await sendRequest(gateway, 'GET', `/api/v1/keys/${second.id}`, { token: boss.token })
    expect(body).toMatchObject({
      fallback: 'none',
      continue: 'off',
      hedge: true,
      strategy: null,
      tags: { team: 'search' },
    })
  })

  test('Keys: create a key of an intern in four clicks, with models suggested and rare fields folded', async () => {
    const { page, go } = owner
    await go('keys', 'Keys')
    await page.getByRole('button', { name: 'Create API key' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create API key' })
    await dialog.getByLabel('For', { exact: true }).selectOption('intern')
    expect(await dialog.getByLabel('Monthly cost in USD').inputValue()).toBe('5')
    expect(await dialog.getByLabel('Fallback policy').isVisible()).toBe(false)
    await dialog.getByLabel('Models').fill('anthropic/*,')
    await dialog.locator('datalist option').first().waitFor({ state: 'attached' })
    const suggested = await dialog
      .locator('datalist option')
      .evaluateAll(all => all.map(option => option.getAttribute('value')))
    expect(suggested.every(value => value?.startsWith('anthropic/*, '))).toBe(true)
    await dialog.getByLabel('Name').fill('for the intern')
    await dialog.getByLabel('Models').fill(suggested[0] ?? '')
    await dialog.getByText('More', { exact: true }).click()
    await dialog.getByLabel('Constraints on receivers').fill('no_training, region=eu')
    await dialog.getByRole('button', { name: 'Create API key' }).click()
    await page.getByRole('button', { name: 'Done' }).click()
    type Listed = {
      data: { name: string; limits: object | null; models: string[] | null; expires_at: string | null }[]
    }
    const { body } = await sendRequest<Listed>(gateway, 'GET', '/api/v1/keys', { token: boss.token })
    const made = body.data.find(({ name }) => name === 'for the intern')
    const constraints = { no_training: true, region: ['eu'] }
    expect(made).toMatchObject({
      limits: { monthly_cost_usd: 5 },
      models: suggested[0]?.split(', ') ?? [],
      constraints,
    })
    expect(Math.round((Date.parse(made?.expires_at ?? '') - Date.now()) / 86_400_000)).toBe(90)
  })

  test('Settings: show why a limit holds, and change it on the operator’s account', async () => {
    const { page, go } = owner
    await go('settings', 'Settings')
    await page.getByText('10,000, set for this account').waitFor()
    await page.getByText('Change limits').click()
    await page.getByLabel('Concurrent requests').fill('')
    await page.getByRole('button', { name: 'Save limits' }).click()
    await page.getByText(/^\d+, of plan Usage$/).waitFor()
    const tenant = await newVisitor(browser, gateway)
    const person = await tenantOwner(gateway)
    await tenant.signIn(person)
    await tenant.go('settings', 'Settings')
    await tenant.page.getByText(`${shellCommand('accounts limits')} ${person.email} --rpm`).waitFor()
    expect(await tenant.page.getByText('Change limits').count()).toBe(0)
    await tenant.leave()
  })

  test('Settings: set routing, constraints and baseline of the account', async () => {
    const { page, go } = owner
    await go('settings', 'Settings')
    await page.getByLabel('Fallback policy').selectOption('Same model only')
    await page.getByText('only other hosts and keys of the same model').waitFor()
    await page.getByLabel('Cut texts').selectOption('By any model')
    await page.getByLabel('Hedging').selectOption('On')
    await page.getByLabel('Baseline of savings').fill('openai/gpt-5.5')
    const save = page.getByRole('button', { name: 'Save routing' })
    await page.getByLabel('Constraints on receivers').fill('cheap')
    await save.click()
    await page.getByText('Write them like “zdr').waitFor()
    await page.getByLabel('Constraints on receivers').fill('no_training, ignore_providers=azure|alpha')
    await save.click()
    await page.getByText('Routing saved').waitFor()
    const read = async () => (await sendRequest(gateway, 'GET', '/api/v1/account', { token: boss.token })).body
    const constraints = { no_training: true, ignore_providers: ['azure', 'alpha'] }
    const baseline_model = 'openai/gpt-5.5'
    expect(await read()).toMatchObject({
      fallback: 'same_model',
      continue: 'any',
      hedge: true,
      constraints,
      baseline_model,
    })
    // A baseline that is no longer configured does not refuse other changes.
    await gateway.deps.database.run(
      ({ sql }) => sql`update accounts set baseline_model = 'openai/gone' where baseline_model = ${baseline_model}`,
    )
    await page.reload()
    await page.getByLabel('Constraints on receivers').fill('')
    await save.click()
    await eventually(async () => Object(await read()).constraints === null)
    expect(await read()).toMatchObject({ fallback: 'same_model', baseline_model: 'openai/gone' })
  })

  test('Settings: add, order, change and remove rules', async () => {
    const { page, go } = owner
    await go('settings', 'Settings')
    const dialog = page.locator('dialog')
    const rules = async () =>
      Object((await sendRequest(gateway, 'GET', '/api/v1/account', { token: boss.token })).body).rules
    await page.getByRole('button', { name: 'Add rule' }).click()
    await dialog.getByLabel('Name').fill('canary')
    await dialog.getByLabel('Action').selectOption('Share requests')
    await dialog.getByLabel('Percent by model').fill('anthropic/claude-haiku-5-5=12.5')
    await dialog.getByLabel('Requested model').fill('openai/gpt-5.5')
    await dialog.getByLabel('Tags').fill('team=ads|search, env=prod')
    await dialog.getByText('More').click()
    await dialog.getByLabel('Input above (tokens)').fill('10')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Share requests: anthropic/claude-haiku-5-5=12.5').waitFor()
    await page.getByRole('button', { name: 'Add rule' }).click()
    await dialog.getByLabel('Name').fill('no-automatic')
    await dialog.getByLabel('Action').selectOption('Deny')
    await dialog.getByLabel('Requested model').fill('gateway-ai')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Move no-automatic up' }).waitFor()
    const wide = page.viewportSize()
    await page.setViewportSize({ width: 390, height: 844 })
    const heading = await page.getByRole('rowheader', { name: /^no-automatic/ }).boundingBox()
    expect(heading?.width).toBeGreaterThan(390 / 2)
    if (wide !== null) await page.setViewportSize(wide)
    await page.getByRole('button', { name: 'Move no-automatic up' }).click()
    await page.getByRole('button', { name: 'Move canary up' }).waitFor()
    const canary = {
      name: 'canary',
      when: {
        model: ['openai/gpt-5.5'],
        tag: { team: ['ads', 'search'], env: ['prod'] },
        size: { above_tokens: 10 },
      },
      split: [{ model: 'anthropic/claude-haiku-5-5', percent: 12.5 }],
    }
    expect(await rules()).toEqual([{ name: 'no-automatic', when: { model: ['gateway-ai'] }, deny: true }, canary])
    await page.getByRole('button', { name: 'Change canary' }).click()
    await dialog.getByLabel('Percent by model').fill('no-such-model=5')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('no configured provider has a model named').waitFor()
    await dialog.getByLabel('Action').selectOption('Change the model')
    await dialog.getByLabel('To the model').fill('gateway-ai')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Change the model: gateway-ai').waitFor()
    expect((await rules())[1]).toEqual({ name: 'canary', when: canary.when, rewrite: 'gateway-ai' })
    for (const name of ['no-automatic', 'canary']) {
      await page.getByRole('button', { name: `Remove ${name}` }).click()
      await dialog.getByRole('button', { name: 'Remove' }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    expect(await rules()).toEqual([])
  })

  test('Requests: open by ID with their constraints and receivers, and report an unknown one', async () => {
    const { page, go } = owner
    await go('requests', 'Requests')
    const field = page.getByLabel('Request ID')
    await field.fill('req_unknown')
    await page.keyboard.press('Enter')
    await page.getByText('No such request in this account.').waitFor()
    await field.fill(` ${requestId} `)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Request', exact: true }).waitFor()
    expect(page.url()).toContain(`#/requests/${requestId}`)
    const told = async (name: string) => page.locator('dt', { hasText: name }).locator('+ dd').textContent()
    expect(await told('Constraints')).toBe('zdr')
    expect(await told('Receivers')).toMatch(/^\w+ \(zdr, no_training\)$/)
  })

  test('Revocation: names the key of the rotation that keeps working', async () => {
    const { page, go } = owner
    await go(`keys/${second.id}`, 'API key')
    await page.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText(`The old key ${first.prefix} still works until`).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await go(`keys/${first.id}`, 'API key')
    await page.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText(`Key ${second.prefix}, which replaces it, keeps working.`).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page
      .getByText('Revoked Nov')
      .or(page.getByText(/^Revoked \w{3} \d/))
      .first()
      .waitFor()
    await page.getByRole('link', { name: 'Open the key that replaces it' }).click()
    await page.getByRole('button', { name: 'Rotate' }).waitFor()
    expect(page.url()).toContain(`#/keys/${second.id}`)
  })

  test('Key page: reports an unknown key, a failed load and loading, and shows a viewer no key of others', async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await visitor.signIn(boss.viewer)
    await go(`keys/${second.id}`, 'API key')
    await page.getByText('No such key').waitFor()
    await go('keys', 'Keys')
    await page.getByText('No keys yet').waitFor()
    expect(await page.getByRole('button', { name: 'Create API key' }).count()).toBe(0)
    await go('settings', 'Settings')
    expect(await page.getByLabel('Fallback policy').isDisabled()).toBe(true)
    await visitor.leave()

    let answer = () => {}
    const held = new Promise<void>(resolve => {
      answer = resolve
    })
    const url = `**/api/v1/keys/${second.id}`
    await owner.go('models', 'Models')
    await owner.page.reload()
    await owner.page.route(url, async route => {
      await held
      await route.fulfill({
        status: 503,
        json: { error: { code: 'service_unavailable', message: 'The ledger waits.' } },
      })
    })
    await owner.go(`keys/${second.id}`, 'API key')
    await owner.page.getByText('Loading the key').waitFor({ state: 'attached' })
    answer()
    await owner.page.getByText('The ledger waits.').waitFor()
    await owner.page.unroute(url)
    await owner.page.getByRole('button', { name: 'Retry' }).click()
    await owner.page.getByRole('heading', { level: 2, name: 'search service' }).waitFor()
    expect(owner.complaints).toEqual([])
  })
}
