/**
 * Names, each given out once: the wanted one where it is free, else the first free `alternative`, which is called with
 * ever higher numbers.
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
