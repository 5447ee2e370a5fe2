/** A Redis script with the SHA-1 digest that Redis identifies it by. */
export type Script = { readonly source: string; readonly digest: string }

/** Returns the script of a Lua source. */
export function script(source: string): Script {
  return { source, digest: new Bun.CryptoHasher('sha1').update(source).digest('hex') }
}
