/** Finds where an output cites the sources that its model received, and adds these citations to it. */
import type { ResponsePart, ResponseSink, TextChannel } from './chat-events.ts'
import type { WebSource } from './web-sources.ts'

/** A source of a response and where the output cites it, in Unicode code points. */
type Citation = WebSource & { readonly start: number; readonly end: number }

/**
 * Finds citations of sources in a text: by URL, or by `[n]`, the number that the model received. A source that is not
 * cited is placed at the end of the text with length 0. `isAttached`: the model writes numbers directly behind words.
 */
export function findCitations(text: string, sources: readonly WebSource[], isAttached = false): readonly Citation[] {
  const charactersTo = (at: number) => [...text.slice(0, at)].length
  return sources.map(({ url, title }, index) => {
    const { at, length } = getPlace(text, url, `[${index + 1}]`, isAttached)
    return { url, title, start: charactersTo(at), end: charactersTo(at + length) }
  })
}

function getPlace(
  text: string,
  url: string,
  marker: string,
  isAttached: boolean,
): { readonly at: number; readonly length: number } {
  const address = text.indexOf(url)
  if (address !== -1) return { at: address, length: url.length }
  for (let at = text.indexOf(marker); at !== -1; at = text.indexOf(marker, at + 1))
    // `list[1]` and `](…)[1]` are not citations.
    if (isAttached || !/[\w\])]/.test(text.charAt(at - 1))) return { at, length: marker.length }
  return { at: text.length, length: 0 }
}

type CitableText = { text: string; channel: TextChannel; readonly cited: Set<string> }

/**
 * Adds the citations of web sources to one response. A text is cited where it ends, because a dialect may complete it
 * there; sources that no text cites follow before the finish reason.
 */
export class WebCitations implements ResponseSink {
  private readonly texts = new Map<number, CitableText>()

  constructor(
    private readonly sources: readonly WebSource[],
    private readonly next: ResponseSink,
  ) {}

  text(channel: TextChannel, text: string): void {
    const { type, choice } = channel
    const known = this.texts.get(choice)
    if (known !== undefined && known.channel !== channel) this.cite(choice, false)
    if (type === 'text' && known === undefined) this.texts.set(choice, { text, channel, cited: new Set() })
    else if (type === 'text' && known !== undefined) {
      known.text += text
      known.channel = channel
    }
    this.next.text(channel, text)
  }

  add(part: ResponsePart): void {
    if (part.type === 'finish') this.cite(part.choice, true)
    else if (part.type === 'tool_call' || part.type === 'reasoning_end' || part.type === 'provider_item')
      this.cite(part.choice, false)
    this.next.add(part)
  }

  private cite(choice: number, isLast: boolean): void {
    const { text, cited } = this.texts.get(choice) ?? { text: '', cited: new Set<string>() }
    for (const source of findCitations(text, this.sources)) {
      if (cited.has(source.url) || !(isLast || source.end > source.start)) continue
      cited.add(source.url)
      this.next.add({ type: 'citation', choice, source })
    }
  }
}
