/** Fields that several routes of ours take. */
import { Type } from '@sinclair/typebox'

/** What people call a thing: shown as text wherever it appears. No control characters, which no store or terminal wants. */
export const nameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description: 'a name of 1 to 100 printable characters',
})
