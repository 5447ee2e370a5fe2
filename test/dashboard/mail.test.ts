/** Links in emails: a password reset and an invitation, in a real browser. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { eventually, untilFound } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { type SmtpServer, startSmtpServer } from '../harness/smtp.ts'
import { firstOwner, newVisitor, openBrowser, testInBrowser } from './browser.ts'

const chosen = 'chosen in a browser'

testInBrowser('emails: lead to pages that work in a browser', withBrowser)

function withBrowser(path: string) {
  let smtp: SmtpServer
  let gateway: Gateway
  let browser: Browser
  beforeAll(async () => {
    smtp = startSmtpServer()
    const environment = {
      SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
      MAIL_FROM: 'gateway@example.test',
      PUBLIC_URL: 'http://127.0.0.1:1',
    }
    ;[gateway, browser] = await Promise.all([startGateway(environment), openBrowser(path)])
  })
  afterAll(async () => {
    await gateway.stop()
    smtp.stop()
  })

  /** Returns the path of the link in the newest email to an address. */
  function linkTo(email: string): Promise<string> {
    return untilFound(() => {
      const letter = smtp.letters.findLast(({ to }) => to.includes(email))
      return /\/#\/(\S+)/.exec(letter?.text ?? '')?.[1]
    })
  }

  test('Reset password: replaces a forgotten password by a single-use link', async () => {
    const { email } = firstOwner(gateway)
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await go('', 'Sign in')
    await page.getByRole('link', { name: 'Forgot your password?' }).click()
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button', { name: 'Send reset link' }).click()
    await page.getByText('Check your email').waitFor()

    const link = await linkTo(email)
    await go(link, 'Choose a new password')
    await page.getByLabel('Your new password').fill(chosen)
    const { key } = firstOwner(gateway)
    const use = () => fetch(`${gateway.url}/api/v1/insights/learning`, { headers: { 'x-api-key': key } })
    expect((await use()).status).toBe(200)
    await page.getByLabel('Revoke my API keys too').check()
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('your API keys are revoked').waitFor()
    await eventually(async () => (await use()).status === 401, 2000)
    await visitor.signIn({ email, password: chosen })

    const late = await newVisitor(browser, gateway)
    await late.go(link, 'Choose a new password')
    await late.page.getByLabel('Your new password').fill('chosen once more')
    await late.page.getByRole('button', { name: 'Change password' }).click()
    await late.page.getByText('This link has expired or was used').waitFor()
    await late.leave()
    await visitor.leave()
  })

  test('Registration: allows reading before the email is confirmed, and keys afterwards', async () => {
    const email = 'new@example.test'
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await go('sign-up', 'Create account')
    await page.getByText('We send a link to confirm your address').waitFor()
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill('a long enough password')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByText('Confirm your email address').waitFor()
    await page.getByRole('button', { name: 'Create API key and show command' }).click()
    await page.getByText('Your email address is not confirmed yet').waitFor()
    await page.getByRole('button', { name: 'Send another email' }).click()
    await page.getByRole('button', { name: 'Email sent' }).waitFor()
    await eventually(() => smtp.letters.filter(({ to }) => to.includes(email)).length === 2, 5000)

    const link = await linkTo(email)
    const other = await newVisitor(browser, gateway)
    await other.go(link, 'Confirm your email address')
    await other.page.getByLabel('Password').fill('not the password')
    await other.page.getByRole('button', { name: 'Confirm email address' }).click()
    await other.page.getByText('Wrong password').waitFor()
    await other.page.getByLabel('Password').fill('a long enough password')
    await other.page.getByRole('button', { name: 'Confirm email address' }).click()
    await other.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await other.page.getByRole('button', { name: 'Create API key and show command' }).click()
    await other.page.locator('.first-run pre').waitFor()
    expect(await other.page.getByText('Confirm your email address').count()).toBe(0)
    await other.leave()
    await visitor.leave()
  })

  test('Registration: shows no form when it is closed', async () => {
    const closed = await startGateway({ REGISTRATION: 'closed' })
    const visitor = await newVisitor(browser, closed)
    const { page, go } = visitor
    await go('sign-up', 'Create account')
    await page.getByText('Registration is closed').waitFor()
    expect(await page.getByLabel('Email').count()).toBe(0)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByText('Self-hosting?').waitFor()
    expect(await page.getByRole('link', { name: 'create an account' }).count()).toBe(0)
    await visitor.leave()
    await closed.stop()
  })

  test('Team: sends an invitation by email that can be withdrawn', async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await visitor.signIn({ email: firstOwner(gateway).email, password: chosen })
    await go('team', 'Team')
    await page.getByRole('button', { name: 'Invite user' }).click()
    await page.getByLabel('Email').fill('invited@example.test')
    await page.getByRole('button', { name: 'Invite', exact: true }).click()
    await page.getByText('Invitation sent').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    expect(await linkTo('invited@example.test')).toStartWith('invitation/gw_invite_')
    await page
      .getByRole('row', { name: /invited@example.test/ })
      .getByRole('button', { name: 'Withdraw' })
      .click()
    await page.getByRole('dialog').getByRole('button', { name: 'Withdraw' }).click()
    await page.getByText('withdrawn').waitFor()
    await visitor.leave()
  })
}
