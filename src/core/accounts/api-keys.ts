/** API keys: creation, detection of typing errors without a store, and the parts that may be stored. */

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Prefix of every key. */
export const keyPrefix = 'gw_live_'
const idCharacters = 12
const secretCharacters = 43
const checksumCharacters = 6
const bodyCharacters = keyPrefix.length + idCharacters + 1 + secretCharacters
const shape = new RegExp(
  `^${keyPrefix}[0-9A-Za-z]{${idCharacters}}_[0-9A-Za-z]{${secretCharacters + checksumCharacters}}$`,
)

/** Bytes from here on would make the first characters of the alphabet more likely than the last. */
const unbiasedBytes = 256 - (256 % alphabet.length)

export type RandomBytes = (count: number) => Uint8Array

/** A new key. `key` is shown once; `prefix` (`gw_live_<id>…`) identifies it to users; `digest` is stored. */
type MintedKey = {
  readonly key: string
  readonly id: string
  readonly prefix: string
  readonly digest: string
}

/**
 * Creates a key (`gw_live_<12 id>_<43 secret><6 checksum>`, base62) from `randomBytes`, which must be cryptographic.
 */
export function mintApiKey(randomBytes: RandomBytes): MintedKey {
  const id = randomBase62(idCharacters, randomBytes)
  const body = `${keyPrefix}${id}_${randomBase62(secretCharacters, randomBytes)}`
  const key = body + getChecksum(body)
  return { key, id, prefix: `${keyPrefix}${id}…`, digest: getDigest(key) }
}

/** Returns true if a text has the length of a key. Avoids computing a digest of any other header value. */
export function hasKeyLength(text: string): boolean {
  return text.length === bodyCharacters + checksumCharacters
}

/**
 * Returns the public ID of a well-formed key; null if format or checksum is wrong. Does not check that the key exists.
 */
export function parseApiKey(text: string): { readonly id: string } | null {
  // The length is checked first, so that the pattern never runs on a header of many kilobytes.
  if (!hasKeyLength(text) || !shape.test(text)) return null
  if (text.slice(bodyCharacters) !== getChecksum(text.slice(0, bodyCharacters))) return null
  return { id: text.slice(keyPrefix.length, keyPrefix.length + idCharacters) }
}

/** Returns the SHA-256 of a secret in lower-case hex. */
export function getDigest(text: string): string {
  return Bun.SHA256.hash(text, 'hex')
}

/** Returns a new token: `prefix`, and 256 random bits in 43 characters. */
export function newToken(prefix: string, randomBytes: RandomBytes): string {
  return prefix + Buffer.from(randomBytes(32)).toString('base64url')
}

/** Returns `count` base62 characters, each equally likely. */
export function randomBase62(count: number, randomBytes: RandomBytes): string {
  let text = ''
  while (text.length < count) {
    for (const byte of randomBytes(count)) {
      if (byte < unbiasedBytes && text.length < count) text += alphabet.charAt(byte % alphabet.length)
    }
  }
  return text
}

function getChecksum(body: string): string {
  let rest = Bun.hash.crc32(body)
  let text = ''
  for (let place = 0; place < checksumCharacters; place++) {
    text = alphabet.charAt(rest % alphabet.length) + text
    rest = Math.floor(rest / alphabet.length)
  }
  return text
}
