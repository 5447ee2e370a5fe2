/** The tokenizer in a thread of its own: its tables take half a second to load, and dense text long to count. */
import { countTokens } from '../core/tokens/tokens.ts'

declare const self: Worker

export type CountOrder = { readonly id: number; readonly texts: readonly string[] }
export type CountReport = { readonly id: number; readonly tokens: number }

self.onmessage = async (event: MessageEvent<CountOrder>) => {
  const { id, texts } = event.data
  let tokens = 0
  for (const text of texts) tokens += await countTokens(text)
  self.postMessage({ id, tokens } satisfies CountReport)
}
