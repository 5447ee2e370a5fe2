/** Two-factor sign-in in a real browser: set up, required by the owner, with a code and with a recovery code. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { totpCode } from '../../src/console/auth/totp.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { firstOwner, newVisitor, openBrowser, testInBrowser } from './browser.ts'

testInBrowser('two-factor sign-in: works in a browser', withBrowser)

function withBrowser(path: string) {
  let gateway: Gateway
  let browser: Browser
  /** Moves by a step after each code, since a code works once. */
  let now = Date.now()
  beforeAll(async () => {
    ;[gateway, browser] = await Promise.all([
      startGateway({}, { clock: { ...systemClock, now: () => now } }),
      openBrowser(path),
    ])
  })
  afterAll(async () => {
    await gateway.stop()
  })

  function nextCode(secret: string): string {
    now += 30_000
    return totpCode(secret, Math.floor(now / 30_000))
  }

  /** Sets up two-factor sign-in on the open page; returns secret and recovery codes. */
  async function setUp(page: Page, password: string) {
    await page.getByLabel('Your password').fill(password)
    await page.getByRole('button', { name: 'Set up', exact: true }).click()
    await page.getByRole('img', { name: 'QR code with the secret below' }).waitFor()
    const secret = (await page.locator('main pre').textContent()) ?? ''
    await page.getByLabel('Two-factor code').fill(nextCode(secret))
    await page.getByRole('button', { name: 'Enable' }).click()
    await page.getByText('Store these recovery codes').waitFor()
    const codes = ((await page.locator('main pre').textContent()) ?? '').split('\n')
    expect(new Set(codes).size).toBe(10)
    await page.getByRole('button', { name: 'I have them' }).click()
    return { secret, codes }
  }

  test('Two-factor sign-in: appears once the owner requires it, and asks for a code at the next sign-in', async () => {
    const { email, password } = firstOwner(gateway)
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await visitor.signIn({ email, password })
    await go('settings', 'Settings')
    await page.getByLabel('Require two-factor sign-in').click()
    await page.getByRole('heading', { level: 1, name: 'Set up two-factor sign-in' }).waitFor()
    const { secret, codes } = await setUp(page, password)
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
    await page.getByText('10 recovery codes left').waitFor()

    const other = await newVisitor(browser, gateway)
    await other.go('', 'Sign in')
    const signIn = async (code: string) => {
      await other.page.getByLabel('Email').fill(email)
      await other.page.getByLabel('Password').fill(password)
      await other.page.getByRole('button', { name: 'Sign in' }).click()
      await other.page.getByLabel('Two-factor code').fill(code)
      await other.page.getByRole('button', { name: 'Sign in' }).click()
    }
    await signIn('000000')
    await other.page.getByText('The code is wrong').waitFor()
    await other.page.getByLabel('Two-factor code').fill(nextCode(secret))
    await other.page.getByRole('button', { name: 'Sign in' }).click()
    await other.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await other.leave()

    await page.getByLabel('Your password').fill(password)
    await page.getByLabel('Two-factor code').fill(codes[0] ?? '')
    await page.getByRole('button', { name: 'Disable' }).click()
    // The account still requires it.
    await page.getByRole('heading', { level: 1, name: 'Set up two-factor sign-in' }).waitFor()
    await visitor.leave()
  })
}
