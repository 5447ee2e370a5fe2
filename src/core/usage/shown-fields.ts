import { type Snake, snakeName } from '../text/key-names.ts'
import { toUsd } from './money.ts'

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
