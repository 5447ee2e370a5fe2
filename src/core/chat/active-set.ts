/** Position that an active set keeps on its members. A member belongs to at most one set. */
export type ActiveSetMember = {
  /** Index in the set; -1 = in no set. Only the set writes it. */
  place: number
}

/** An unordered set for objects that are added and deleted very often. */
type ActiveSet<T extends ActiveSetMember> = Iterable<T> & {
  add(member: T): void
  /** Does nothing if the member is not in the set. */
  delete(member: T): void
}

/**
 * Creates an empty active set. A `Set` keeps deleted members reachable: the engine's outgrown tables hold them until a
 * collection of the whole heap. Every request, with all that it references, would stay in memory until then.
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
      // The last member fills the gap.
      last.place = place
      members[place] = last
    },
    [Symbol.iterator]: () => members.values(),
  }
}
