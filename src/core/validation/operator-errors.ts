/** Text for the operator about a failed start or command. */
import { GatewayError, systemErrorCode } from './errors.ts'

/** An expected failure, with a message for the operator. */
export class OperatorError extends Error {}

/** Converts a thrown value to text: expected errors as their message, other errors with their name. */
export function describeError(cause: unknown): string {
  if (cause instanceof OperatorError) return cause.message
  if (cause instanceof GatewayError) return cause.detail === null ? cause.message : `${cause.message} (${cause.detail})`
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'a thrown value'
}
/** Returns the error as text that ends a sentence about a file or folder. */
export function systemErrorText(cause: unknown): string {
  const code = systemErrorCode(cause)
  return (code === null ? undefined : words.get(code)) ?? `it failed with ${code ?? 'an unknown error'}`
}

const words: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file or folder'],
  ['EACCES', 'this user lacks permission'],
  ['EPERM', 'this user lacks permission'],
  ['EROFS', 'its file system is read-only'],
  ['ENOTDIR', 'a part of the path is not a folder'],
  ['EEXIST', 'it exists and is not a folder'],
  ['EISDIR', 'it is a folder'],
  ['ENOSPC', 'its disk is full'],
  ['EDQUOT', 'its disk quota is used up'],
])
