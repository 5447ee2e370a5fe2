/** A real browser on a running gateway: Chromium, if installed. */
import { expect, setDefaultTimeout } from 'bun:test'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { FirstAccount } from '../../src/console/account/first-account.ts'
import { atEnd } from '../harness/at-end.ts'
import { eventually } from '../harness/eventually.ts'
import type { Gateway } from '../harness/gateway.ts'
import { reportSkipped } from '../harness/needs.ts'
import { chromiumPath } from './chromium.ts'

/** Maximum time until a page shows something: a bound against a hang, not a claim about speed. */
const deadlineMs = 90_000

const unneededFeatures = [
  // What Playwright turns off: the browser reads only the last list of its command line.
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay',
  'MediaRouter',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'TcpPortRandomizationWin',
  'OptimizationHints',
  'NetworkTimeServiceQuerying',
  'AimEnabled',
  'PreconnectToSearch',
  // Processes for the address bar of every window and for pages in advance: half the CPU time of a window.
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'SpareRendererForSitePerProcess',
]

/** Declares tests that need a browser, or reports that they are skipped. */
export function testInBrowser(title: string, declare: (path: string) => void): void {
  // A bound against a hang, for a machine with many other processes.
  setDefaultTimeout(240_000)
  const path = chromiumPath()
  if (path === null) reportSkipped('chromium', title)
  else declare(path)
}

let browser: Promise<Browser> | null = null

/**
 * Returns the browser of this process, with a temporary user data folder: starting one takes seconds, and visitors share
 * nothing.
 */
export function openBrowser(executablePath: string): Promise<Browser> {
  if (browser !== null) return browser
  browser = chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      `--disable-features=${unneededFeatures.join()}`,
    ],
  })
  atEnd(async () => (await browser)?.close())
  return browser
}

export type Visitor = {
  readonly page: Page
  /** Errors reported by the browser: policy violations and script errors. API errors are not included. */
  readonly complaints: string[]
  /** Opens a page by its hash and waits for its heading. */
  go(path: string, heading: string): Promise<void>
  signIn(person: { readonly email: string; readonly password: string }): Promise<void>
  /** Opens a page in a new document: another one keeps what it has loaded before. */
  goFresh(path: string, heading: string): Promise<void>
  /** Closes the page, which must not have complained. */
  leave(): Promise<void>
}

/** Creates a visitor who is signed in as the owner of the first account. */
export async function newOwner(browser: Browser, gateway: Gateway, options: BrowserContextOptions = {}) {
  const visitor = await newVisitor(browser, gateway, options)
  await visitor.signIn(firstOwner(gateway))
  return visitor
}

/** Creates a visitor without session and storage. */
export async function newVisitor(
  browser: Browser,
  gateway: Gateway,
  options: BrowserContextOptions = {},
): Promise<Visitor> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  })
  context.setDefaultTimeout(deadlineMs)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    const isRefusal = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !isRefusal) complaints.push(message.text())
  })
  const go = async (path: string, heading: string) => {
    await page.goto(`${gateway.url}/#/${path}`)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  }
  return {
    page,
    complaints,
    go,
    async goFresh(path, heading) {
      await page.goto('about:blank')
      await go(path, heading)
    },
    async signIn({ email, password }) {
      await go('', 'Sign in')
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    },
    async leave() {
      expect(complaints).toEqual([])
      await context.close()
    },
  }
}

/** Waits until a drawer is closed and has left the history: the browser takes back a navigation before that. */
export async function drawerClosed(page: Page): Promise<void> {
  await page.locator('dialog').waitFor({ state: 'detached' })
  // `waitForFunction` evaluates text on the page, which its content security policy forbids.
  await eventually(async () => (await page.evaluate('history.state?.drawer === undefined')) === true, deadlineMs)
}

/** Returns the owner of a gateway's first account. */
export function firstOwner(gateway: Gateway): FirstAccount {
  const { firstAccount } = gateway.deps
  if (firstAccount === null) throw new Error('a fresh folder makes a first account')
  return firstAccount
}
