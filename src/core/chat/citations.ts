/** Finds where an output cites the sources that its model received, and reports it as citation events. */
import { type ChatEvent, type ContentEvent, isSameText } from './chat-events.ts'
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

type CitableText = { text: string; last: Extract<ContentEvent, { type: 'text' }>; readonly cited: Set<string> }

/**
 * Adds the citations of web sources to the events of one response. A text is cited where it ends, because a dialect may
 * complete it there; sources that no text cites follow before the finish reason.
 */
export class WebCitations {
  private readonly sources: readonly WebSource[]
  private readonly texts = new Map<number, CitableText>()

  constructor(sources: readonly WebSource[]) {
    this.sources = sources
  }

  add(batch: readonly ChatEvent[]): readonly ChatEvent[] {
    const out: ChatEvent[] = []
    for (const event of batch) {
      if ('choice' in event) this.note(event, out)
      out.push(event)
    }
    return out
  }

  private note(event: Extract<ChatEvent, { readonly choice: number }>, out: ChatEvent[]): void {
    const known = this.texts.get(event.choice)
    switch (event.type) {
      case 'logprobs':
      case 'citation':
      case 'filtered':
        break
      case 'text':
        if (known === undefined) this.texts.set(event.choice, { text: event.text, last: event, cited: new Set() })
        else {
          if (!isSameText(known.last, event)) this.cite(event.choice, out, false)
          known.text += event.text
          known.last = event
        }
        break
      case 'finish':
        this.cite(event.choice, out, true)
        break
      default:
        if (known !== undefined) this.cite(event.choice, out, false)
    }
  }

  private cite(choice: number, out: ChatEvent[], isLast: boolean): void {
    const { text, cited } = this.texts.get(choice) ?? { text: '', cited: new Set<string>() }
    for (const source of findCitations(text, this.sources)) {
      if (cited.has(source.url) || !(isLast || source.end > source.start)) continue
      cited.add(source.url)
      out.push({ type: 'citation', choice, source })
    }
  }
}
