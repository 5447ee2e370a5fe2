/** Fields of rows by their names, and as the API shows them. */
import { toUsd } from './money.ts'

type Snake<S extends string> = S extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : S

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

type ShownName<K extends string> = Snake<K extends `${infer Head}Microcents` ? `${Head}Usd` : K>
type ShownValue<V> = V extends Date ? string : V
type ShownFields<T> = { [K in keyof T as K extends string ? ShownName<K> : never]: ShownValue<T[K]> }

/** Returns fields as JSON shows them: in snake case, times in ISO 8601, and `…Microcents` as `…_usd` in US dollars. */
export function shownFields<T extends object>(fields: T): ShownFields<T> {
  const shown = Object.entries(fields).map(([name, value]) => {
    if (value instanceof Date) return [snakeName(name), value.toISOString()]
    if (!name.endsWith('Microcents')) return [snakeName(name), value]
    return [snakeName(name.replace(/Microcents$/, 'Usd')), typeof value === 'number' ? toUsd(value) : value]
  })
  return Object.fromEntries(shown) as ShownFields<T>
}
