/**
 * Creates a source of unique names: the wanted one if unused, else the first unused `alternative`, called with
 * ascending numbers.
 */
export function uniqueNames(): (wanted: string | null, alternative: (count: number) => string) => string {
  const taken = new Set<string>()
  return (wanted, alternative) => {
    let name = wanted ?? alternative(taken.size)
    for (let count = taken.size; taken.has(name); count += 1) name = alternative(count)
    taken.add(name)
    return name
  }
}
