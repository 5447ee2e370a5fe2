/** What a roster keeps on its members: each is on one roster at most. */
export type ActiveSetMember = {
  /** Where the roster has it; -1 = nowhere. The roster's own to write. */
  place: number
}

/** Those who are there now, in no order, of very many that come and go. */
export type ActiveSet<T extends ActiveSetMember> = Iterable<T> & {
  add(member: T): void
  /** Does nothing where it is not there. */
  delete(member: T): void
}

/**
 * An empty roster. A `Set` would do the same and keep those who left: outgrown tables of the engine's sets and maps hold what
 * was deleted from them, each holds the next, and the first soon belongs to the old generation, which only a collection of
 * the whole heap looks through. Every request would live on until then with all that hangs on it.
 */
export function createActiveSet<T extends ActiveSetMember>(): ActiveSet<T> {
  const members: T[] = []
  return {
    add(member) {
      if (member.place !== -1) return
      member.place = members.length
      members.push(member)
    },
    delete(member) {
      const { place } = member
      if (place === -1) return
      member.place = -1
      const last = members.pop()
      if (last === undefined || last === member) return
      // The gap is filled with the last.
      last.place = place
      members[place] = last
    },
    [Symbol.iterator]: () => members.values(),
  }
}
