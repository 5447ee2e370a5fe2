import { tmpdir } from 'node:os'

/** Variable with the folder of what later runs use again. The temporary folder of a run ends with it. */
export const keptFiles = 'TEST_KEPT_FILES'

/** The temporary folder, where a file runs on its own. */
export const keptFolder = () => process.env[keptFiles] ?? tmpdir()
