/**
 * Ports for programs that need to know theirs before they start. They lie below those that the system gives to others:
 * between the choice and the start, any connection of another test could take one of those. A Redis cluster adds
 * 10,000, which stays below them too.
 */
const [first, count] = [10_000, 10_000] as const
// A prime: processes that start together choose far from each other.
let next = (process.pid * 37) % count

/** Returns an unused loopback port for a program that requires one. */
export function freePort(): number {
  for (let tries = 0; tries < count; tries++) {
    const port = first + next
    next = (next + 1) % count
    if (isFree(port)) return port
  }
  throw new Error('no port is free')
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false
  }
}
