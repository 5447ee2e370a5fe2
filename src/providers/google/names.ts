/**
 * Function names start with a letter or underscore here, and may start with a digit or dash elsewhere. One underscore
 * is prefixed to such names, however many they have, so that it can be removed without knowing the request.
 */
const badStart = /^_*[0-9-]/
const mended = /^_+[0-9-]/

/** Returns a client's name in this wire format. */
export function wireNameOf(name: string): string {
  return badStart.test(name) ? `_${name}` : name
}

/** Returns the client's name of a wire name. */
export function callerNameOf(wireName: string): string {
  return mended.test(wireName) ? wireName.slice(1) : wireName
}
