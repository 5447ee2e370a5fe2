/**
 * The programs of `src` as a bundle, which takes a third from the CPU time of a start: a process would otherwise compile
 * 900 files. Paths relative to a source file stay those of that file.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Variable with the folder of the bundle that all processes of a run share. */
const bundleFolder = 'TEST_BUNDLE'

const source = join(import.meta.dir, '../../src')

/** Bundles the programs for the processes that start later with the returned environment. */
export async function makeBundle(folder: string): Promise<Readonly<Record<string, string>>> {
  const { success, logs } = await Bun.build({
    entrypoints: [join(source, 'main.ts'), join(source, 'cli.ts')],
    root: source,
    outdir: folder,
    target: 'bun',
    splitting: true,
    plugins: [
      {
        name: 'paths of sources',
        setup(build) {
          build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
            const text = await Bun.file(path).text()
            return {
              contents: text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
              loader: 'ts',
            }
          })
        },
      },
    ],
  })
  if (!success) throw new Error(logs.join('\n'))
  return { [bundleFolder]: folder }
}

/** Returns the path of a program: in the bundle of the run, or as source if a file runs on its own. */
export function programPath(file: 'main.ts' | 'cli.ts'): string {
  const folder = process.env[bundleFolder]
  return folder === undefined ? join(source, file) : join(folder, file.replace('.ts', '.js'))
}
