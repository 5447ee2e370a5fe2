import type { Message } from '../core/chat/chat.ts'
import { readCompatible } from '../dialects/chat-completions/request.ts'
import { readMessages } from '../dialects/messages/request.ts'
import { readNative } from '../dialects/native/request.ts'
import { createReasoningSeal } from '../dialects/reasoning-seal.ts'
import { readResponses } from '../dialects/responses/request.ts'
import type { PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import { estimateInputTokens } from '../text/tokens/tokens.ts'

/** Enough for the compiler to optimize the loops, and few enough to cost the start only milliseconds. */
const rounds = 20

type WarmUpDeps = {
  readonly read: PromptAnalyzer
  readonly safety: { screenMessages(messages: readonly Message[]): unknown }
}

/**
 * Runs work on a sample that would otherwise delay the first request: request schemas are compiled at their first use,
 * and the loops over a prompt's text are slow until they have run often.
 */
export function warmUp({ read, safety }: WarmUpDeps): void {
  const sample = { messages: [{ role: 'user', content: 'Explain in two sentences why the sky is blue. '.repeat(20) }] }
  const noHeaders = new Headers()
  // The sample has no sealed reasoning.
  const seal = createReasoningSeal('', null)
  const opener = { seal, accountId: '' }
  for (let round = 0; round < rounds; round++) {
    const ask = readNative(sample, noHeaders, 0)
    readCompatible(sample, noHeaders, 0)
    readResponses({ input: sample.messages }, { headers: noHeaders, text: '' }, opener)
    readMessages({ ...sample, max_tokens: 1 }, { headers: noHeaders, text: '', accountId: '' }, seal)
    read(ask.messages)
    estimateInputTokens(ask)
    safety.screenMessages(ask.messages)
  }
}
