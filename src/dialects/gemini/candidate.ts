/** Writes one candidate of a Gemini response. A call is written when it is whole: clients of this API run what they receive. */
import type { ReasoningItem } from '../../core/chat/chat.ts'
import type { CitedSource, ResponsePart, TextChannel, TokenLogprob, TypedPart } from '../../core/chat/chat-events.ts'
import { googleFinishReasons } from '../../core/chat/google-wire.ts'
import { parseModelJson } from '../../core/validation/untrusted-json.ts'
import { isFields } from '../foreign-objects.ts'
import { findExplanation, getFamily } from '../messages/reply.ts'
import { sealedSignature } from './contents.ts'

/** Settings of the request and its account that change the form of the response. */
export type GeminiStyle = {
  readonly wantsThoughts: boolean
  readonly seal: (item: ReasoningItem) => string
}

type Part = { text?: string; thought?: true; functionCall?: object; thoughtSignature?: string }
type Finish = Pick<TypedPart<'finish'>, 'reason' | 'upstreamReason'>
type Call = { readonly id: string; readonly name: string; readonly signature: string | undefined; json: string }

/** Writes one candidate. It keeps what is not sent yet. */
export class CandidateWriter {
  private finish: Finish = { reason: 'stop' }
  private filtered: TypedPart<'filtered'> | undefined
  private parts: Part[] = []
  private calls = new Map<number, Call>()
  private hasBadCall = false
  /** Reasoning since its last end. */
  private thought = ''
  /** Sealed reasoning that the next part carries: clients may drop thoughts, and must not drop a signature. */
  private sealed: string[] = []
  private readonly citations: CitedSource[] = []
  private tokens: TokenLogprob[] = []
  private said = ''

  constructor(
    private readonly style: GeminiStyle,
    private readonly provider: string,
  ) {}

  text({ type, index }: TextChannel, text: string): void {
    if (type === 'reasoning') {
      this.thought += text
      if (this.style.wantsThoughts) this.addText(text, { thought: true })
    } else if (type === 'tool_arguments') {
      const call = this.calls.get(index)
      if (call !== undefined) call.json += text
    } else {
      if (this.areCallsWhole()) this.closeCalls()
      this.said += text
      this.addText(text, {})
    }
  }

  add(part: Extract<ResponsePart, { readonly choice: number }>): void {
    switch (part.type) {
      case 'reasoning_end':
        this.endReasoning(part)
        break
      case 'tool_call': {
        const { index, id, name, signature } = part
        // Reasoning without a proof, which some providers require with the calls after it.
        if (this.thought !== '' && getFamily(this.provider) !== 'google')
          this.seal({ family: 'compatible', kind: 'signature', data: '', id: null })
        this.calls.set(index, { id, name, signature: signature ?? this.takeSealed(), json: '' })
        break
      }
      case 'logprobs':
        this.tokens.push(...part.tokens)
        break
      case 'citation':
        this.citations.push(part.source)
        break
      case 'finish':
        this.finish = part
        break
      case 'filtered':
        this.filtered = part
        break
      case 'provider_item':
        break
    }
  }

  /** Returns the candidate of a frame with what has arrived since the last one; null = nothing. */
  frame(index: number): object | null {
    if (this.parts.length === 0) return null
    const content = { role: 'model', parts: this.parts }
    const logprobs = this.takeLogprobs()
    this.parts = []
    return { content, index, ...logprobs }
  }

  /** Returns the last candidate, with its finish reason. */
  end(index: number): object {
    this.closeCalls()
    const rest = this.takeSealed()
    if (rest !== undefined || this.parts.length === 0)
      this.parts.push({ text: '', ...(rest && { thoughtSignature: rest }) })
    const message = findExplanation(this.filtered)
    return {
      ...this.frame(index),
      finishReason: this.getReason(),
      ...(message === null ? {} : { finishMessage: message }),
      ...grounding(this.citations, this.said),
    }
  }

  private addText(text: string, kind: Pick<Part, 'thought'>): void {
    const signature = kind.thought ? undefined : this.takeSealed()
    const last = this.parts.at(-1)
    const isSame = last?.text !== undefined && last.thought === kind.thought && last.thoughtSignature === undefined
    if (isSame && signature === undefined) last.text += text
    else this.parts.push({ text, ...kind, ...(signature && { thoughtSignature: signature }) })
  }

  private endReasoning({ family, kind, data, id }: TypedPart<'reasoning_end'>): void {
    if (family !== 'google') {
      const isUnsigned = family === 'anthropic' && data === ''
      this.seal({ family: isUnsigned ? 'compatible' : family, kind, data, id })
      return
    }
    this.thought = ''
    const last = this.parts.at(-1)
    if (last?.text === undefined || last.thoughtSignature !== undefined)
      this.parts.push({ text: '', thoughtSignature: data })
    else last.thoughtSignature = data
  }

  private seal(item: Omit<ReasoningItem, 'text'>): void {
    this.sealed.push(this.style.seal({ ...item, text: this.thought }))
    this.thought = ''
  }

  private takeSealed(): string | undefined {
    if (this.sealed.length === 0) return undefined
    return sealedSignature(this.sealed.splice(0))
  }

  private areCallsWhole(): boolean {
    return this.calls.size > 0 && [...this.calls.values()].every(({ json }) => isFields(parseModelJson(json || '{}')))
  }

  /** Writes the calls, which are whole in this API. One whose arguments were cut is left out: it must not run. */
  private closeCalls(): void {
    for (const { id, name, signature, json } of this.calls.values()) {
      const args = parseModelJson(json || '{}')
      if (isFields(args))
        this.parts.push({ functionCall: { id, name, args }, ...(signature && { thoughtSignature: signature }) })
      else this.hasBadCall = true
    }
    this.calls = new Map()
  }

  private getReason(): string {
    const { reason, upstreamReason = '' } = this.finish
    if (reason === 'length') return 'MAX_TOKENS'
    if (reason === 'content_filter')
      return googleFinishReasons.get(upstreamReason) === reason ? upstreamReason : 'SAFETY'
    return this.hasBadCall ? 'MALFORMED_FUNCTION_CALL' : 'STOP'
  }

  private takeLogprobs() {
    if (this.tokens.length === 0) return {}
    const tokens = this.tokens
    this.tokens = []
    const shown = ({ token, logprob }: Pick<TokenLogprob, 'token' | 'logprob'>) => ({ token, logProbability: logprob })
    return {
      logprobsResult: {
        chosenCandidates: tokens.map(shown),
        topCandidates: tokens.map(({ top_logprobs: top }) => ({ candidates: top.map(shown) })),
      },
    }
  }
}

/** Returns the cited pages, and the places that they support. Google counts in bytes of UTF-8. */
function grounding(citations: readonly CitedSource[], said: string) {
  const pages = citations.filter(({ url }) => url !== null)
  if (pages.length === 0) return {}
  const points = Array.from(said)
  const bytesTo = (count: number) => Buffer.byteLength(points.slice(0, count).join(''))
  const supports = pages.flatMap(({ start, end }, index) => {
    if (start >= end) return []
    const segment = { startIndex: bytesTo(start), endIndex: bytesTo(end), text: points.slice(start, end).join('') }
    return [{ segment, groundingChunkIndices: [index] }]
  })
  return {
    groundingMetadata: {
      groundingChunks: pages.map(({ url, title }) => ({ web: { uri: url, title: title ?? url } })),
      ...(supports.length === 0 ? {} : { groundingSupports: supports }),
    },
  }
}
