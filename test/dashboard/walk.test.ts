/**
 * A month of about 1,000 requests in a real browser: twelve everyday tasks in at most four clicks each, at two widths and in
 * two themes; no empty picture; the same figures on pages, in files, commands and the API. A choice from a list is one
 * click, because its text can be typed; typing and Enter are none. SHOTS=folder saves pictures.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Locator, Page } from 'playwright-core'
import { reconcileUsage } from '../../src/commands/usage-reports.ts'
import { managementScopes } from '../../src/core/accounts/roles.ts'
import { createManagementKey, sendRequest, signIn } from '../harness/users.ts'
import { axeProblems, settled } from './axe.ts'
import { drawerClosed, firstOwner, newOwner, openBrowser, testInBrowser, type Visitor } from './browser.ts'
import { type Month, startMonth } from './month.ts'

const mostClicks = 4
const dayMs = 86_400_000
const toDay = (time: number) => new Date(time).toISOString().slice(0, 10)

type Sums = {
  readonly requests: number
  readonly completed: number
  readonly failed: number
  readonly total_tokens: number
  readonly cost_usd: number
  readonly latency_p95_ms: number | null
}
type Usage = { readonly total: Sums; readonly data: readonly (Sums & { email?: string; model?: string | null })[] }
type Call = <T>(method: string, route: string, body?: unknown) => Promise<T>

/** Actions of a person with a mouse, counted. */
function toWalker({ page }: Visitor) {
  let clicks = 0
  const click = async (target: Locator) => {
    clicks++
    await target.click()
  }
  const walker = {
    page,
    clicks: () => clicks,
    click,
    press: (name: string | RegExp) => click(page.getByRole('button', { name, exact: true }).last()),
    async choose(label: string, option: string) {
      clicks++
      await page.getByLabel(label, { exact: true }).selectOption({ label: option })
    },
    /** Opens a page by the menu, which is behind a button on a phone. */
    async open(title: string) {
      const menu = page.getByRole('button', { name: 'Open the menu' })
      if (await menu.isVisible()) await click(menu)
      await click(page.getByRole('navigation').getByRole('link', { name: title, exact: true }))
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await page.evaluate(settled)
    },
  }
  return walker
}

type Walker = ReturnType<typeof toWalker>
/** Performs a task and checks its end; `look` names the width and theme. Returns what undoes it after its picture. */
type Task = (walker: Walker, look: string) => Promise<(() => Promise<unknown>) | undefined>

const closeResult = (page: Page) => async () => {
  await page.getByRole('button', { name: 'Done' }).click()
  await drawerClosed(page)
}

function toTasks(getMonth: () => Month, call: Call): Readonly<Record<string, Task>> {
  const chat = async (body: object, key = getMonth().gateway.key) => {
    const answer = await getMonth().gateway.post('/api/v1/chat', body, { authorization: `Bearer ${key}` })
    await answer.text()
    return answer.status
  }
  const findKey = async (name: string) => {
    const { data } = await call<{ data: { id: string; name: string; limits: { monthly_cost_usd: number } | null }[] }>(
      'GET',
      '/api/v1/keys',
    )
    return data.findLast(key => key.name === name)
  }
  return {
    'key for an intern': async ({ open, press, choose, page }, look) => {
      await open('Keys')
      await press('Create API key')
      await choose('For', 'An intern: $5 per month, 90 days')
      await page.getByLabel('Name').fill(`Intern ${look}`)
      await page.keyboard.press('Enter')
      await page.locator('dialog pre').waitFor()
      expect((await findKey(`Intern ${look}`))?.limits?.monthly_cost_usd).toBe(5)
      return closeResult(page)
    },
    'why a request failed': async ({ click, page }) => {
      const yesterday = new Date(Date.now() - dayMs).toLocaleDateString('en', { month: 'short', day: 'numeric' })
      await click(page.getByRole('link', { name: /^\d+ failed or blocked$/ }))
      await click(page.locator('tr.request a', { hasText: yesterday }).first())
      await page.getByText('All attempts failed').waitFor()
      await page.getByText('status 503').first().waitFor()
      return undefined
    },
    'who spent most': async ({ click, page }) => {
      const tabs = page.locator('.tabs label')
      await click(tabs.filter({ hasText: /^Cost$/ }))
      await click(tabs.filter({ hasText: 'By member' }))
      const { data } = await call<Usage>('GET', '/api/v1/usage?group_by=member')
      const [most] = data.toSorted((left, right) => right.cost_usd - left.cost_usd)
      await page
        .locator('.legend li')
        .first()
        .getByText(most?.email ?? '')
        .waitFor()
      return undefined
    },
    'add an OpenAI key': async ({ open, press, page }) => {
      await open('Providers')
      await press('Add key of openai')
      await page.getByRole('dialog').getByLabel('Key', { exact: true }).fill('sk-walk-0123456789abcdef')
      await page.keyboard.press('Enter')
      await page.getByText('…cdef').waitFor()
      await page.locator('dialog').waitFor({ state: 'detached' })
      return async () => {
        const { data } = await call<{ data: { id: string }[] }>('GET', '/api/v1/provider-keys')
        for (const { id } of data) await call('DELETE', `/api/v1/provider-keys/${id}`)
      }
    },
    'compare two models': async ({ open, choose, page }) => {
      await open('Playground')
      await choose('Model', 'GPT-5.5')
      await choose('Compare with', 'Claude Haiku 5.5')
      await page.getByLabel('Your message').fill('Name three uses of a prompt cache.')
      await page.keyboard.press('Enter')
      const about = page.getByRole('list', { name: 'About this response' })
      await about.nth(1).waitFor()
      expect(await about.locator('li:first-child .badge').allTextContents()).toEqual([
        'openai/gpt-5.5',
        'anthropic/claude-haiku-5-5',
      ])
      return async () => {
        await page.getByRole('button', { name: 'Clear conversation' }).click()
        await page.getByRole('button', { name: 'Remove model 2' }).click()
        await page.getByLabel('Model', { exact: true }).selectOption({ label: 'Automatic' })
      }
    },
    'why this model': async ({ open, click, page }) => {
      await open('Requests')
      const automatic = page.locator('tr.request', { hasText: 'Automatic routing' }).first()
      await click(automatic.getByRole('link'))
      await page.getByText(/^Chosen because /).waitFor()
      await page.getByRole('list', { name: 'Scores of the candidates' }).waitFor()
      return undefined
    },
    'invite a member': async ({ open, press, page }, look) => {
      await open('Team')
      await press('Invite user')
      await page.getByLabel('Email').fill(`walk-${look.replace(' ', '-')}@example.test`)
      await page.keyboard.press('Enter')
      expect(await page.locator('dialog pre').textContent()).toContain('/#/invitation/')
      return closeResult(page)
    },
    'alert at 80 percent': async ({ open, press, page }) => {
      await open('Alerts')
      await press('Create alert')
      await press('Create')
      await page.getByRole('row', { name: /Budget: all.*80 %/ }).waitFor()
      return async () => {
        const { data } = await call<{ data: { id: string }[] }>('GET', '/api/v1/alerts')
        for (const { id } of data) await call('DELETE', `/api/v1/alerts/${id}`)
      }
    },
    'last month as CSV': async ({ open, choose, press, page }) => {
      await open('Requests')
      await choose('Range (UTC)', 'Last month')
      await page.evaluate(settled)
      const [download] = await Promise.all([page.waitForEvent('download'), press('Export CSV')])
      const now = new Date()
      const [from, to] = [now.getUTCMonth() - 1, now.getUTCMonth()].map(of => Date.UTC(now.getUTCFullYear(), of))
      const { total } = await call<Usage>(
        'GET',
        `/api/v1/usage?from=${toDay(from ?? 0)}&to=${toDay((to ?? 0) - dayMs)}`,
      )
      expect(total.requests).toBeGreaterThan(10)
      expect(readCsv(await Bun.file(await download.path()).text())).toHaveLength(total.requests)
      return undefined
    },
    'rotate without downtime': async ({ open, press, page }, look) => {
      const { key: old } = await call<{ key: string }>('POST', '/api/v1/keys', { name: `Service ${look}` })
      await open('Keys')
      await press(`Rotate Service ${look}`)
      await press('Rotate')
      const fresh = (await page.locator('dialog pre').textContent()) ?? ''
      expect([await chat({ prompt: 'Hi' }, old), await chat({ prompt: 'Hi' }, fresh)]).toEqual([200, 200])
      expect(fresh).not.toBe(old)
      return closeResult(page)
    },
    'disable a model': async ({ open, press, page }) => {
      await open('Models')
      await press('Disable openai/gpt-5.5')
      await page.getByRole('button', { name: 'Enable openai/gpt-5.5', exact: true }).waitFor()
      expect(await chat({ model: 'openai/gpt-5.5', prompt: 'Hi' })).toBe(404)
      return async () => {
        await page.getByRole('button', { name: 'Enable openai/gpt-5.5', exact: true }).click()
        await page.getByRole('button', { name: 'Disable openai/gpt-5.5', exact: true }).waitFor()
      }
    },
    'p95 per model': async ({ open, choose, page }) => {
      await open('Models')
      await choose('Range (UTC)', 'Last 7 days')
      await page.getByText('Last 7 days. Size: your requests.').waitFor()
      await page.evaluate(settled)
      const week = `from=${toDay(Date.now() - 6 * dayMs)}&to=${toDay(Date.now())}`
      const { data } = await call<Usage>('GET', `/api/v1/usage?group_by=model&${week}`)
      const model = data.find(row => row.model === 'openai/gpt-5.4-mini')
      const row = page.getByRole('row').filter({ has: page.getByText('openai/gpt-5.4-mini', { exact: true }) })
      const shown = row.first().locator('td.number').last()
      await shown.getByText(showMilliseconds(model?.latency_p95_ms ?? 0), { exact: true }).waitFor()
      await shown.scrollIntoViewIfNeeded()
      return undefined
    },
  }
}

const showMilliseconds = (value: number) =>
  value < 1_000 ? `${Math.round(value)} ms` : `${(value / 1_000).toFixed(1)} s`

/** The rows of a file without quoted line breaks, by column. */
function readCsv(text: string): Record<string, string>[] {
  const [head = '', ...lines] = text.trim().split(/\r?\n/)
  const cells = (line: string) =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
  const names = cells(head)
  return lines.map(line => Object.fromEntries(cells(line).map((cell, at) => [names[at] ?? '', cell])))
}

testInBrowser('walk: works in a browser', withBrowser)

function withBrowser(path: string) {
  let month: Month
  let browser: Browser
  let token: string
  beforeAll(async () => {
    ;[month, browser] = await Promise.all([startMonth(), openBrowser(path)])
    const owner = await signIn(month.gateway, firstOwner(month.gateway))
    if (owner === null) throw new Error('the first owner signs in')
    // Each visitor ends the oldest of five sessions, but no management key.
    const scopes = managementScopes.filter(scope => scope.endsWith(':write'))
    token = (await createManagementKey(month.gateway, owner, scopes)).key
  }, 480_000)
  afterAll(() => month.stop())

  const call: Call = async <T>(method: string, route: string, body?: unknown) => {
    const answer = await sendRequest<T>(month.gateway, method, route, { token, body })
    expect(answer.status).toBeWithin(200, 300)
    return answer.body
  }
  const save = async (page: Page, name: string) => {
    const file = `${process.env.SHOTS}/${name.replaceAll(' ', '-')}.png`
    if (process.env.SHOTS) await page.screenshot({ path: file })
  }
  const tasks = toTasks(() => month, call)

  test('Figures: agree on the overview, in the log, in its file, in the API and in the command', async () => {
    const [from, to] = [Date.now() - 29 * dayMs, Date.now()].map(toDay)
    const { total } = await call<Usage>('GET', `/api/v1/usage?from=${from}&to=${to}`)
    expect(total.requests).toBeGreaterThan(800)
    const rate = `${Number(((total.completed / (total.completed + total.failed)) * 100).toFixed(1))}%`
    const visitor = await newOwner(browser, month.gateway)
    const { page } = visitor
    const showTile = async (name: string) =>
      (
        await page
          .locator('.tile', { has: page.getByRole('heading', { name, exact: true }) })
          .locator('.figure')
          .textContent()
      )?.split(' ')[0]
    await page.evaluate(settled)
    expect(await showTile('Requests')).toBe(total.requests.toLocaleString('en'))
    expect(await showTile('Success rate')).toBe(rate)
    await page.getByRole('link', { name: `${total.failed} failed or blocked` }).waitFor()
    for (const [measure, value] of [
      [
        'Cost',
        total.cost_usd.toLocaleString('en', {
          style: 'currency',
          currency: 'USD',
          maximumFractionDigits: total.cost_usd >= 1 ? 2 : 4,
        }),
      ],
    ] as const) {
      await page.locator('.tabs label').filter({ hasText: measure }).click()
      expect(await page.locator('.legend-value').first().textContent()).toBe(value)
    }
    await visitor.go('requests', 'Requests')
    await page.getByText(`50 of ${total.requests.toLocaleString('en')} shown`).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ])
    const rows = readCsv(await Bun.file(await download.path()).text())
    const sum = (name: string) => rows.reduce((all, row) => all + Number(row[name]), 0)
    const count = (...statuses: string[]) => rows.filter(({ status = '' }) => statuses.includes(status)).length
    const found = {
      requests: rows.length,
      completed: count('completed'),
      failed: count('failed', 'blocked'),
      tokens: sum('total_tokens'),
      cost: Number(sum('cost_usd').toFixed(8)),
    }
    const { requests, completed, failed, total_tokens: tokens, cost_usd: cost } = total
    expect(found).toEqual({ requests, completed, failed, tokens, cost })
    for (const group of ['model', 'key', 'member', 'hour&from=&to='].slice(0, 3)) {
      const { data } = await call<Usage>('GET', `/api/v1/usage?from=${from}&to=${to}&group_by=${group}`)
      const add = (read: (row: Sums) => number) => data.reduce((all, row) => all + read(row), 0)
      expect([
        add(row => row.requests),
        add(row => row.total_tokens),
        Number(add(row => row.cost_usd).toFixed(8)),
      ]).toEqual([requests, tokens, cost])
    }
    const report = await reconcileUsage(month.gateway.deps.database, [], {
      ...{ from: from ?? '', to: to ?? '', accountId: month.gateway.accountId },
    })
    expect(report.json).toMatchObject({ ok: true, requests, billed_microcents: Math.round(cost * 1e8) })
    await visitor.leave()
  })

  test.each([1440, 390])('Pages: show no empty picture at %d px after a month', async width => {
    const visitor = await newOwner(browser, month.gateway, { viewport: { width, height: 900 } })
    const { page } = visitor
    const wrong: string[] = []
    for (const [path, heading, pictures] of [
      ['', 'Overview', 2],
      ['requests', 'Requests', 1],
      ['models', 'Models', 2],
      ['insights', 'Insights', 1],
      ['keys', 'Keys', 0],
      ['tags', 'Tags', 1],
    ] as const) {
      await visitor.go(path, heading)
      await page.evaluate(settled)
      await page.waitForLoadState('networkidle')
      const drawn = await page.locator('figure:has(svg, button), .model-map').count()
      if (drawn < pictures) wrong.push(`${heading} shows ${drawn} of ${pictures} pictures`)
      const empty = await page.locator('.empty strong').allTextContents()
      wrong.push(
        ...empty.filter(text => !/^No (management keys|budgets)$/.test(text)).map(text => `${heading}: ${text}`),
      )
      if (process.env.SHOTS)
        await page.screenshot({ path: `${process.env.SHOTS}/page-${heading}-${width}.png`, fullPage: true })
    }
    expect(wrong).toEqual([])
    await visitor.leave()
  })

  test.each([
    [1440, 'light'],
    [1440, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)('Walk: does twelve everyday tasks in at most four clicks each at %d px, %s', async (width, theme) => {
    const visitor = await newOwner(browser, month.gateway, { colorScheme: theme, viewport: { width, height: 900 } })
    if (process.env.SHOTS) visitor.page.setDefaultTimeout(15_000)
    const counts: Record<string, number> = {}
    const wrong: string[] = []
    for (const [name, walk] of Object.entries(tasks)) {
      await visitor.go('', 'Overview')
      await visitor.page.evaluate(settled)
      const walker = toWalker(visitor)
      // The other tasks are walked too.
      const undo = await walk(walker, `${width} ${theme}`).catch(cause => void wrong.push(`${name}: ${cause}`))
      counts[name] = walker.clicks()
      await visitor.page.evaluate(settled)
      wrong.push(...(await axeProblems(visitor, `${name}, ${width} px, ${theme}`)))
      await save(visitor.page, `${name} ${width} ${theme}`)
      await undo?.()
    }
    process.stdout.write(`clicks at ${width} px, ${theme}: ${JSON.stringify(counts)}\n`)
    expect(Object.keys(counts)).toHaveLength(12)
    expect(Object.entries(counts).filter(([, clicks]) => clicks > mostClicks)).toEqual([])
    expect(wrong).toEqual([])
    await visitor.leave()
  })
}
