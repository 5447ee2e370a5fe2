/** The router over the labeled sets beside the checkout: properties that every set must have. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { type Message, type Strategy, strategies } from '../../src/core/chat/chat.ts'
import { type Caller, plans } from '../../src/core/limits/plans.ts'
import { buildCatalog, type Model } from '../../src/core/models/models.ts'
import { defaultLevelShares, levels } from '../../src/models/capability-levels.ts'
import { catalog } from '../../src/models/catalog.ts'
import { withoutFailures } from '../../src/models/scoring.ts'
import { type RouteDeps, route } from '../../src/request/routing/route.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { readRows } from '../../src/training/data.ts'
import { askWith } from '../harness/ask.ts'
import { describeNeeding } from '../harness/needs.ts'
import { getProvider } from './support.ts'

const sets = ['routellm-mmlu', 'routellm-gsm8k', 'routellm-mtbench', 'routerarena-sub10', 'llmrouter-9models'] as const

// Hundreds of prompts per set, on a machine that other tests share.
setDefaultTimeout(240_000)

const read = openPromptAnalyzer().read
const deps: RouteDeps = {
  catalog: buildCatalog(catalog),
  endpoints: new Map(['openai', 'anthropic', 'google'].map(id => [id, getProvider(id)])),
  health: {
    getStanding: () => ({ state: 'healthy', mayTry: true }),
    findFigures: (_, published) => withoutFailures(published),
  },
  meter: { quotaStatus: () => null },
  clock: { now: () => Date.parse('2026-11-20T12:00:00Z') },
}
const caller: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'usage', limits: plans.usage }

function getMessages(prompt: string): readonly Message[] {
  return [{ role: 'user', content: [{ type: 'text', text: prompt }], name: null }]
}

function routed(prompt: string, strategy: Strategy | null, testMode = false) {
  const messages = getMessages(prompt)
  const inputTokens = Math.ceil(prompt.length / 3)
  return route(deps, {
    caller,
    request: askWith({ messages, strategy, testMode }),
    analysis: read(messages),
    inputTokens,
  })
}

/** Returns about `most` prompts of a set, evenly spaced. */
async function getPrompts(set: string, most: number): Promise<string[]> {
  const rows = await readRows(set, 'prompt')
  const every = Math.ceil(rows.length / most)
  return rows.filter((_, at) => at % every === 0).map(({ prompt }) => prompt)
}

/** Within a fifth of the best score. */
const bestQuality = Math.max(...catalog.map(({ figures }) => figures.quality))
const isStrong = ({ figures }: Model) => figures.quality >= 0.8 * bestQuality
const getShare = (models: readonly Model[]) => models.filter(isStrong).length / models.length

describeNeeding('data', 'on every labelled set', () => {
  test.each(sets)(
    '%s: cost calls no more strong models than speed, balanced no more than auto or quality; test mode calls no premium model',
    async set => {
      const prompts = await getPrompts(set, 200)
      const share = (strategy: Strategy | null) => getShare(prompts.map(prompt => routed(prompt, strategy).first.model))
      const shares = Object.fromEntries(strategies.map(strategy => [strategy, share(strategy)]))
      expect(shares.cost).toBeLessThanOrEqual(shares.speed ?? 0)
      expect(shares.balanced).toBeLessThanOrEqual(shares.quality ?? 0)
      expect(shares.balanced).toBeLessThanOrEqual(share(null))
      expect(share(null)).toBeLessThanOrEqual(shares.quality ?? 0)
      for (const prompt of prompts.slice(0, 100))
        for (const { model } of routed(prompt, null, true).candidates) expect(model.tier).not.toBe('premium')
    },
  )

  test('routing without a strategy: meets the target shares within three points on the reference mixture', async () => {
    const counted = { light: 0, middle: 0, strong: 0 }
    let [all, strongCalls] = [0, 0]
    for (const set of sets) {
      const prompts = await getPrompts(set, 10_000)
      // The mixture behind the percentiles: every set by the square root of its size.
      const weight = prompts.length ** -0.5
      for (const prompt of prompts) {
        const plan = routed(prompt, null)
        counted[plan.level] += weight
        if (isStrong(plan.first.model)) strongCalls += weight
        all += weight
      }
    }
    const wanted = { ...defaultLevelShares, light: 1 - defaultLevelShares.strong - defaultLevelShares.middle }
    for (const level of levels) expect(Math.abs(counted[level] / all - wanted[level])).toBeLessThan(0.03)
    expect(Math.abs(strongCalls / all - defaultLevelShares.strong)).toBeLessThan(0.03)
  })

  test('routing of rephrased prompts: agrees for 98 of 100', async () => {
    const changes: readonly ((prompt: string) => string)[] = [
      prompt => prompt.toUpperCase(),
      prompt => prompt.toLowerCase(),
      prompt => `  ${prompt.replaceAll(' ', '  ')}\n`,
      prompt => prompt.replace(/[.!?]+$/, ''),
      prompt => `Please ${prompt}`,
      prompt => `Hello! Could you please ${prompt}`,
    ]
    const prompts = await getPrompts('query-types', 250)
    for (const change of changes) {
      const same = prompts.filter(
        prompt => routed(change(prompt), null).first.model === routed(prompt, null).first.model,
      )
      expect(same.length / prompts.length).toBeGreaterThanOrEqual(0.98)
    }
  })
})
