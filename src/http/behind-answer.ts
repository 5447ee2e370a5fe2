/**
 * Work that follows an answer instead of delaying it: the answer then takes the same time whether there is work or not.
 * Bounded: beyond `maximum` at once work is dropped, as if its email had been lost.
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
