/** Fields by their names, which are in `snake_case` in JSON and in the database, and in camel case in code. */

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S
type CamelKeys<T> = { [K in keyof T as K extends string ? Camel<K> : never]: T[K] }

type Snake<S extends string> = S extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : S
type SnakeKeys<T> = { [K in keyof T as K extends string ? Snake<K> : never]: T[K] }

const renamed = (row: object, getName: (key: string) => string) =>
  Object.fromEntries(Object.entries(row).map(([key, value]) => [getName(key), value]))

/** Returns a row with its fields in camel case. */
export function camelKeys<T extends object>(row: T): CamelKeys<T> {
  return renamed(row, key => key.replace(/_(.)/g, (_, letter) => letter.toUpperCase())) as CamelKeys<T>
}

/** Returns a row with its fields in snake case. */
export function snakeKeys<T extends object>(row: T): SnakeKeys<T> {
  return renamed(row, key => key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)) as SnakeKeys<T>
}

/** Returns only these fields. */
export function pick<T extends object, const K extends keyof T>(row: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map(name => [name, row[name]])) as Pick<T, K>
}

/** Returns a row in which all these fields have one value. */
export function all<V extends null | number, const K extends string>(value: V, names: readonly K[]): Record<K, V> {
  return Object.fromEntries(names.map(name => [name, value])) as Record<K, V>
}
