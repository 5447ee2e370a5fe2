/** The page Providers in a real browser: an owner adds, tests, replaces and removes a key. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { axeProblems } from './axe.ts'
import { newOwner, openBrowser, testInBrowser, type Visitor } from './browser.ts'

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
      startGateway({ OPENAI_BASE_URL: simulator.urls.openai }, { network }),
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
    await dialog.getByRole('button', { name: 'Remove key' }).click()
    await page.getByText('No keys').waitFor()
    await owner.leave()
  })
}
