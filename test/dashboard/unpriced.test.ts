/** Usage without a known price, as the overview and the log of requests show it in a real browser. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { untilFound } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { sendRequest, signIn } from '../harness/users.ts'
import { firstOwner, newOwner, openBrowser, testInBrowser, type Visitor } from './browser.ts'

testInBrowser('unpriced usage: is shown in a browser', withBrowser)

function withBrowser(path: string) {
  /** A server whose only model no catalog has. */
  const server = Bun.serve({
    port: 0,
    fetch: ({ url }) =>
      Response.json(
        url.endsWith('/models')
          ? { data: [{ id: 'local-1' }] }
          : {
              id: 'c1',
              choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
              usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 },
            },
      ),
  })
  let gateway: Gateway
  let browser: Browser
  let owner: Visitor
  beforeAll(async () => {
    const environment = { OLLAMA_BASE_URL: `http://127.0.0.1:${server.port}` }
    ;[gateway, browser] = await Promise.all([startGateway(environment), openBrowser(path)])
    const person = await signIn(gateway, firstOwner(gateway))
    if (person === null) throw new Error('the sign-in failed')
    const answer = await gateway.post('/api/v1/chat', { model: 'ollama/local-1', prompt: 'Hi' })
    expect(answer.status).toBe(200)
    const id = answer.headers.get('x-request-id') ?? ''
    const { token } = person
    await untilFound(async () => {
      const { status } = await sendRequest(gateway, 'GET', `/api/v1/requests/${id}`, { token })
      return status === 200 ? id : null
    })
    owner = await newOwner(browser, gateway)
  }, 240_000)
  afterAll(async () => {
    await gateway.stop()
    await server.stop(true)
  })

  test('Overview: names the model under what needs attention, and leads to its requests, which are marked', async () => {
    const { page, go } = owner
    await go('', 'Overview')
    const heading = page.getByRole('heading', { name: 'Needs attention' })
    const attention = page.locator('section').filter({ has: heading })
    const item = attention.getByRole('link', { name: /local-1/ })
    await item.waitFor()
    expect(await attention.textContent()).toContain('Unpriced')
    await item.click()
    const row = page.getByRole('table', { name: 'Requests' }).getByRole('row').filter({ hasText: 'local-1' })
    await row.waitFor()
    expect(page.url()).toContain('unpriced=true')
    expect(await row.getByTitle(/^Unpriced: no price of this model is known/).count()).toBe(1)
  }, 120_000)
}
