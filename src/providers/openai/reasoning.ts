/** Thinking that a server writes into the answer's text itself, at its very beginning: `<think>…</think>`, or Google's tag. */

export type Thinking = {
  /** Where a tag is looked for: at the start, inside it, in the blank space after it, or no more. */
  place: 'maybe' | 'inside' | 'after' | 'over'
  /** The tag that ends what was begun. */
  closing: string
  /** Text held back: it may be the beginning of a tag. */
  held: string
}

export type ReasoningText = { readonly type: 'text' | 'reasoning'; readonly text: string }

const tags = ['think>', 'thought>'] as const
/** Blank space before a tag is waited through this far: endless blanks are an answer too. */
const longestHeld = 64
const nothing: readonly ReasoningText[] = []

/** What one more piece of text says, its tags taken out. */
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

/** What was held back, now known to be no tag. */
export function releaseHeld(thinking: Thinking): readonly ReasoningText[] {
  const { held: text, place } = thinking
  if (text === '') return nothing
  thinking.held = ''
  return [{ type: place === 'inside' ? 'reasoning' : 'text', text }]
}

/** Length of the longest end of `text` with which `tag` begins. */
function beginningLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length
  }
  return 0
}
