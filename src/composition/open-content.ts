/** Opens prompt analysis, moderation and web access. */
import { randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import type { Catalog } from '../core/models/models.ts'
import type { Clock, Log, Network } from '../core/ports.ts'
import { createKeyedDigests } from '../core/text/keyed-digests.ts'
import { createPromptBook } from '../learning/recent-prompts.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import type { Simulator } from '../simulator/simulator.ts'
import { openSafety } from './open-moderation.ts'
import { openReaders } from './open-prompt-analyzer.ts'
import { openWeb, type PageOptions } from './open-web.ts'
import { createReloadableModeration } from './reloadable-moderation.ts'
import { createTokenizer } from './tokenizer.ts'

type Parts = {
  readonly clock: Clock
  readonly network: Network
  readonly log: Log
  readonly catalogue: Catalog
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly simulator: Simulator | null
  readonly pages?: PageOptions
}

/** Opens prompt analysis, moderation and web access. `undo` receives the functions that close them. */
export function openContent(config: Config, parts: Parts, undo: (() => unknown)[]) {
  const tokenizer = createTokenizer(config.serviceDeadlines.tokenizerMs)
  undo.push(() => tokenizer.close())
  const digests = createKeyedDigests(randomBytes(32))
  const readers = openReaders()
  const { read, explain, classifier } = readers
  const open = (from: Config) => openSafety(from, parts, { digests, classifier })
  const safety = createReloadableModeration(open(config))
  undo.push(() => safety.close())
  const web = openWeb(config, { ...parts, safety })
  undo.push(() => web.pages.close())
  let settings = config.safety
  const replaceModeration = (next: Config) => {
    if (Bun.deepEquals(settings, next.safety)) return
    settings = next.safety
    safety.replace(open(next))
  }
  const prompts = createPromptBook(readers, digests)
  return { content: { tokenizer, read, explain, safety, web, prompts }, replaceModeration }
}
