/**
 * `bun test/bench/hostile.ts`: time of each moderation layer on 100,000 expensive characters. CPU time; the median of
 * nine rounds after a warm-up. Lists all layers and texts from `BENCH_LEAST_MS` on.
 */

import { firstText } from '../../src/core/chat/chat-events.ts'
import { deobfuscatedVariants } from '../../src/text/disguises/deobfuscate.ts'
import { createHarmClassifier } from '../../src/text/harm/harm-classifier.ts'
import { buildHostSet } from '../../src/text/hosts/host-set.ts'
import { OutputModerator } from '../../src/text/moderation/output-moderator.ts'
import { detectSecrets } from '../../src/text/moderation/secret-detection.ts'
import { containsBlockedHost, type OutputLayers } from '../../src/text/moderation/verdict.ts'
import { compileRules, findBlockingRule, moderationRules } from '../../src/text/rules/pattern-rules.ts'
import { user } from '../harness/ask.ts'
import { moderationFor } from '../text/moderation/layers/support.ts'
import { hostileTexts } from './hostile-texts.ts'

const leastMs = Number(process.env.BENCH_LEAST_MS ?? 5)
const only = process.env.BENCH_ONLY ?? ''
const onlyLayer = process.env.BENCH_LAYER ?? ''
const rounds = 9

const rules = compileRules(moderationRules)
const moderation = moderationFor({}, { digests: null })
const listed = buildHostSet()
listed.read(
  new TextEncoder().encode(Array.from({ length: 50_000 }, (_, at) => `host-${at}.example${at % 997}.com\n`).join('')),
)
listed.endList()
const sets = [listed.finish(), listed.finish()]
const hosts = { isBlocked: (host: string) => sets.some(set => set.covers(host) > 0) }
const unheard: OutputLayers = {
  rules,
  hosts,
  answer: () => ({ category: null, score: 0 }),
  isHarmless: () => false,
}
const classifier = createHarmClassifier()

const layers: Readonly<Record<string, (text: string) => unknown>> = {
  rules: text => findBlockingRule(rules, text, 'prompt'),
  disguise: text => [...deobfuscatedVariants(text)],
  analyses: text => [...deobfuscatedVariants(text)].map(scan => findBlockingRule(rules, scan, 'prompt')),
  hosts: text => containsBlockedHost(hosts, text),
  leaks: detectSecrets,
  classifier: classifier.prompt,
  'answer, rules and hosts': text => answered(unheard, text),
  'prompt, all layers': text => moderation.screenMessages([user(text)]),
}

function answered(of: OutputLayers, text: string) {
  const screen = new OutputModerator(of, null, { text() {}, add() {} })
  screen.text(firstText, text)
  screen.add({ type: 'finish', choice: 0, reason: 'stop' })
}

const worst = new Map<string, number>()
for (const [name, text] of hostileTexts(100_000)) {
  if (!name.includes(only)) continue
  for (const [layer, work] of Object.entries(layers)) {
    if (onlyLayer !== '' && layer !== onlyLayer) continue
    for (let warm = 0; warm < 3; warm++) work(text)
    const times = Array.from({ length: rounds }, () => {
      const before = process.cpuUsage()
      work(text)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1_000
    }).toSorted((value, other) => value - other)
    const median = times[rounds >> 1] ?? Number.NaN
    worst.set(layer, Math.max(worst.get(layer) ?? 0, median))
    if (median >= leastMs)
      process.stdout.write(`${median.toFixed(1)} ms (least ${times[0]?.toFixed(1)}): ${layer} over ${name}\n`)
  }
}
for (const [layer, most] of worst) process.stdout.write(`${layer}: at most ${most.toFixed(1)} ms\n`)
moderation.close()
