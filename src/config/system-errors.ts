import { systemErrorCode } from '../core/validation/errors.ts'

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
