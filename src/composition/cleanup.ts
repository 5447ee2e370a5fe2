/**
 * Runs the registered cleanups, the newest first and each once, also after one of them failed. Throws the first failure
 * at the end.
 */
export async function runCleanups(undo: (() => unknown)[]): Promise<void> {
  const failures: unknown[] = []
  for (const step of undo.splice(0).reverse())
    try {
      await step()
    } catch (cause) {
      failures.push(cause)
    }
  if (failures.length > 0) throw failures[0]
}
