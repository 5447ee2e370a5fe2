/** Single sign-on at a real OpenID provider in a real browser. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { changePassword } from '../../src/console/auth/stores/users.ts'
import { findAccountByEmail } from '../../src/database/repositories/accounts.ts'
import { freePort } from '../harness/free-port.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import {
  type IdentityProviderProcess,
  singleSignOnEnvironment,
  startIdentityProvider,
} from '../harness/identity-provider.ts'
import { firstOwner, newVisitor, openBrowser, testInBrowser } from './browser.ts'

const users = {
  ada: { email: 'ada@corp.example', email_verified: true, groups: ['engineers'] },
  eve: { email: 'eve@corp.example', email_verified: true, groups: ['visitors'] },
}

testInBrowser('single sign-on: works in a browser', withBrowser)

function withBrowser(path: string) {
  let provider: IdentityProviderProcess
  let gateway: Gateway
  let only: Gateway
  let browser: Browser
  beforeAll(async () => {
    const [port, second] = [freePort(), freePort()]
    provider = await startIdentityProvider(port, users)
    const away = `http://127.0.0.1:${freePort()}`
    ;[gateway, only, browser] = await Promise.all([
      startGateway({ ...singleSignOnEnvironment(provider.issuer, port), OIDC_ROLES: 'engineers=viewer' }, { port }),
      startGateway({ ...singleSignOnEnvironment(away, second), OIDC_ONLY: 'true' }, { port: second }),
      openBrowser(path),
    ])
  })
  afterAll(async () => {
    await Promise.all([gateway.stop(), only.stop(), provider.stop()])
  })

  async function signInAtProvider(page: Page, name: string) {
    await page.getByRole('link', { name: 'Sign in with Keycloak' }).click()
    await atProvider(page, name)
  }

  async function atProvider(page: Page, name: string) {
    await page.waitForURL(`${provider.issuer}/**`)
    await page.locator('input[name=login]').fill(name)
    await page.locator('input[name=password]').fill('any')
    await page.locator('button[type=submit]').click()
    await page.locator('button[type=submit]:not([name])').click()
  }

  test('Single sign-on: signs in with the role of the groups, keeps the session over a reload, and signs out', async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page } = visitor
    await visitor.go('', 'Sign in')
    await page.getByLabel('Password').waitFor()
    await signInAtProvider(page, 'ada')
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.waitForURL(({ href }) => href === `${gateway.url}/#/`)
    // A viewer has no keys to create and no playground.
    await visitor.go('keys', 'Keys')
    expect(await page.getByRole('button', { name: 'Create key' }).count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Playground' }).count()).toBe(0)
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    const cookies = await page.context().cookies(gateway.url)
    expect(cookies.filter(({ name }) => name === 'gateway-sso')).toEqual([])
    // Signing out goes on to the provider, which asks, ends its session and returns.
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(`${provider.issuer}/session/end**`)
    await page.locator('button[value=yes]').click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    expect(page.url()).toStartWith(`${gateway.url}/`)
    // The provider asks for the password again.
    await page.getByRole('link', { name: 'Sign in with Keycloak' }).click()
    await page.locator('input[name=password]').waitFor()
    await visitor.leave()
  })

  test('Single sign-on: the owner sees the configuration and tests a sign-in without losing the session', async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page } = visitor
    const { email, password } = firstOwner(gateway)
    await visitor.signIn({ email, password })
    await visitor.go('settings', 'Settings')
    await page.locator('.pairs > div', { hasText: `Issuer${provider.issuer}` }).waitFor()
    await page.locator('.pairs > div', { hasText: 'engineersviewer' }).waitFor()
    await page.getByText(`${gateway.url}/api/v1/auth/oidc/callback`).waitFor()
    await page.getByText('reachable', { exact: true }).waitFor()
    for (const [name, text] of [
      ['ada', 'This user signs in as viewer'],
      ['eve', 'None of your groups may use this gateway'],
    ] as const) {
      await page.context().clearCookies()
      await page.getByRole('link', { name: 'Test sign-in' }).click()
      await atProvider(page, name)
      await page.getByText(text).waitFor()
      await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
    }
    // The sign-out of a password session stays at the gateway.
    await page.getByRole('button', { name: 'Sign out', exact: true }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    await visitor.leave()
  })

  test('Single sign-on: explains on the sign-in page that no group may sign in', async () => {
    const visitor = await newVisitor(browser, gateway)
    await visitor.go('', 'Sign in')
    await signInAtProvider(visitor.page, 'eve')
    await visitor.page.getByText('None of your groups may use this gateway').waitFor()
    await visitor.page.getByRole('link', { name: 'Sign in with Keycloak' }).waitFor()
    await visitor.leave()
  })

  test('Single sign-on only: explains an outage of the provider; the operator’s password opens for an hour', async () => {
    const visitor = await newVisitor(browser, only)
    const { page } = visitor
    await visitor.go('', 'Sign in')
    await page.getByText('Password sign-in is disabled').waitFor()
    expect(await page.getByLabel('Password').count()).toBe(0)
    await page.getByRole('link', { name: 'Sign in with Keycloak' }).click()
    await page.getByText('The identity provider does not respond').waitFor()
    await page.getByRole('button', { name: 'Use a password' }).click()
    const { email, password } = firstOwner(only)
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Password sign-in is disabled. Use single sign-on.').waitFor()

    const { database, passwords } = only.deps
    const found = await findAccountByEmail(database, email)
    if (found === null) throw new Error('the first account has an owner')
    const { id, accountId, passwordHash: checkedHash } = found.user
    const newHash = await passwords.hash('by the operator', null)
    const change = { checkedHash, newHash, keptSession: '', isByOperator: true }
    expect(await changePassword(database, accountId, id, change)).toBe(true)
    await page.getByLabel('Password').fill('by the operator')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await visitor.leave()
  })
}
