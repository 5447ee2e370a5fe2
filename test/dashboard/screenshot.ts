/**
 * `bun test ./test/dashboard/screenshot.ts`: writes docs/dashboard.png, the overview of a gateway that has served requests of
 * a month through two APIs, on simulated providers. Not part of the suite.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { systemClock } from '../../src/database/clock.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { needed } from '../harness/needs.ts'
import { settled } from './axe.ts'
import { newOwner, openBrowser } from './browser.ts'
import { chromiumPath } from './chromium.ts'

const hourMs = 3_600_000
const limits = { requestsPerMinute: 600, concurrentRequests: 50, dailyTokens: 20_000_000, dailyCostMicrocents: 2e9 }
/** Requests of a third of a day, from Sunday on. */
const perWeekday = [2, 6, 8, 7, 9, 6, 2]
const models = ['gateway-ai', 'anthropic/claude-haiku-5-5', 'gateway-ai', 'openai/gpt-5.4-mini']

async function send(gateway: Gateway, at: number): Promise<void> {
  const content = `Explain prompt caches, draft ${at}.${at % 29 === 7 ? ' [[sim:status=503]]' : ''}`
  const body = { model: models[at % models.length], max_tokens: 400, messages: [{ role: 'user', content }] }
  await (await gateway.post(at % 3 === 0 ? '/v1/messages' : '/v1/chat/completions', body)).text()
}

test('screenshot: shows the overview after a month of requests', async () => {
  let backMs = 29 * 24 * hourMs
  const now = () => Date.now() - backMs
  const gateway = await startGateway({}, { clock: { ...systemClock, now }, limits })
  let sent = 0
  for (; backMs > 0; backMs -= 8 * hourMs) {
    const count = perWeekday[new Date(now()).getUTCDay()] ?? 0
    await Promise.all(Array.from({ length: count }, () => send(gateway, sent++)))
  }
  backMs = 0
  await Promise.all(Array.from({ length: 12 }, () => send(gateway, sent++)))
  const metrics = async () => (await fetch(`${gateway.url}/metrics`)).text()
  await eventually(async () => /^gateway_usage_backlog_records(\{.*\})? 0$/m.test(await metrics()), 60_000)
  const browser = await openBrowser(needed(chromiumPath()))
  const visitor = await newOwner(browser, gateway, { viewport: { width: 1280, height: 860 } })
  await visitor.page.getByRole('button', { name: 'Dismiss' }).click()
  await visitor.page.evaluate(settled)
  const picture = await visitor.page.screenshot()
  expect(picture.byteLength).toBeLessThanOrEqual(200_000)
  writeFileSync(new URL('../../docs/dashboard.png', import.meta.url), picture)
  await visitor.leave()
  await gateway.stop()
}, 240_000)
