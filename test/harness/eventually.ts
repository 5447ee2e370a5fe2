/**
 * A machine whose cores are all busy is later than any promise: `withinMs` names the promised time, and a shorter one
 * than this decides no test.
 */
const leastPatienceMs = 60_000

/** Resolves when the condition is true, checked every `everyMs`; rejects after `withinMs`. */
export async function eventually(
  holds: () => Promise<boolean> | boolean,
  withinMs = leastPatienceMs,
  everyMs = 10,
): Promise<void> {
  const patienceMs = Math.max(withinMs, leastPatienceMs)
  const until = performance.now() + patienceMs
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`not within ${patienceMs} ms: ${holds}`)
    await Bun.sleep(everyMs)
  }
}

/** Returns the value when there is one, under the same terms as `eventually`. */
export async function untilFound<T>(look: () => Promise<T | null | undefined> | T | null | undefined): Promise<T> {
  let value: T | null | undefined
  await eventually(async () => {
    value = await look()
    return value !== null && value !== undefined
  })
  if (value === null || value === undefined) throw new Error('not found')
  return value
}
