/**
 * `bun test ./test/dashboard/screenshot.ts`: writes docs/dashboard.png, the overview of a gateway that has served requests of
 * a month, on simulated providers. Not part of the suite.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { needed } from '../harness/needs.ts'
import { settled } from './axe.ts'
import { newOwner, openBrowser } from './browser.ts'
import { chromiumPath } from './chromium.ts'
import { startMonth } from './month.ts'

test('screenshot: shows the overview after a month of requests', async () => {
  const { gateway, stop } = await startMonth()
  const browser = await openBrowser(needed(chromiumPath()))
  const visitor = await newOwner(browser, gateway, { viewport: { width: 1280, height: 860 } })
  await visitor.page.evaluate(settled)
  const picture = await visitor.page.screenshot()
  expect(picture.byteLength).toBeLessThanOrEqual(200_000)
  writeFileSync(new URL('../../docs/dashboard.png', import.meta.url), picture)
  await visitor.leave()
  await stop()
}, 480_000)
