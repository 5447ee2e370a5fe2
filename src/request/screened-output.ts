/** Moderation of an output while it arrives. */
import type { ChatEvent, ResponseOutput } from '../core/chat/chat-events.ts'
import { WebCitations } from '../core/chat/citations.ts'
import type { WebSource } from '../core/chat/web-sources.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import type { ModeratedRequest } from './moderate.ts'

export type OutputModerationDeps = { readonly moderation: Pick<Moderation, 'screenAnswer'> }

/** The moderation layer that ended the output. */
type OutputHit = { readonly layer: string | null; readonly category: string | null }

/**
 * Passes on the output that may be sent. Sends nothing before the external moderation has judged the prompt, which runs
 * during the upstream call. Adds the citations of the web `sources` to text that is sent. A hit ends the output with
 * `content_filter`: nothing may be written after it.
 */
export class ScreenedOutput implements ResponseOutput {
  /** Null = none so far. */
  hit: OutputHit | null = null
  private readonly screen: ReturnType<Moderation['screenAnswer']>
  private readonly citations: WebCitations | null
  private pending: Promise<void> | null

  constructor(
    { moderation }: OutputModerationDeps,
    mode: Parameters<Moderation['screenAnswer']>[0],
    { verdict, sources }: Pick<ModeratedRequest, 'verdict'> & { readonly sources: readonly WebSource[] },
    private readonly output: ResponseOutput,
  ) {
    this.screen = moderation.screenAnswer(mode)
    this.citations = sources.length === 0 ? null : new WebCitations(sources)
    this.pending = verdict
  }

  write(batch: readonly ChatEvent[]): Promise<void> | null {
    return this.pending === null ? this.pass(batch) : this.passAfter(this.pending, batch)
  }

  /** Writes the last batch. A complete output is settled whether or not the client has read it. */
  async end(batch: readonly ChatEvent[]): Promise<void> {
    if (this.pending !== null) await this.pending
    this.pending = null
    void this.pass(batch)
  }

  /** Sends what was held back of a truncated output and is clean: received text is billed. */
  release(): void {
    const rest = this.pending === null && this.screen !== null ? this.screen.rest() : []
    if (rest.length > 0) void this.output.write(rest)
  }

  private async passAfter(verdict: Promise<void>, batch: readonly ChatEvent[]): Promise<void> {
    await verdict
    this.pending = null
    await this.pass(batch)
  }

  private pass(batch: readonly ChatEvent[]): Promise<void> | null {
    const { screen, citations } = this
    const shown = screen === null ? batch : screen.take(batch)
    const hit = screen?.hit() ?? null
    if (hit !== null) this.hit = { layer: hit.layer, category: hit.category }
    if (shown.length === 0) return null
    return this.output.write(citations === null ? shown : citations.add(shown))
  }
}
