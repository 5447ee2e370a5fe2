/** Moderation of an output while it arrives. */
import type { ResponseOutput, ResponseSink } from '../core/chat/chat-events.ts'
import { WebCitations } from '../core/chat/citations.ts'
import type { WebSource } from '../core/chat/web-sources.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import type { Verdict } from '../text/moderation/verdict.ts'
import type { ModeratedRequest } from './moderate.ts'

export type OutputModerationDeps = { readonly moderation: Pick<Moderation, 'screenAnswer'> }

/**
 * Passes on the output that may be sent. Adds the citations of the web `sources` to text that is sent. A hit ends the output
 * with `content_filter`: nothing is passed on after it.
 */
export class ScreenedOutput {
  /** Receives the output, but nothing before `verdict`. */
  readonly sink: ResponseSink
  /** The external moderation's judgement of the prompt, which runs during the upstream call; null = it has passed. */
  verdict: Promise<void> | null
  private readonly screen: ReturnType<Moderation['screenAnswer']>

  constructor(
    { moderation }: OutputModerationDeps,
    mode: Parameters<Moderation['screenAnswer']>[0],
    { verdict, sources }: Pick<ModeratedRequest, 'verdict'> & { readonly sources: readonly WebSource[] },
    private readonly output: ResponseOutput,
  ) {
    const cited = sources.length === 0 ? output : new WebCitations(sources, output)
    this.screen = moderation.screenAnswer(mode, cited)
    this.sink = this.screen ?? cited
    this.verdict = verdict
  }

  /** Returns the verdict that ended the output; null = none so far. */
  hit(): Verdict | null {
    return this.screen?.hit() ?? null
  }

  async judged(): Promise<void> {
    await this.verdict
    this.verdict = null
  }

  flush(): Promise<void> | null {
    return this.output.flush()
  }

  /** Sends what was held back of a truncated output and is clean: received text is billed. */
  release(): void {
    if (this.verdict !== null) return
    this.screen?.rest()
    void this.output.flush()
  }
}
