/** Variable that `test/faults` sets before it loads files of the first tier, which then run in their long variants. */
export const longVariants = 'TEST_LONG_VARIANTS'

export const isLongVariant = () => process.env[longVariants] === 'true'

/** Loads test files in their long variants: `path` without `.test.ts`, from the folder `test`. */
export async function loadLongVariants(...paths: readonly string[]): Promise<void> {
  process.env[longVariants] = 'true'
  for (const path of paths) await import(`../${path}.test.ts`)
}
