/** What this thread has computed so far, in milliseconds: unlike the time on the wall, a busy neighbour does not make it longer. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
