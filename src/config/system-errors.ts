/** Returns the operating system's error code of a thrown value or its cause; null = none. */
export function systemErrorCode(cause: unknown): string | null {
  for (let at = cause, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++)
    if ('code' in at && typeof at.code === 'string') return at.code
  return null
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
