/** Asks for a tool call in a client's own Messages body, where its model rejects a forced one. */
import type { SourceBody } from '../../core/chat/chat.ts'
import type { Model } from '../../core/models/models.ts'
import { isText, type Json, record } from '../json.ts'
import { type Edit, elementsAt, type Member } from '../json-spans.ts'
import { callInstruction } from '../parameters.ts'

/**
 * Returns the fields and the edits that replace the forced call by an instruction behind the system text; null = the model accepts the
 * choice. Marked blocks stay before the instruction, so that it does not change the cached prefix.
 */
export function askedCall(
  { text, fields }: SourceBody,
  members: readonly Member[],
  model: Model,
): { readonly values: Json; readonly edits: readonly Edit[] } | null {
  const choice = record(fields.tool_choice)
  if (model.parameters.forcedToolChoice !== 'rejected' || (choice.type !== 'any' && choice.type !== 'tool')) return null
  const line = callInstruction(isText(choice.name) ? choice.name : undefined)
  const { name: _, ...rest } = choice
  const tool_choice = { ...rest, type: 'auto' }
  const list = members.find(({ key }) => key === 'system')?.value
  const last = list === undefined || !Array.isArray(fields.system) ? undefined : elementsAt(text, list.from).at(-1)
  if (last !== undefined) {
    const block = `,${JSON.stringify({ type: 'text', text: line })}`
    return { values: { tool_choice }, edits: [{ from: last.to, to: last.to, text: block }] }
  }
  const own = isText(fields.system) && fields.system.trim() !== '' ? `${fields.system}\n\n` : ''
  return { values: { tool_choice, system: own + line }, edits: [] }
}
