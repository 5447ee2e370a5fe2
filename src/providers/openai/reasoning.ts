/** Reasoning that a server writes into the beginning of the output text: `<think>…</think>`, or Google's tag. */

export type Thinking = {
  /** Where a tag is expected: at the start, inside, in the white space after it, or no longer. */
  place: 'maybe' | 'inside' | 'after' | 'over'
  /** The closing tag. */
  closing: string
  /** Held-back text, which may be the beginning of a tag. */
  held: string
}

export type ReasoningText = { readonly type: 'text' | 'reasoning'; readonly text: string }

const tags = ['think>', 'thought>'] as const
/** Maximum white space held back before a tag, since output may also be only blanks. */
const longestHeld = 64
const nothing: readonly ReasoningText[] = []

/** Returns the texts of one more delta, without tags. */
export function readThinking(thinking: Thinking, piece: string): readonly ReasoningText[] {
  const text = thinking.held + piece
  thinking.held = ''
  switch (thinking.place) {
    case 'over':
      return [{ type: 'text', text }]
    case 'after':
      return afterThinking(thinking, text)
    case 'inside':
      return insideThinking(thinking, text)
    case 'maybe': {
      const start = text.trimStart()
      const begun = tags.find(tag => start.startsWith(`<${tag}`))
      if (begun !== undefined) {
        thinking.place = 'inside'
        thinking.closing = `</${begun}`
        return insideThinking(thinking, start.slice(begun.length + 1))
      }
      if (tags.some(tag => `<${tag}`.startsWith(start)) && text.length <= longestHeld) {
        thinking.held = text
        return nothing
      }
      thinking.place = 'over'
      return [{ type: 'text', text }]
    }
  }
}

function insideThinking(thinking: Thinking, text: string): readonly ReasoningText[] {
  const { closing } = thinking
  const close = text.indexOf(closing)
  const end = close === -1 ? text.length - beginningLength(text, closing) : close
  const thought: readonly ReasoningText[] = end > 0 ? [{ type: 'reasoning', text: text.slice(0, end) }] : nothing
  if (close === -1) {
    thinking.held = text.slice(end)
    return thought
  }
  thinking.place = 'after'
  return [...thought, ...afterThinking(thinking, text.slice(close + closing.length))]
}

function afterThinking(thinking: Thinking, text: string): readonly ReasoningText[] {
  const answer = text.trimStart()
  if (answer === '') return nothing
  thinking.place = 'over'
  return [{ type: 'text', text: answer }]
}

/** Returns held-back text, which turned out not to be a tag. */
export function releaseHeld(thinking: Thinking): readonly ReasoningText[] {
  const { held: text, place } = thinking
  if (text === '') return nothing
  thinking.held = ''
  return [{ type: place === 'inside' ? 'reasoning' : 'text', text }]
}

/** Returns the length of the longest suffix of `text` that is a prefix of `tag`. */
function beginningLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length
  }
  return 0
}
