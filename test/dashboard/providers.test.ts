/** The page Providers in a real browser: an owner adds, tests, replaces and removes a key. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { createKeyFor, owner as createOwner, sendRequest } from '../harness/users.ts'
import { axeProblems } from './axe.ts'
import { newOwner, newVisitor, openBrowser, testInBrowser, type Visitor } from './browser.ts'

testInBrowser('providers page: works in a browser', withBrowser)

const key = 'sk-browser-0123456789abcdef'

function withBrowser(path: string) {
  let simulator: Simulator
  let gateway: Gateway
  let browser: Browser
  let owner: Visitor
  let isRejected = false
  const network = {
    ...systemNetwork,
    fetch: async (url: string, init: RequestInit) =>
      isRejected
        ? Response.json({}, { status: 401 })
        : url.endsWith('/models')
          ? Response.json({ data: [] })
          : systemNetwork.fetch(url, init),
  }
  beforeAll(async () => {
    simulator = await startSimulator({ clock: systemClock, random: Math.random })
    ;[gateway, browser] = await Promise.all([
      startGateway({ OPENAI_BASE_URL: simulator.urls.openai, STORED_PROVIDER_KEYS: 'anywhere' }, { network }),
      openBrowser(path),
    ])
    owner = await newOwner(browser, gateway)
  }, 240_000)
  afterAll(async () => {
    await gateway.stop()
    await simulator.stop()
  })

  test('Providers: an owner adds a key, tests it, and removes it', async () => {
    const { page, go } = owner
    await go('providers', 'Providers')
    await page.getByRole('button', { name: 'Add key of openai' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Key', { exact: true }).fill(key)
    await dialog.getByRole('button', { name: 'Add key' }).click()
    await page.getByText('…cdef').waitFor()
    expect((await gateway.post('/api/v1/chat', { model: 'openai/gpt-5.5', prompt: 'Hi' })).status).toBe(200)
    await page.getByRole('button', { name: 'Test main of openai' }).click()
    await dialog.getByText('The key works').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    isRejected = true
    await page.getByRole('button', { name: 'Test main of openai' }).click()
    await dialog.getByText('The provider rejects the key').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    isRejected = false
    await page.getByRole('button', { name: 'Replace main of openai' }).click()
    await dialog.getByLabel('Key', { exact: true }).fill('sk-browser-0123456789fresh')
    await dialog.getByRole('button', { name: 'Replace key' }).click()
    await page.getByText('…resh').waitFor()
    expect(await page.content()).not.toContain(key)
  })

  test('Providers: an owner of another account adds own keys, for the account or a project, and sees what they served', async () => {
    const tenant = await createOwner(gateway)
    const { key: apiKey } = await createKeyFor(gateway, tenant)
    await sendRequest(gateway, 'POST', '/api/v1/projects', { token: tenant.token, body: { name: 'search' } })
    const visitor = await newVisitor(browser, gateway)
    const { page, go, signIn } = visitor
    await signIn(tenant)
    await go('providers', 'Providers')
    const dialog = page.getByRole('dialog')
    const open = (name: string) => page.getByRole('button', { name }).click()
    const add = async (fields: { project?: string; fallback?: string }) => {
      await open('Add key of openai')
      await dialog.getByLabel('Key', { exact: true }).fill(key)
      if (fields.project) await dialog.getByLabel('Project').selectOption({ label: fields.project })
      if (fields.fallback) await dialog.getByLabel('When it fails').selectOption({ label: fields.fallback })
      await dialog.getByRole('button', { name: 'Add key' }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    await add({})
    const table = page.getByRole('table', { name: 'Keys' })
    await table.getByText('The operator’s key serves').waitFor()
    await open('Test main of openai')
    await dialog.getByText('The key works').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await open('End fallback of main of openai')
    await dialog.getByRole('button', { name: 'End fallback' }).click()
    await table.getByText('The request ends').waitFor()
    await open('Allow fallback of main of openai')
    await dialog.getByText('the request is billed').waitFor()
    await dialog.getByRole('button', { name: 'Allow fallback' }).click()
    await table.getByText('The operator’s key serves').waitFor()
    await open('Replace main of openai')
    await dialog.getByLabel('Key', { exact: true }).fill('sk-browser-0123456789owned')
    await dialog.getByRole('button', { name: 'Replace key' }).click()
    await table.getByText('…wned').waitFor()
    const body = { model: 'openai/gpt-5.5', prompt: 'Hi' }
    const answer = await gateway.post('/api/v1/chat', body, { authorization: `Bearer ${apiKey}` })
    expect(answer.status).toBe(200)
    await table.getByText('Working').waitFor()
    await add({ project: 'search', fallback: 'End the request' })
    await table.getByText('own key in project search').waitFor()
    const wrong: string[] = []
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1440, 390]) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 900 })
        await go('providers', 'Providers')
        await table.getByText('own key in project search').waitFor()
        wrong.push(...(await axeProblems(visitor, `own keys ${colorScheme} ${width}`)))
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
        const path = `${process.env.SHOTS}/own-${colorScheme}-${width}.png`
        if (process.env.SHOTS) await page.screenshot({ path, fullPage: true })
      }
    expect(wrong).toEqual([])
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Remove main of openai', exact: true }).click()
    await dialog.getByText('the operator’s key serves, and requests are billed').waitFor()
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await open('Remove main of openai in project search')
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('No keys').waitFor()
    await go('', 'Overview')
    await page.getByText('more with own keys').waitFor()
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/overview.png` })
    await visitor.leave()
  })

  test('Providers: shows lines for each form of deployment, and fits two widths without axe violations', async () => {
    const { page, go } = owner
    await page.getByRole('button', { name: 'Set up mistral' }).click()
    const dialog = page.getByRole('dialog')
    for (const [form, line] of [
      ['Shell', "export MISTRAL_API_KEY='YOUR_KEY'"],
      ['.env', 'MISTRAL_API_KEY=YOUR_KEY'],
      ['Compose', 'MISTRAL_API_KEY: YOUR_KEY'],
      ['Helm', 'environment: [gateway-mistral]'],
    ] as const) {
      await dialog.getByRole('radio', { name: form, exact: true }).check({ force: true })
      expect(await dialog.locator('pre').textContent()).toContain(line)
    }
    await dialog.getByRole('button', { name: 'Done' }).click()
    const wrong: string[] = []
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 })
      await go('providers', 'Providers')
      await page.getByText('…resh').waitFor()
      wrong.push(...(await axeProblems(owner, `providers at ${width}`)))
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/p${width}.png`, fullPage: true })
    }
    expect(wrong).toEqual([])
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Remove main of openai' }).click()
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('No keys').waitFor()
    await owner.leave()
  })

  test('Providers: an owner switches a model off and on, and changes the order of its hosts', async () => {
    const url = simulator.urls.openai
    const mirror = { id: 'mirror', base_url: url, api_key_env: 'MIRROR_KEY', hosts: [{ model: 'openai/gpt-5.5' }] }
    const hosted = await startGateway(
      { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'key-own', MIRROR_KEY: 'key-mirror' },
      { file: { providers: [mirror] } },
    )
    const visitor = await newOwner(browser, hosted)
    const { page, go } = visitor
    const getStatus = async () => (await hosted.post('/api/v1/chat', { model: 'openai/gpt-5.5', prompt: 'Hi' })).status
    await go('providers', 'Providers')
    await page.getByRole('button', { name: 'Disable openai/gpt-5.5', exact: true }).click()
    await page.getByRole('button', { name: 'Enable openai/gpt-5.5', exact: true }).waitFor()
    expect(await getStatus()).toBe(404)
    await page.getByRole('button', { name: 'Enable openai/gpt-5.5', exact: true }).click()
    await page.getByRole('button', { name: 'Disable openai/gpt-5.5', exact: true }).waitFor()
    expect(await getStatus()).toBe(200)
    await page.getByRole('button', { name: 'Hosts of openai/gpt-5.5', exact: true }).click()
    const dialog = page.getByRole('dialog')
    const field = dialog.getByLabel('Order of calls')
    expect(await field.inputValue()).toBe('openai, mirror')
    await field.fill('mirror; openai')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('Write hosts as').waitFor()
    await field.fill('mirror:3, openai:1')
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/hosts.png` })
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('mirror:3, openai:1').waitFor()
    const wrong: string[] = []
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 })
      wrong.push(...(await axeProblems(visitor, `switches at ${width}`)))
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/s${width}.png`, fullPage: true })
    }
    expect(wrong).toEqual([])
    await visitor.leave()
    await hosted.stop()
  })
}
