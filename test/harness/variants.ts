/** Variable that `test/faults` sets before it loads files of the first tier, which then run in their long variants. */
export const longVariants = 'TEST_LONG_VARIANTS'

export const isLongVariant = () => process.env[longVariants] === 'true'

/** Loads test files in their long variants, by functions that import them. */
export async function loadLongVariants(...files: readonly (() => Promise<unknown>)[]): Promise<void> {
  process.env[longVariants] = 'true'
  for (const load of files) await load()
}
