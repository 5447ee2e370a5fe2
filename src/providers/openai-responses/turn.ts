import type { SourceBody, TurnChange } from '../../core/chat/chat.ts'
import { isText, type Json, record, textOf } from '../json.ts'

/** Returns the client's input with the gateway's changes to its last turn; null = that turn is no text of the user. */
export function inputOf({ fields: { input }, turn }: SourceBody): unknown {
  if (turn === undefined) return input
  if (typeof input === 'string') return [{ role: 'user', content: contentWith(input, turn) }]
  if (!Array.isArray(input)) return null
  const item = record(input.at(-1))
  const content = contentWith(item.content, turn)
  return item.role !== 'user' || content === null ? null : input.with(-1, { ...item, content })
}

function contentWith(content: unknown, { before, text }: TurnChange): readonly Json[] | null {
  const parts: readonly unknown[] = isText(content) ? [{ type: 'input_text', text: content }] : []
  const all = Array.isArray(content) ? content : parts
  const at = all.findIndex(part => isTextType(record(part).type))
  if (at === -1) return null
  const own = record(all[at])
  const added = before === undefined ? [] : [{ type: 'input_text', text: before }]
  return [...all.slice(0, at), ...added, { ...own, text: text ?? own.text }, ...all.slice(at + 1)].map(record)
}

function isTextType(type: unknown): boolean {
  return textOf(type) === 'input_text' || textOf(type) === 'text'
}
