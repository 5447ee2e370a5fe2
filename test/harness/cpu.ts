/** Returns the CPU time of this thread in milliseconds, which busy neighbors do not increase, unlike elapsed time. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
