/** Fields by their names, which are in `snake_case` in JSON and in the database, and in camel case in code. */

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S
type CamelKeys<T> = { [K in keyof T as K extends string ? Camel<K> : never]: T[K] }

export type Snake<S extends string> = S extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : S

/** `created_at` becomes `createdAt`. */
export const camelName = (name: string) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())

/** Returns a row with its fields in camel case. */
export function camelKeys<T extends object>(row: T): CamelKeys<T> {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [camelName(name), value])) as CamelKeys<T>
}

/** `createdAt` becomes `created_at`. */
export const snakeName = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** Returns a row of these fields, with what `getValue` returns for each. */
export function fromNames<const K extends PropertyKey, V>(names: readonly K[], getValue: (name: K) => V): Record<K, V> {
  return Object.fromEntries(names.map(name => [name, getValue(name)])) as Record<K, V>
}

/** Returns only these fields. */
export function pick<T extends object, const K extends keyof T>(row: T, names: readonly K[]): Pick<T, K> {
  return fromNames(names, name => row[name]) as Pick<T, K>
}

/** Returns a row in which all these fields have one value. */
export const all = <V extends null | number, const K extends string>(value: V, names: readonly K[]) =>
  fromNames(names, () => value)
