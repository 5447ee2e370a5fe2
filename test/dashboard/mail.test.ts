/** What arrives by e-mail leads somewhere: a forgotten password and an invitation, in a real browser. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { type SmtpServer, startSmtpServer } from '../harness/smtp.ts'
import { firstOwner, newVisitor, openBrowser } from './browser.ts'
import { chromiumPath } from './chromium.ts'

setDefaultTimeout(60_000)

const chosen = 'chosen in a browser'

const chromium = chromiumPath()
if (chromium === null)
  test('letters in a browser', () => {
    process.stdout.write('where letters lead did not run in a browser: there is no Chromium here\n')
  })
else withBrowser(chromium)

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
    await browser.close()
    await gateway.stop()
    smtp.stop()
  })

  /** The path that the newest letter to somebody leads to. */
  async function linkTo(email: string): Promise<string> {
    for (let tries = 0; tries < 250; tries++) {
      const letter = smtp.letters.findLast(({ to }) => to.includes(email))
      const link = /\/#\/(\S+)/.exec(letter?.text ?? '')?.[1]
      if (link !== undefined) return link
      await Bun.sleep(20)
    }
    throw new Error(`no letter to ${email}`)
  }

  test('a forgotten password is replaced by the link in the letter, which works once', async () => {
    const { email } = firstOwner(gateway)
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await go('', 'Sign in')
    await page.getByRole('link', { name: 'Forgot the password?' }).click()
    await page.getByLabel('E-mail').fill(email)
    await page.getByRole('button', { name: 'Send the link' }).click()
    await page.getByText('Look into your mailbox').waitFor()

    const link = await linkTo(email)
    await go(link, 'Choose a new password')
    await page.getByLabel('Your new password').fill(chosen)
    await page.getByRole('button', { name: 'Change the password' }).click()
    await page.getByText('Your password is changed').waitFor()
    await visitor.signIn(email, chosen)

    const late = await newVisitor(browser, gateway)
    await late.go(link, 'Choose a new password')
    await late.page.getByLabel('Your new password').fill('chosen once more')
    await late.page.getByRole('button', { name: 'Change the password' }).click()
    await late.page.getByText('This link is not valid any more').waitFor()
    await late.leave()
    expect(visitor.complaints).toEqual([])
    await visitor.leave()
  })

  test('an invitation goes by mail, its inviter is told so, and may withdraw it', async () => {
    const visitor = await newVisitor(browser, gateway)
    const { page, go } = visitor
    await visitor.signIn(firstOwner(gateway).email, chosen)
    await go('team', 'Team')
    await page.getByRole('button', { name: 'Invite somebody' }).click()
    await page.getByLabel('E-mail').fill('invited@example.test')
    await page.getByRole('button', { name: 'Invite', exact: true }).click()
    await page.getByText('The invitation is on its way').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    expect(await linkTo('invited@example.test')).toStartWith('invitation/gw_invite_')
    await page
      .getByRole('row', { name: /invited@example.test/ })
      .getByRole('button', { name: 'Withdraw' })
      .click()
    await page.getByRole('dialog').getByRole('button', { name: 'Withdraw' }).click()
    await page.getByText('is withdrawn.').waitFor()
    expect(visitor.complaints).toEqual([])
    await visitor.leave()
  })
}
