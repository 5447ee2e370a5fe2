/** Fields by their names. */

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
