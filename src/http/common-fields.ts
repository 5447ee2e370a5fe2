/** Fields that several routes accept. */
import { Type } from '@sinclair/typebox'

/** Name of a resource. Control characters are rejected: clients display the name, and Postgres rejects a NUL. */
export const nameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description: 'a name of 1 to 100 printable characters',
})

/** ID of a project. */
export const projectIdSchema = Type.String({ pattern: '^[\\w.-]{1,64}$', description: 'the ID of a project' })
