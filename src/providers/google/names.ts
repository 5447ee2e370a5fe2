/**
 * Names of functions begin with a letter or an underscore here, and may begin with a digit or a dash elsewhere. One more
 * underscore in front of such a name, however many it has already, can be taken off again without knowing the request.
 */
const badStart = /^_*[0-9-]/
const mended = /^_+[0-9-]/

/** A caller's name as this wire takes it. */
export function wireNameOf(name: string): string {
  return badStart.test(name) ? `_${name}` : name
}

/** The caller's name again. */
export function callerNameOf(wireName: string): string {
  return mended.test(wireName) ? wireName.slice(1) : wireName
}
