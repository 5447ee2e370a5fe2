/**
 * Runs work after the response, so that the response time does not reveal whether there was work. Bounded: beyond
 * `maximum` concurrent tasks the work is dropped, as if its email had been lost.
 */
export function createBehindAnswer(maximum: number, failed: () => void): (work: () => Promise<unknown>) => void {
  let running = 0
  return work => {
    if (running >= maximum) return
    running++
    work()
      .catch(failed)
      .finally(() => {
        running--
      })
  }
}
