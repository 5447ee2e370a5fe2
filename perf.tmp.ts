import { openPromptAnalyzer } from './src/composition/open-prompt-analyzer.ts'
import { createFeatureReader } from './src/core/analysis/features.ts'
import type { Message } from './src/core/chat/chat.ts'
import { estimateInputTokens, likelyInputTokens } from './src/core/tokens/tokens.ts'
import { chatBody } from './test/bench/prompts.ts'
import { safetyFor } from './test/moderation/support.ts'

const readFeatures = createFeatureReader()
const read = openPromptAnalyzer(readFeatures)
const safety = safetyFor({}, { digests: null, readFeatures })
await safety.ready
const N = Number(process.argv[2] ?? 3000)
const make = () =>
  Array.from({ length: N }, () => {
    const b = JSON.parse(chatBody({ isNew: true, stream: false }))
    return b.messages.map(
      (m: any): Message =>
        m.role === 'system'
          ? ({ role: 'system', text: m.content, name: null } as any)
          : { role: 'user', content: [{ type: 'text', text: m.content }], name: null },
    )
  })
const only = process.argv[3]
const work: Record<string, (m: Message[]) => unknown> = {
  read: m => read(m),
  screen: m => safety.screenMessages(m),
  tokens: m => estimateInputTokens({ messages: m, tools: [], responseFormat: { type: 'text' } }),
}
for (let round = 0; round < 4; round++) {
  const sets = make()
  const out: string[] = []
  for (const [n, w] of Object.entries(work)) {
    if (only && n !== only) continue
    const c = process.cpuUsage()
    for (const m of sets) w(m)
    const d = process.cpuUsage(c)
    out.push(`${n} ${((d.user + d.system) / N).toFixed(1)} µs`)
  }
  console.log(out.join('  '))
}
safety.close()
