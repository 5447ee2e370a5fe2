/**
 * Payment by card in a real browser against a Stripe on a real socket: entering the card, reading, paying and printing
 * the invoice.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { cycleMs, settlementDelayMs } from '../../src/core/billing/billing.ts'
import { systemClock } from '../../src/database/clock.ts'
import { startProxy, type TcpProxy } from '../faults/tcp-proxy.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { owner, type Person } from '../harness/users.ts'
import { type StripeServer, startStripe } from '../routes/billing-stripe.ts'
import { newVisitor, openBrowser, testInBrowser, type Visitor } from './browser.ts'

testInBrowser('billing pages: work in a browser', withBrowser)

function withBrowser(path: string) {
  let ahead = 0
  const clock = { ...systemClock, now: () => systemClock.now() + ahead }
  let stripe: StripeServer
  let front: TcpProxy
  let gateway: Gateway
  let browser: Browser
  let person: Person
  let visitor: Visitor
  beforeAll(async () => {
    stripe = startStripe('sk_test_of_a_browser')
    front = startProxy(null)
    const environment = {
      TRUSTED_PROXIES: '127.0.0.1',
      STRIPE_SECRET_KEY: 'sk_test_of_a_browser',
      STRIPE_WEBHOOK_SECRET: 'whsec_0123456789abcdefghijklmnop',
      STRIPE_API_BASE: stripe.url,
      PUBLIC_URL: `http://127.0.0.1:${front.port}`,
    }
    ;[gateway, browser] = await Promise.all([startGateway(environment, { clock, ...withoutTimer }), openBrowser(path)])
    front.leadTo(gateway.port)
    person = await owner(gateway)
    visitor = await newVisitor(browser, { ...gateway, url: `http://127.0.0.1:${front.port}` })
    await visitor.signIn(person)
  })
  afterAll(async () => {
    await gateway.stop()
    front.stop()
    await stripe.stop()
  })

  /** Ends the account's nth cycle after one hour with usage of two models. */
  async function endCycle(n: number) {
    const hours = ((n - 1) * cycleMs) / 3_600_000 + 1
    await gateway.deps.database.run(
      ({ sql }) => sql`
        with inserted as (
          insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
            input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
            billed_microcents, reserved_microcents, attempts, latency_ms)
          select 'req_' || ${n}::int || model, clock_timestamp() + ${hours}::int * interval '1 hour', ${person.accountId}, 'key_x',
            provider, model, 'auto', false, 'completed', 12000, 0, 0, 3400, 0, false, billed, billed, 1, 5
          from (values ('openai', 'gpt-4.1', 250000000::bigint), ('google', 'gemini-2.5-pro', 123456789)) as used(provider, model, billed)
          returning *)
        insert into usage_daily (account_id, day, key_id, model, requests, completed, input_tokens, cached_input_tokens,
          output_tokens, reasoning_tokens, billed_microcents)
        select account_id, (at at time zone 'UTC')::date, key_id, provider || '/' || model, 1, 1, 12000, 0, 3400, 0, billed_microcents
        from inserted`,
    )
    // A page that loads data meanwhile would use a session of 30 days ago.
    await visitor.page.goto('about:blank')
    ahead = n * cycleMs + settlementDelayMs + 60_000
    await gateway.deps.billingWorker.run()
    ahead = 0
  }

  /** Enters a card on Stripe's page and returns. */
  async function saveCard() {
    const { page } = visitor
    await page.getByRole('heading', { level: 1, name: 'Save a card' }).waitFor()
    expect(page.url()).toStartWith(`${stripe.url}/c/pay/cs_test_`)
    await page.getByLabel('Card number').fill('4242 4242 4242 4242')
    await page.getByRole('button', { name: 'Save card' }).click()
    await page.getByText('Payment method saved.').waitFor()
    // The session's ID is removed from the URL, so that a reload does not apply the card again.
    await page.waitForURL(({ href }) => href === `http://127.0.0.1:${front.port}/#/billing`)
  }

  test("Billing: accepts a card entered on Stripe's page, which enables the plan", async () => {
    const { page, go } = visitor
    await go('billing', 'Billing')
    expect(await page.getByRole('button', { name: 'Upgrade' }).isDisabled()).toBe(true)
    expect(await page.getByRole('textbox', { name: /stripe|card/i }).count()).toBe(0)
    await page.getByRole('button', { name: 'Add payment method' }).click()
    await page.getByRole('link', { name: 'Back' }).click()
    await page.getByText('No payment method', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Add payment method' }).click()
    await saveCard()
    await page.getByText('Visa ···· 4242').waitFor()
    await page.getByRole('button', { name: 'Upgrade', exact: true }).click()
    await page.getByRole('button', { name: 'Upgrade and start billing' }).click()
    await page.getByText('Usage (current)').waitFor()
  })

  test('Billing: replaces a card with another one from Stripe’s page', async () => {
    const { page } = visitor
    const [before] = [...stripe.customers.values()].map(customer => customer.default)
    await page.getByRole('button', { name: 'Replace payment method' }).click()
    await saveCard()
    const [customer] = [...stripe.customers.values()]
    expect(customer?.default).not.toBe(before)
    expect(stripe.methods.get(String(before))?.customer).toBeNull()
    expect(stripe.methods.get(String(customer?.default))?.customer).toBe(customer?.id ?? '')
  })

  test('Billing: shows an error with a retry when the setup session does not exist', async () => {
    const { page, go } = visitor
    await go('billing?setup_session=cs_test_unknown', 'Billing')
    await page.getByRole('alert').getByRole('button', { name: 'Retry' }).waitFor()
    await page.getByText('Visa ···· 4242').waitFor()
    await go('', 'Overview')
  })

  test('Invoice: appears in the list, sums a line per model, and prints separately', async () => {
    await endCycle(1)
    const { page, go } = visitor
    await go('', 'Overview')
    await go('billing', 'Billing')
    const row = page.getByRole('table', { name: 'Invoices' }).getByRole('row').nth(1)
    expect(await row.textContent()).toMatch(/Paid.*\$3\.73/)
    await row.getByRole('link').click()
    await page.getByRole('heading', { level: 1, name: 'Invoice' }).waitFor()
    const lines = page.getByRole('table', { name: 'Invoice lines by model' }).locator('tbody tr')
    await lines.nth(1).waitFor()
    expect(await lines.allTextContents()).toEqual([
      expect.stringMatching(/openai\/gpt-4\.1.*\$2\.50$/),
      expect.stringMatching(/google\/gemini-2\.5-pro.*\$1\.23456789$/),
    ])
    expect(await page.locator('.invoice-total').textContent()).toContain('$3.73456789')

    const breakdown = page.getByRole('table', { name: /^Invoice by/ }).locator('tbody tr')
    await breakdown.getByText('key_x').waitFor()
    expect(await breakdown.allTextContents()).toEqual([expect.stringMatching(/^key_x.*\$3\.73456789$/)])
    await page.getByLabel('By', { exact: true }).selectOption('tag')
    await page.getByLabel('Tag name').fill('team')
    await page.getByLabel('Tag name').press('Enter')
    await breakdown.getByText('Without this tag').waitFor()
    expect(await breakdown.allTextContents()).toEqual([expect.stringContaining('$3.73456789')])

    await page.evaluate('print = () => { document.title = "printed" }')
    await page.getByRole('button', { name: 'Print' }).click()
    expect(await page.title()).toBe('printed')
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    expect(await page.locator('.side').isVisible()).toBe(false)
    expect(await page.getByRole('button', { name: 'Print' }).isVisible()).toBe(false)
    // On paper there is room for all columns, and a light background.
    expect(await lines.first().locator('td:visible').count()).toBe(5)
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('light')
    await page.emulateMedia({ media: 'screen', colorScheme: 'light' })
  })

  test('Billing: shows an unpaid invoice above the paid one when the card is declined', async () => {
    for (const { default: card } of stripe.customers.values()) stripe.declined.add(String(card))
    await endCycle(2)
    const { page, go } = visitor
    await page.reload()
    await go('billing', 'Billing')
    const rows = page.getByRole('table', { name: 'Invoices' }).locator('tbody tr')
    await rows.nth(1).waitFor()
    expect((await rows.allTextContents()).map(text => /(Unpaid|Paid)/.exec(text)?.[0])).toEqual(['Unpaid', 'Paid'])
    await page.getByText('Invoice unpaid').waitFor()
    await page.getByText(/Chat requests work until .*\d\d:\d\d UTC/).waitFor()
  })

  test("Invoice: leads to Stripe's page for payment, after which nothing is owed", async () => {
    const { page, go } = visitor
    await page.getByRole('table', { name: 'Invoices' }).locator('tbody tr').first().getByRole('link').click()
    await page.getByRole('button', { name: 'Pay invoice' }).click()
    await page.getByRole('heading', { level: 1, name: 'Pay invoice' }).waitFor()
    await page.getByRole('button', { name: 'Pay' }).click()
    await page.getByRole('heading', { level: 1, name: 'Invoice paid' }).waitFor()
    // Without Stripe's event: the next collection finds it paid.
    ahead = 2 * cycleMs + settlementDelayMs + 60_000 + 86_400_000
    await gateway.deps.billingWorker.run()
    ahead = 0
    await go('billing', 'Billing')
    const rows = page.getByRole('table', { name: 'Invoices' }).locator('tbody tr')
    await rows.nth(1).waitFor()
    expect((await rows.allTextContents()).map(text => /(Unpaid|Paid)/.exec(text)?.[0])).toEqual(['Paid', 'Paid'])
    expect(await page.getByText('Invoice unpaid').count()).toBe(0)
  })

  test('Billing: removes the card, which starts the grace period', async () => {
    const { page, go } = visitor
    await page.getByRole('button', { name: 'Remove the payment method' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('Requests are rejected 1 hour after').waitFor()
    await go('', 'Overview')
    await page.getByText('Chat requests work until').waitFor()
  })

  test('Browser: reports no errors', () => {
    expect(visitor.complaints).toEqual([])
  })
}
